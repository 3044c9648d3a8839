// Signing in with the gateway's sign-in service.

export const signInTexts = {
	title: "Sign in",
	action: (/** @type {string} */ host) => `Sign in with ${host}`,
	or: "Or join with an invitation:",
	lead: "Sign in with your organisation. This browser then creates its own keys, which never leave it.",
	next: "Continue to sign in",
	opening: "Opening the sign-in service…",
	finishing: "Signing you in…",
	done: "You’re signed in",
	ended:
		"Your sign-in has expired, so you won’t get new requests and can’t decide. This device keeps its keys and pairings.",
	again: "Sign in again",
	againLead: (/** @type {string} */ id) =>
		`Sign in as ${id}. This device keeps its keys and pairings.`,
	as: "Signed in as",
	unnamed: "no name given",
	logoutText:
		"Removes the keys, the tokens and the history from this browser. To use it again, sign in and add it from another device.",
	everywhere: "Also sign out of the sign-in service",
};
