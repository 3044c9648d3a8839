// The text of each problem, and what to do about it. One entry for each code of `core/problem.js`.

import { visibleText } from "../core/visible.js";
import { digits } from "./count.js";
import { hindranceText } from "./notifications.js";

const THINGS = /** @type {Record<string, string>} */ ({
	artifact: "The content",
	ciphertext: "The encrypted request",
	deviceBundle: "The key of the device",
	deviceId: "The id of the device",
	enforcerBundle: "The key of the agent",
	signature: "The signature",
	statement: "The statement about a device",
	endorsement: "The link of the new device",
	decision: "The decision",
	introduction: "The introduction of an agent",
	answer: "The gateway’s answer",
	key: "The key",
	random: "The random value",
	record: "The record",
	outcome: "The confirmation",
});

/** A gateway that refuses a decision has it, and can deliver it. */
const SENT =
	"You have signed and sent your decision, and it may still take effect.";

/** @type {(values: Record<string, unknown>) => string} */
const thing = (values) => THINGS[String(values.what)] ?? "It";

/** @type {(value: unknown) => string} */
const shown = (value) => visibleText(String(value));

/** @type {Record<import('../core/problem.js').ProblemCode, (values: Record<string, any>) => string>} */
export const problemTexts = {
	browser: () =>
		"This browser cannot keep keys safely (Ed25519 and X25519). Update it, or use a current Chrome, Edge or Firefox.",
	storage: (v) =>
		`This browser cannot keep keys here: ${shown(v.cause)}. Leave private browsing, or free some space.`,
	unreachable: () =>
		"The gateway cannot be reached. Check your connection and try again.",
	slow: () => "The gateway gave no answer in time. Try again.",
	refused: (v) =>
		`The gateway refused this: ${shown(v.message)} (${v.status} ${shown(v.code)}).`,
	answer: (v) =>
		`The gateway’s answer is not what was expected: ${shown(v.expected)}.`,
	credential: () =>
		"The gateway no longer accepts this device’s credential. Ask for a new invitation, log out, and join again.",

	notNotified: (v) => hindranceText({ ...v, cause: shown(v.cause ?? "") }),

	alreadyJoined: () =>
		"This browser already has the keys of an approver. Log out first, which gives them up.",
	invitation: () =>
		"That isn’t an invitation link. Copy the whole link that your administrator sent.",
	noSuchInvitation: () =>
		"The gateway does not know this invitation: it was used, has expired or was withdrawn. Ask for a new one.",
	deviceName: () => "A device’s name has 1 to 64 characters, none invisible.",

	noSignIn: () =>
		"This gateway offers no sign-in. Ask your administrator for an invitation.",
	signInUnknown: () =>
		"This sign-in was not begun in this tab, or has been used already. Sign in again.",
	signInIssuer: () =>
		"The answer came from another sign-in service than was asked, so it was not used. Sign in again, and tell your administrator if it happens again.",
	signInDenied: (v) =>
		`The sign-in service refused: ${shown(v.description) || shown(v.error)}.`,
	signInEnded: () =>
		"Your sign-in has ended. Sign in again; the keys and pairings of this device are kept.",
	signInRefused: () =>
		"The gateway does not accept your sign-in. Sign in again; if that does not help, your administrator has to look at the audience and the claims of your token.",
	notAnApprover: () =>
		"You have signed in, but your token does not say which approver you are. Your administrator has to add the claims for role and id.",
	otherPerson: (v) =>
		`You have signed in as ${shown(v.approverId)}, but the keys of this browser belong to ${shown(v.expected)}. Sign in as ${shown(v.expected)}, or log out here first.`,
	provider: (v) =>
		`The sign-in service’s answer is not what was expected: ${shown(v.expected)}.`,
	providerIssuer: (v) =>
		`The sign-in service calls itself ${shown(v.found)}, but the gateway expects ${shown(v.expected)}.`,
	providerAway: (v) =>
		`The sign-in service ${shown(v.host)} cannot be reached. Try again.`,

	pairingLink: () =>
		"That isn’t a pairing link. Copy all of it, from start to end.",
	pairingCode: () =>
		"A pairing code has eight letters and digits, such as K7QM-2X9P.",
	noSuchCode: () =>
		"The gateway does not know this code: it has expired or was used. Start the pairing again on the agent’s machine.",
	enforcerKey: () =>
		"The agent sent no key. It may not be Countersign’s own program.",
	fingerprint: () =>
		"The agent’s key is not the one in the link. Someone may be interfering: start the pairing again, and do not use this gateway if it happens again.",
	replacesKey: (v) =>
		`${shown(v.enforcerId)} is paired already, with another key. Confirm first that the key was meant to change.`,
	notCompared: () => "The digits were not confirmed, so nothing was paired.",

	deviceNotInForce: () =>
		"This device is not in force, so its signature does not count. Add it on a device that is.",
	refusedAfterSigning: () =>
		`The gateway says that the signature of this device does not count. ${SENT}`,
	deviceRevoked: () =>
		"This device was revoked. Log out, and join again: with a new invitation, or by signing in.",
	noDeviceInForce: () =>
		"All your devices were revoked, so none can add this one. An administrator has to reset them.",
	endorsementLink: () =>
		"That isn’t a new device’s link. Copy all of it, from start to end.",
	otherApprover: () =>
		"This is about another approver or tenant, not about you.",
	notAsked: () =>
		"The new device did not ask this one. Make a new link there, and open it on a device that is in force.",
	possession: () =>
		"The new device has not signed its own request, so it may not own these keys.",
	statementSignature: () =>
		"The signature of a statement about a device does not verify.",
	unknownDevice: (v) =>
		`Device ${shown(v.deviceId)} is not known here. Have a known device add it.`,
	revokedDevice: (v) =>
		`Device ${shown(v.deviceId)} was revoked. It has to log out and join again.`,
	deviceIdTaken: (v) => `Device ${shown(v.deviceId)} is known with other keys.`,
	tooManyDevices: (v) =>
		`You may have at most ${v.limit} devices. Revoke one first.`,

	notPaired: () =>
		"This device is not paired with the agent that asks, so it cannot tell whether the request is authentic.",
	endedHere: () =>
		"The pairing with this agent was ended on this device. Pair it again to open its requests.",
	disagreement: () =>
		"Your devices know different keys of this agent, so someone may be interfering. Pair this device with it directly, and look at your list of devices.",
	otherKey: () =>
		"It does not open with the agent’s key on this device, and another of your devices has another key. Pair this device with it again.",
	notEncrypted: () =>
		"It is not encrypted, so the gateway could have written or changed it.",
	notARecipient: () =>
		"It is not encrypted for this device. The device was added later, or the agent does not know it yet.",
	repeatedRecipient: () => "It names a recipient twice.",
	tooManyRecipients: (v) =>
		`It is encrypted to more than ${v.limit} recipients.`,
	keyNotOpened: () =>
		"It does not open: it was not made by the paired agent, or not for this request, or was altered.",
	contentNotOpened: () =>
		"Its content does not open: it was altered on the way.",
	contentHash: () => "Its content is not what its hash says.",
	mismatch: (v) =>
		`${shown(v.member)} inside the encrypted content differs from what the gateway says.`,
	base64: (v) => `${thing(v)} is damaged: it is not base64url.`,
	length: (v) => `${thing(v)} is damaged: it should have ${v.expected} bytes.`,
	json: (v) => `${thing(v)} is damaged: it is not strict JSON.`,
	member: (v) =>
		`${thing(v)} is damaged: ${shown(v.pointer) || "it"} should be ${shown(v.expected)}.`,
	notCanonical: (v) =>
		`${thing(v)} is not in canonical form. The client that made it has a defect.`,
	version: (v) =>
		`${thing(v)} has a version that this page does not know. Load the page again, or have it updated.`,
	weakKey: (v) =>
		`${thing(v)} is weak or malformed. Its owner has to create new keys.`,

	notApprovable: (v) =>
		`This cannot be approved. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	notRejectable: () => "Without a hash it cannot be rejected.",
	alreadyDecided: () =>
		`The gateway says that somebody has decided this already, perhaps on another device. ${SENT}`,
	replaced: () =>
		"Another request came under the same id while this one was open, so neither can be approved. Someone may be interfering: tell your gateway’s operator.",
	loggedOut: () => "This browser has logged out, so nothing was signed.",
	noLongerPending: () => "This request no longer waits for a decision.",
	goneAfterSigning: () =>
		`The gateway says that this request no longer waits. ${SENT}`,
	outcomeSignature: () =>
		"The confirmation was not signed by the agent’s machine, or is about another decision.",
	expired: () => `The gateway says that this request has expired. ${SENT}`,
	onceHasNoTime: () => "Only longer approvals have a time.",
	grantTooLong: () => "A permission lasts at most 24 hours.",
	grantIncomplete: () =>
		"A permission beyond this request needs to say what it covers, and for how long.",
	grantWords: () =>
		"A permission by first words has 1 to 64 words without control characters.",
	grantNotPlain: () =>
		"This is not a plain command, so no first words cover it. Approve exactly the same, or this request only.",
	grantRunsAnother: () =>
		"This command runs another one that its later words name, so no first words cover it.",
	grantOther: () =>
		"The command does not begin with these words, so the agent would not keep this permission.",
	grantChooses: () =>
		"A later word chooses a program, a file, a directory or a configuration. Permit more words, or exactly this.",
	actionOpposite: () => "This choice is for the opposite decision.",
	actionUnknown: () => "The request does not offer this choice.",
	longReason: (v) =>
		`A reason has at most ${digits(Number(v.limit))} characters. Shorten it.`,
	longAction: () => "The id of this choice is too long.",
	hintsForNobody: () =>
		"This agent is not paired, so a reason cannot be encrypted for it. Reject without one.",
	decisionSignature: () => "The signature of the decision does not verify.",
	otherSubject: (v) => `The decision is about another ${shown(v.what)}.`,
	nothingToSave: () =>
		"Only the decision about a request that opened can be saved.",

	emptyPrompt: () => "There is nothing to send. Write something first.",
	longPrompt: (v) =>
		`A prompt has at most ${Math.floor(Number(v.limit) / 1024)} KiB. Shorten it.`,
};

/**
 * @param {import('../core/problem.js').Problem} problem
 * @returns {string}
 */
export function problemText(problem) {
	return problemTexts[problem.code](problem.values);
}
