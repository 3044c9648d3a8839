// Signing in with the gateway's sign-in service.

export const signInTexts = {
	title: "Sign in",
	action: (/** @type {string} */ host) => `Sign in with ${host}`,
	or: "Or join with an invitation:",
	lead: "You sign in with your organisation. This browser then creates its own keys, which never leave it.",
	next: "Continue to sign in",
	opening: "Opening the sign-in service …",
	finishing: "Signing you in …",
	done: "You have signed in",
	ended:
		"Your sign-in has ended, so nothing new arrives and nothing can be decided. The keys and pairings of this device are kept.",
	again: "Sign in again",
	againLead: (/** @type {string} */ id) =>
		`Sign in as ${id}. The keys and pairings of this device are kept.`,
	as: "Signed in as",
	unnamed: "not said by the sign-in service",
	logoutText:
		"Removes keys, tokens and history from this browser. To use it again, sign in; a device that is in force has to add it.",
	everywhere: "Also sign out at the sign-in service",
};
