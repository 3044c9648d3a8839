// The text of each problem, and what to do about it. One entry for each code of `core/problem.js`.

import { visibleText } from "../core/visible.js";
import { digits } from "./count.js";
import { hindranceText } from "./notifications.js";

const THINGS = /** @type {Record<string, string>} */ ({
	artifact: "The content",
	ciphertext: "The encrypted request",
	deviceBundle: "The device’s key",
	deviceId: "The device’s ID",
	enforcerBundle: "The agent’s key",
	signature: "The signature",
	statement: "The statement about a device",
	endorsement: "The new device’s link",
	decision: "The decision",
	introduction: "The introduction of an agent",
	answer: "The gateway’s answer",
	key: "The key",
	random: "The random value",
	record: "The record",
	outcome: "The confirmation",
	rule: "The rule",
	team: "The team",
});

/** A gateway that refuses a decision has it, and can deliver it. */
const SENT =
	"You’ve signed and sent your decision, so it may still take effect.";

/** @type {(values: Record<string, unknown>) => string} */
const thing = (values) => THINGS[String(values.what)] ?? "It";

/** @type {(value: unknown) => string} */
export const shown = (value) => visibleText(String(value));

/** @type {Record<import('../core/problem.js').ProblemCode, (values: Record<string, any>) => string>} */
export const problemTexts = {
	browser: () =>
		"This browser can’t keep keys safely (Ed25519 and X25519). Update it, or use a current Chrome, Edge or Firefox.",
	storage: (v) =>
		`This browser can’t store keys: ${shown(v.cause)}. Leave private browsing, or free up some space.`,
	unreachable: () =>
		"Can’t reach the gateway. Check your connection and try again.",
	slow: () => "The gateway took too long to answer. Try again.",
	refused: (v) =>
		`The gateway refused this: ${shown(v.message)} (${v.status} ${shown(v.code)}).`,
	answer: (v) =>
		`The gateway’s answer is invalid. Expected: ${shown(v.expected)}.`,
	credential: () =>
		"The gateway no longer accepts this device’s credential. Ask for a new invitation, then log out and join again.",

	notNotified: (v) => hindranceText({ ...v, cause: shown(v.cause ?? "") }),

	alreadyJoined: () =>
		"This browser has already joined. To join again, log out first; that deletes its keys.",
	invitation: () =>
		"That isn’t an invitation link. Copy the whole link your administrator sent you.",
	noSuchInvitation: () =>
		"This invitation was already used, has expired or was withdrawn. Ask for a new one.",
	deviceName: () => "Enter a device name of 1 to 64 visible characters.",

	noSignIn: () =>
		"You can’t sign in to this gateway. Ask your administrator for an invitation.",
	signInUnknown: () =>
		"This sign-in wasn’t started in this tab, or was already used. Sign in again.",
	signInIssuer: () =>
		"The answer came from a different sign-in service, so it was ignored. Sign in again, and tell your administrator if it happens again.",
	signInDenied: (v) =>
		`The sign-in service refused: ${shown(v.description) || shown(v.error)}.`,
	signInEnded: () =>
		"Your sign-in has expired. Sign in again; this device keeps its keys and pairings.",
	signInRefused: () =>
		"The gateway doesn’t accept your sign-in. Sign in again. If that doesn’t help, ask your administrator to check the audience and claims of your token.",
	notAnApprover: () =>
		"You’re signed in, but your token doesn’t say which approver you are. Ask your administrator to add the claims for role and ID.",
	otherPerson: (v) =>
		`You signed in as ${shown(v.approverId)}, but this browser’s keys belong to ${shown(v.expected)}. Sign in as ${shown(v.expected)}, or log out here first.`,
	provider: (v) =>
		`The sign-in service’s answer is invalid. Expected: ${shown(v.expected)}.`,
	providerIssuer: (v) =>
		`The sign-in service calls itself ${shown(v.found)}, but the gateway expects ${shown(v.expected)}.`,
	providerAway: (v) =>
		`Can’t reach the sign-in service ${shown(v.host)}. Try again.`,

	pairingLink: () => "That isn’t a pairing link. Copy the whole link.",
	pairingCode: () =>
		"A pairing code has eight letters and digits, such as K7QM-2X9P.",
	noSuchCode: () =>
		"This code has expired or was already used. Start the pairing again on the agent’s machine.",
	enforcerKey: () =>
		"The agent didn’t send a key. It may not be running Countersign.",
	fingerprint: () =>
		"The agent’s key isn’t the one in the link. Someone may be interfering: start the pairing again, and don’t use this gateway if it happens again.",
	replacesKey: (v) =>
		`${shown(v.enforcerId)} is already paired with a different key. Confirm first that its key was meant to change.`,

	deviceNotInForce: () =>
		"This device isn’t active, so its signature doesn’t count. Approve it from one you already use.",
	refusedAfterSigning: () =>
		`The gateway says this device’s signature doesn’t count. ${SENT}`,
	deviceRevoked: () =>
		"This device was revoked. Log out, then join again with a new invitation or by signing in.",
	noDeviceInForce: () =>
		"All your devices were revoked, so none can approve this one. Ask an administrator to reset them.",
	endorsementLink: () => "That isn’t a new device’s link. Copy the whole link.",
	otherApprover: () => "This is for another approver or tenant, not for you.",
	notAsked: () =>
		"The new device didn’t ask this one. Create a new link there, and open it on an active device.",
	inviterUnknown: () =>
		"The gateway doesn’t know the device that made this link. Create a new link there.",
	deviceProof: () =>
		"The new device’s keys were changed on the way. Someone may be interfering: start again, and don’t use this gateway if it happens again.",
	nameTaken: () =>
		"Another device has this name. Choose one that tells them apart.",
	possession: () =>
		"The new device didn’t sign its request, so the keys may not be its own.",
	statementSignature: () =>
		"The signature of a statement about a device is invalid.",
	unknownDevice: (v) =>
		`This device doesn’t know device ${shown(v.deviceId)}. Add it from one of your devices.`,
	revokedDevice: (v) =>
		`Device ${shown(v.deviceId)} was revoked. Log out there and join again.`,
	deviceIdTaken: (v) =>
		`Device ${shown(v.deviceId)} is already known with different keys.`,
	tooManyDevices: (v) =>
		`You can have at most ${v.limit} devices. Revoke one first.`,

	notPaired: () =>
		"This device isn’t paired with the agent, so it can’t tell whether the request is authentic.",
	endedHere: () =>
		"You unpaired this agent on this device. Pair it again to open its requests.",
	disagreement: () =>
		"Your devices have different keys for this agent, so someone may be interfering. Pair this device with it directly, and check your list of devices.",
	otherKey: () =>
		"It doesn’t open with the agent’s key on this device, and another of your devices has a different key. Pair this device with the agent again.",
	notEncrypted: () =>
		"It isn’t encrypted, so the gateway could have written or changed it.",
	notARecipient: () =>
		"It isn’t encrypted for this device. The device was added later, or the agent doesn’t know it yet.",
	repeatedRecipient: () => "It names a recipient twice.",
	tooManyRecipients: (v) =>
		`It’s encrypted for more than ${v.limit} recipients.`,
	keyNotOpened: () =>
		"It doesn’t open: it isn’t from the paired agent, isn’t for this request, or was altered.",
	contentNotOpened: () =>
		"Its content doesn’t open: it was altered on the way.",
	contentHash: () => "Its content doesn’t match its hash.",
	mismatch: (v) =>
		`${shown(v.member)} in the encrypted content isn’t what the gateway says.`,
	base64: (v) => `${thing(v)} is damaged: it isn’t base64url.`,
	length: (v) => `${thing(v)} is damaged: it should have ${v.expected} bytes.`,
	json: (v) => `${thing(v)} is damaged: it isn’t strict JSON.`,
	member: (v) =>
		`${thing(v)} is damaged: ${shown(v.pointer) || "it"} should be ${shown(v.expected)}.`,
	notCanonical: (v) =>
		`${thing(v)} isn’t in canonical form. The client that created it has a bug.`,
	version: (v) =>
		`${thing(v)} has a version this page doesn’t know. Reload the page, or ask for a newer gateway.`,
	weakKey: (v) =>
		`${thing(v)} is weak or malformed. Its owner must create new keys.`,

	notApprovable: (v) =>
		`This can’t be approved. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	notRejectable: () => "It can’t be rejected, because it has no hash.",
	ruleOfOther: () =>
		"Its rule is for another agent. Someone may be interfering: tell your gateway’s operator.",
	excludedByRule: () =>
		"Its rule doesn’t count your approval, for example because you work with this agent. You can reject it.",
	otherSeat: (v) =>
		`It asks ${shown(v.seat)} for a decision, not you. You can reject it.`,
	notInRule: () => "Its rule asks other people, not you. You can reject it.",
	teamLink: () => "That isn’t an invitation to a team. Copy the whole link.",
	teamState: () =>
		"The gateway shows a team that its owners didn’t sign like this. Someone may be interfering: tell its owners.",
	teamFork: (v) =>
		`There are two versions of the team ${shown(v.team)} that contradict each other, so it doesn’t count. Someone may be interfering: tell its owners.`,
	teamWithheld: (v) =>
		`The gateway withholds changes of the team ${shown(v.team)}. Try again, and tell your gateway’s operator if this stays.`,
	teamUnknown: () =>
		"This device isn’t in the team that is asked. Join the team, or decide on another device.",
	notOnSeat: (v) =>
		`The team ${shown(v.team)} doesn’t know this device. Open Teams on another of your devices to add it.`,
	teamsUnread: (v) =>
		`Teams that you’ve joined on another device may still count the revoked one. Open Teams there and update them. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	teamNotJoined: (v) =>
		`The gateway says that you’re in the team ${shown(v.team)}, which no device that this one trusts has joined. If another one of yours has, repeat this there. If one that you’ve revoked has, it still counts: ask an owner to remove you.`,
	notVouched: (v) =>
		`Members of your teams may no longer know agents that the revoked device has introduced. Pair those agents with the team again. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	deviceNotAdded: (v) =>
		`The team ${shown(v.team)} doesn’t count your new device yet. Open Teams and try again. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	deviceNotRemoved: (v) =>
		`The team ${shown(v.team)} still counts the revoked device. Open Teams on one of your active devices and try again, or ask an owner to remove you and invite you again. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	seatNotCleared: (v) =>
		`A stand-in or a device that isn’t yours may still decide on your seat in the team ${shown(v.team)}. Open Teams on a device that is in the team and end standing in, or ask an owner to remove you and invite you again. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	teamHidden: (v) =>
		`The gateway doesn’t show you the team ${shown(v.team)} any more, so it may still count the revoked device. If you haven’t left it, ask an owner to remove you and invite you again. If you have, open Teams and forget it.`,
	lastDevice: (v) =>
		`The team ${shown(v.team)} still counts the revoked device, because it’s your last one there. Ask an owner to remove you.`,
	deviceDropped: (v) =>
		`Your seat in the team ${shown(v.team)} also had ${shown(v.device)} (${shown(v.deviceId)}), which this device doesn’t know. It was removed.`,
	standInEnded: (v) =>
		`${shown(v.approverId)} no longer stands in for you in the team ${shown(v.team)}, because a device that isn’t yours any more could have named this person.`,
	standsInRevoked: (v) =>
		`You stand in for ${shown(v.member)} in the team ${shown(v.team)} with a device that you’ve revoked, and it can still decide there. Ask ${shown(v.member)} to end standing in.`,
	alreadyInTeam: (v) =>
		`${shown(v.approverId)} is already in this team. Choose someone who isn’t.`,
	belowMinimum: (v) =>
		`Its rule asks for less than the team ${shown(v.team)} does. Tell its owners.`,
	operators: () =>
		"Give the ids of at most 16 approvers, with commas between them.",
	commentMissing: () => "Write a comment first. The rule requires one.",
	ruleOnce: () =>
		"The rule lets you approve only this request, not later ones like it.",
	alreadyDecided: () =>
		`The gateway says this was already decided, perhaps on another device. ${SENT}`,
	replaced: () =>
		"Another request arrived with the same ID while this one was open, so neither can be approved. Someone may be interfering: tell your gateway’s operator.",
	loggedOut: () => "You’re logged out, so nothing was signed.",
	noLongerPending: () => "This request is no longer waiting for a decision.",
	goneAfterSigning: () =>
		`The gateway says this request is no longer waiting. ${SENT}`,
	outcomeSignature: () =>
		"The confirmation wasn’t signed by the agent’s machine, or is for another decision.",
	expired: () => `The gateway says this request has expired. ${SENT}`,
	onceHasNoTime: () => "Only longer approvals have a duration.",
	grantTooLong: () => "A permission lasts at most 24 hours.",
	grantIncomplete: () =>
		"Choose what the permission covers and how long it lasts.",
	grantWords: () =>
		"A permission for commands has 1 to 64 words without control characters.",
	grantNotPlain: () =>
		"This isn’t a plain command, so it can’t be permitted by its first words. Approve exactly the same again, or only this request.",
	grantRunsAnother: () =>
		"This command runs another one named later on, so it can’t be permitted by its first words.",
	grantOther: () =>
		"The command doesn’t begin with these words, so the agent would ignore this permission.",
	grantChooses: () =>
		"A later word chooses a program, a file, a directory or a configuration. Choose more words, or exactly the same again.",
	grantFree: () =>
		"A word that can vary would determine what runs, or choose a file, a directory or a configuration. Keep that word as it is.",
	grantNoEdit: () =>
		"This edit can’t be permitted for longer: it isn’t part of a session, or its files aren’t in the project.",
	editsForSession: () => "Edits can only be permitted for a session.",
	actionOpposite: () => "This choice is for the opposite decision.",
	oddAnswers: () =>
		"Answer every question first. An answer can have up to 4,000 characters.",
	actionUnknown: () => "The request doesn’t offer this choice.",
	longReason: (v) =>
		`A reason can have at most ${digits(Number(v.limit))} characters. Shorten it.`,
	longAction: () => "The ID of this choice is too long.",
	hintsForNobody: () =>
		"This agent isn’t paired, so a reason can’t be encrypted for it. Reject without one.",
	decisionSignature: () => "The decision’s signature is invalid.",
	otherSubject: (v) => `The decision is for a different ${shown(v.what)}.`,
	nothingToSave: () =>
		"Only decisions on requests that could be opened can be saved.",

	emptyPrompt: () => "Write a message first.",
	longPrompt: (v) =>
		`A message can have at most ${Math.floor(Number(v.limit) / 1024)} KiB. Shorten it.`,
};

/**
 * @param {import('../core/problem.js').Problem} problem
 * @returns {string}
 */
export function problemText(problem) {
	return problemTexts[problem.code](problem.values);
}
