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
			title: "This request is closed",
			text: "The gateway says it was decided or withdrawn, or has expired, before this page saw it.",
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
			server: "MCP server",
			file: "File",
		},
		details: "Details",
		contentOf: (/** @type {string} */ kind) => `Content: ${kind}`,
		copyContent: "Copy as text",
		also: "Also in this request",
		unopened: "This request can’t be approved",
		neverOpened:
			"This request couldn’t be opened on this device, so you can only see that it was rejected.",
		unopenedText:
			"It isn’t shown because it can’t be trusted. You can reject it.",
		pairHint: "Pair with this agent",
		notRejectable:
			"It’s too malformed even to reject. It disappears when it expires.",
		strangers: {
			revoked: (/** @type {string} */ id) =>
				`This agent’s machine still obeys your revoked device ${id}. It should learn of that within a minute. If you still see this after that, the gateway is withholding it, or the machine doesn’t know the device that revoked it: unpair the agent.`,
			unknown: (/** @type {string} */ id) =>
				`This agent’s machine also obeys ${id} as your device, but this device doesn’t know it. Compare the ID with the ones your other devices show. If it isn’t yours, someone has used the keys of one of your devices: revoke it in a terminal with “countersign devices revoke ${id}”.`,
		},
		careful: "Look closely",
		marked: (/** @type {number} */ n) =>
			`${count(n, "character is", "characters are")} invisible or misleading. Each is framed and shown by name.`,
		lookAlike: (
			/** @type {number} */ n,
			/** @type {string} */ signs,
			/** @type {boolean} */ hasMore,
		) =>
			`Where each character matters, ${count(n, "looks like another", "look like others")}: ${signs}${hasMore ? " …" : ""}. Each is framed and named.`,
		longLine: (/** @type {number} */ n) =>
			`The longest line has ${digits(n)} characters. All of it is shown, wrapped.`,
		longLineMark: (/** @type {number} */ n) => `${digits(n)} characters`,
		find: "Find in this request",
		found: (/** @type {number} */ at, /** @type {number} */ of) =>
			of ? `${at} of ${digits(of)}` : "No matches",
		findNext: "Next match",
		findPrevious: "Previous match",
		formatted: "Formatted",
		source: "Source",
		viewAs: "Show as",
		largePlan: "This text is long, so it’s shown unformatted.",
	},
	question: {
		verdicts: { approve: "Answered", reject: "Not answered" },
		send: "Send answer",
		several: "You can choose more than one.",
		other: "Something else",
		words: "Your answer",
		dismiss: "Don’t answer",
		dismissTitle: "Leave this question unanswered?",
		dismissHint:
			"The agent gets your reason. Without one, it asks in its own dialog on its machine.",
	},
	patch: {
		unified: "Unified",
		split: "Side by side",
		layout: "Layout",
		files: (/** @type {number} */ n) => count(n, "file", "files"),
		added: (/** @type {number} */ n) => `${count(n, "line", "lines")} added`,
		removed: (/** @type {number} */ n) =>
			`${count(n, "line", "lines")} removed`,
		fileList: "Files in this patch",
		rows: "Lines in this patch",
		fold: (/** @type {string} */ path) => `Hide changes to ${path}`,
		unfold: (/** @type {string} */ path) => `Show changes to ${path}`,
		unchanged: (/** @type {number} */ n) =>
			`Show ${count(n, "unchanged line", "unchanged lines")}`,
		skipped: (/** @type {number} */ n) =>
			`${count(n, "unchanged line", "unchanged lines")} not in the patch`,
		binary: "Binary file: the patch doesn’t show its content",
		noLines: "No lines changed in this file",
		outside: "Lines outside the patch:",
		broken:
			"This part has fewer lines than it says. Programs that apply patches will refuse it.",
		isBroken:
			"Part of this isn’t a regular patch. All of it is shown, but programs may apply it differently.",
		raw: "This isn’t a unified diff. It’s shown as written.",
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

	rule: {
		people: (/** @type {string[]} */ names) =>
			names.length < 2
				? names.join()
				: `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`,
		otherTeam: "another team",
		oneOf: (/** @type {number} */ n, /** @type {string} */ people) =>
			`one of ${n} approvals, from ${people}`,
		approvals: (/** @type {number} */ n, /** @type {string} */ people) =>
			n === 1
				? `one approval, from ${people}`
				: `${n} approvals, from ${people}`,
		later: (
			/** @type {string} */ time,
			/** @type {string} */ people,
			/** @type {number} */ n,
		) => `after ${time} ${people} ${n === 1 ? "is" : "are"} asked too`,
		notBy: (/** @type {string} */ people) => `not by ${people}`,
		rejections: (/** @type {number} */ n) =>
			`it takes ${n} rejections to deny it`,
		comment: {
			approve: "a comment is required to approve",
			reject: "a comment is required to reject",
			always: "a comment is required to approve or reject",
		},
		field: "Comment",
		required: "required",
		hint: "Encrypted for the agent’s machine and signed with your decision.",
		approved:
			"Approved by you. The agent waits until enough others have approved.",
		rejected:
			"Rejected by you. The agent waits for the others, since one rejection isn’t enough.",
		allowedByOthers:
			"Confirmed by the agent’s machine: it was allowed, because enough others approved it.",
		rejectedByOthers:
			"Confirmed by the agent’s machine: it was denied, because others rejected it.",
	},

	decide: {
		label: "Your decision",
		approve: "Approve",
		reject: "Reject",
		options: "Approve for longer…",
		rejectTitle: "Reject this request",
		reason: "Reason",
		optional: "optional",
		reasonHint: "Encrypted for the agent, which can then try another way.",
		noReason: "This agent isn’t paired, so a reason can’t be encrypted for it.",
		quick: [
			"Not now.",
			"Too risky.",
			"Please explain why first.",
			"Do it another way.",
		],
		quickLabel: "Common reasons",
		optionsTitle: "Approve for longer",
		optionsLead:
			"Approves this request and later ones like it, without asking you again.",
		scope: "How long",
		lasts: [
			[900, "15 minutes"],
			[3600, "1 hour"],
			[14400, "4 hours"],
			[86400, "24 hours"],
		],
		session: "Until the session ends",
		covers: "Covers",
		same: "The same again (the agent may describe it differently)",
		words: "Commands of this kind",
		wordsHint:
			"Tap a word to allow any word in its place. Options and words that determine what runs can’t vary.",
		wordsLabel: "Words that must match",
		moreWords: "Further words may follow",
		file: "Edits to this file, this session",
		files: "Edits to these files, this session",
		project: "Edits in this project, this session",
		grants: {
			unknown: "A permission given on another device",
			same: "The same request again, even if the agent describes it differently",
			prefix: "Commands that begin with",
			words: "Commands of the form",
			anyWord: "any word",
			more: " and further words",
			file: "All changes, also deletion, of",
			project: "All changes, also deletions, inside",
		},
		note: "Note to the agent",
		summary: {
			lasts: (/** @type {string} */ time, /** @type {string} */ end) =>
				`for ${time}, until ${end}`,
			session: (/** @type {string} */ end) =>
				`while the agent’s session lasts, also when it is resumed, at most until ${end}`,
			same: (/** @type {string} */ time) =>
				`Permits the same request again, ${time}.`,
			covers: "Permits, without asking you again: ",
			words: (/** @type {string} */ time) =>
				`, ${time}. You’re still asked about commands with pipes, redirections or substitutions.`,
			edits: (/** @type {string} */ time) =>
				`, ${time}. You’re still asked about files that hold secrets or make something run later.`,
		},
		approveLonger: "Approve",
		sending: "Sending…",
		steps: { signed: "Signed", decided: "Decided", delivered: "Delivered" },
		decidedText:
			"The gateway accepted it. The agent’s machine hasn’t confirmed it yet.",
		outcomes: {
			unsigned:
				"The gateway says the agent’s machine received it, but this device has no signed confirmation.",
			allowed: "Confirmed by the agent’s machine: it was allowed.",
			rejected: "Confirmed by the agent’s machine: it was denied.",
			missing:
				"Confirmed by the agent’s machine: it was denied because too few people approved.",
			untrusted:
				"Confirmed by the agent’s machine: it was denied because the decision came too late or this device isn’t trusted there.",
			interrupted:
				"Confirmed by the agent’s machine: it was denied because the agent was interrupted.",
			changed:
				"Confirmed by the agent’s machine: it was denied because a file changed or can no longer be read.",
			forged: "The gateway says the agent’s machine received it.",
		},
		forged:
			"The gateway shows a confirmation that doesn’t belong to this decision. Someone may be interfering: tell your gateway’s operator.",
		elsewhere: (/** @type {string} */ device) =>
			`Decided on another device (${device}).`,
		notVerified: "The gateway says so, but no device trusted here signed it.",
		contradicted: (/** @type {string} */ state) =>
			`The gateway says something else: ${state}, without this decision. This device shows what it verified. Someone may be interfering: tell your gateway’s operator.`,
		notKept:
			"It was decided, but this browser couldn’t save a record, so it’s missing from the history.",
		expired: "The gateway says nobody decided in time.",
		withdrawn: "The gateway says the agent withdrew it.",
		cancelled: "The gateway says an administrator cancelled it.",
		withdrawnBecause: (/** @type {string} */ reason) =>
			`Reason (unverified): ${reason}`,
		next: "Next request",
		toInbox: "Back to the inbox",
		reasonWas: (/** @type {string} */ reason) => `Reason: ${reason}`,
		choose:
			"The agent offers these choices. The first word is what you sign; the rest is the agent’s wording.",
		oddActions:
			"The agent’s choices can’t be shown as buttons, so you decide without them.",
	},
};
