// The texts about a request, its content, and the decision.

import { count, digits } from "./count.js";

/**
 * The meaning of git's modes, where that matters.
 * @type {Record<string, string | undefined>}
 */
const MODES = {
	100755: "executable",
	120000: "symbolic link",
	160000: "submodule",
	100644: "not executable",
};

export const requestTexts = {
	request: {
		gone: {
			title: "This request no longer waits",
			text: "The gateway says that it was decided or withdrawn, or that it has expired, before this page saw it.",
			action: "Go to the inbox",
		},
		facts: {
			who: "Asked by",
			repo: "Repository",
			revision: "Revision",
			session: "Session",
			asked: "Asked",
			ends: "Ends",
			directory: "Directory",
			program: "Program",
			id: "Request",
			hash: "SHA-256",
			tool: "Tool",
		},
		details: "Details",
		contentOf: (/** @type {string} */ kind) => `Content: ${kind}`,
		copyContent: "Copy as text",
		also: "Also in this request",
		unopened: "This request cannot be approved",
		neverOpened:
			"This request could not be opened on this device, so only its rejection is known here.",
		unopenedText:
			"It is not shown, since it cannot be trusted. You can reject it.",
		pairHint: "Pair with this agent",
		notRejectable:
			"It is too malformed even to be rejected. It disappears when it expires.",
		strangers: {
			revoked: (/** @type {string} */ id) =>
				`This agent’s machine still obeys your device ${id}, which was revoked. It should learn that within a minute. If this is still shown then, the gateway keeps it from that machine, or the machine does not know the device that revoked it: end the pairing with that machine.`,
			unknown: (/** @type {string} */ id) =>
				`This agent’s machine also obeys ${id} as your device, which this device does not know. Compare the id with those that your other devices show for themselves. If it is not yours, someone has used the keys of a device of yours: revoke it, in a terminal with “countersign devices revoke ${id}”.`,
		},
		careful: "Look closely",
		marked: (/** @type {number} */ n) =>
			`${count(n, "character is", "characters are")} invisible or misleading. Each is shown by its name in a frame.`,
		lookAlike: (
			/** @type {number} */ n,
			/** @type {string} */ signs,
			/** @type {boolean} */ hasMore,
		) =>
			`Where each character counts, ${count(n, "one may", "of them may")} look like another: ${signs}${hasMore ? " …" : ""}. Each is framed and named.`,
		longLine: (/** @type {number} */ n) =>
			`The longest line has ${digits(n)} characters. It is shown whole, on several lines.`,
		longLineMark: (/** @type {number} */ n) => `${digits(n)} characters`,
		find: "Find in this request",
		found: (/** @type {number} */ at, /** @type {number} */ of) =>
			of ? `${at} of ${digits(of)}` : "Nothing found",
		findNext: "Next match",
		findPrevious: "Previous match",
		formatted: "Formatted",
		source: "Source",
		viewAs: "Show as",
		largePlan: "The text is long, so it is shown as it was written.",
	},
	patch: {
		unified: "Unified",
		split: "Side by side",
		layout: "Layout",
		files: (/** @type {number} */ n) => count(n, "file", "files"),
		added: (/** @type {number} */ n) => `${count(n, "line", "lines")} added`,
		removed: (/** @type {number} */ n) =>
			`${count(n, "line", "lines")} removed`,
		fileList: "Files of this patch",
		rows: "Lines of this patch",
		fold: (/** @type {string} */ path) => `Hide the changes of ${path}`,
		unfold: (/** @type {string} */ path) => `Show the changes of ${path}`,
		unchanged: (/** @type {number} */ n) =>
			`Show ${count(n, "unchanged line", "unchanged lines")}`,
		skipped: (/** @type {number} */ n) =>
			`${count(n, "unchanged line", "unchanged lines")} not in the patch`,
		binary: "Binary file: the patch does not show its content",
		noLines: "No lines change in this file",
		outside: "Lines outside the patch:",
		broken:
			"This part has fewer lines than it announces. Programs that apply patches refuse it.",
		isBroken:
			"Part of this is not a regular patch. All of it is shown, but programs may apply it differently.",
		raw: "This is not a unified diff. It is shown as written.",
		isBinary: "binary",
		mode: (/** @type {string | null} */ from, /** @type {string} */ to) =>
			`${MODES[to] ?? "mode"}: ${from === null ? to : `${from} → ${to}`}`,
		change: {
			added: "new",
			deleted: "deleted",
			renamed: "renamed",
			copied: "copied",
			modified: "",
		},
		lineAdded: "added",
		lineRemoved: "removed",
		unnamed: "unnamed file",
	},
	tree: {
		label: "Content",
		fold: "Fold",
		unfold: "Unfold",
		members: (/** @type {number} */ n) => count(n, "member", "members"),
		items: (/** @type {number} */ n) => count(n, "item", "items"),
	},

	decide: {
		label: "Your decision",
		approve: "Approve",
		reject: "Reject",
		options: "Approve for longer …",
		rejectTitle: "Reject this request",
		reason: "Reason",
		optional: "optional",
		reasonHint:
			"Encrypted for the agent, which reads it and can try another way.",
		noReason: "This agent is not paired, so no reason can be encrypted for it.",
		quick: [
			"Not now.",
			"Too risky.",
			"Please explain why first.",
			"Do it another way.",
		],
		quickLabel: "Common reasons",
		optionsTitle: "Approve for longer",
		optionsLead:
			"Approves this request, and later ones like it without asking you again.",
		scope: "How long",
		lasts: [
			[900, "15 minutes"],
			[3600, "1 hour"],
			[14400, "4 hours"],
			[86400, "24 hours"],
		],
		session: "Until the session ends",
		covers: "Covers",
		same: "Exactly the same tool with the same input",
		prefix: "Commands that begin alike",
		prefixHint: "Tap the last word that must be the same.",
		prefixWords: "Words that must be the same",
		note: "Note to the agent",
		summary: {
			lasts: (/** @type {string} */ time, /** @type {string} */ end) =>
				`for ${time}, until ${end}`,
			session: (/** @type {string} */ end) =>
				`until the agent’s session ends, at most until ${end}`,
			same: (/** @type {string} */ time) =>
				`Covers the same request again, ${time}.`,
			prefixBefore: "Covers every plain command that begins with ",
			prefixAfter: (/** @type {string} */ time) =>
				`, ${time}. Commands with pipes, redirections or substitutions are asked again.`,
		},
		approveLonger: "Approve",
		sending: "Sending …",
		steps: { signed: "Signed", decided: "Decided", delivered: "Delivered" },
		decidedText:
			"The gateway has accepted it. The agent’s machine has not confirmed it yet.",
		outcomes: {
			unsigned:
				"The gateway says that the agent’s machine has received it. This device has no signature of that machine about it.",
			allowed: "Confirmed by the agent’s machine: it was let through.",
			rejected: "Confirmed by the agent’s machine: it was denied.",
			missing:
				"Confirmed by the agent’s machine: it was denied, because approvals are missing.",
			untrusted:
				"Confirmed by the agent’s machine: it was denied, because the decision came too late or this device is not trusted there.",
			interrupted:
				"Confirmed by the agent’s machine: it was denied, because the agent was interrupted.",
			changed:
				"Confirmed by the agent’s machine: it was denied, because a file has changed or can no longer be read.",
			forged: "The gateway says that the agent’s machine has received it.",
		},
		forged:
			"The gateway shows a confirmation that does not belong to this decision. Someone may be interfering: tell your gateway’s operator.",
		elsewhere: (/** @type {string} */ device) =>
			`Decided on another device (${device}).`,
		notVerified: "The gateway says so; no device trusted here has signed it.",
		contradicted: (/** @type {string} */ state) =>
			`The gateway says something else: ${state}, by no such decision. This device shows what it has verified. Someone may be interfering: tell your gateway’s operator.`,
		notKept:
			"It was decided, but this browser could not keep a record of it. It is missing in the history.",
		expired: "The gateway says that nobody decided in time.",
		withdrawn: "The gateway says that the agent has withdrawn it.",
		cancelled: "The gateway says that an administrator has cancelled it.",
		withdrawnBecause: (/** @type {string} */ reason) =>
			`Reason, as the gateway says: ${reason}`,
		next: "Next request",
		toInbox: "Back to the inbox",
		reasonWas: (/** @type {string} */ reason) => `Reason: ${reason}`,
		choose:
			"The agent offers these choices. The first word says what you sign; the rest are the agent’s words.",
		oddActions:
			"The agent offers choices that cannot be shown on buttons, so you decide without them.",
	},
};
