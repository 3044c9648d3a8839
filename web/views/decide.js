// Deciding: one click, with a reason for a rejection, or an approval that reaches further.

import { coveredEdits } from "../core/grants.js";
import { Problem } from "../core/problem.js";
import { allowsGrant, wantsComment } from "../core/rule.js";
import { problemText } from "../texts/problems.js";
import { texts } from "../texts.js";
import { openDialog } from "../ui/dialog.js";
import { el, fill } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { marked } from "../ui/marked.js";
import { busy, button, note } from "../ui/parts.js";
import { sentenceView } from "../ui/sentence.js";
import { artifactOf, kindOf } from "../ui/summary.js";
import { whoAsks } from "../ui/who.js";
import { commentField } from "./rule.js";

/** @typedef {import('../core/types.js').Item} Item */
/** @typedef {import('../core/types.js').Choice} Choice */
/** @typedef {import('../core/types.js').RequestedAction} RequestedAction */

const LONGEST_REASON = 4000;

/**
 * The buttons. A key does what a button says that is the only one of its kind. A request whose rule
 * does not count this person can only be rejected.
 * @param {Item} item
 * @param {(choice: Choice) => Promise<void>} decide throws what the person should read
 * @param {() => string[][] | null} answers to the questions that are asked
 */
export function decisionBar(item, decide, answers) {
	const place = el("div", null);
	const artifact = item.content.opened ? item.content.artifact : null;
	const { approvalProblem } = item;
	const mayApprove = artifact !== null && approvalProblem === null;
	const actions = (artifact?.actions ?? []).filter(
		({ verdict }) => mayApprove || verdict === "reject",
	);
	const isQuestion = artifact?.payload.kind === "question";
	const written = el("textarea", {
		class: "input",
		maxlength: LONGEST_REASON,
		rows: 2,
	});
	const comment =
		mayApprove && wantsComment(artifact.rule, "approve")
			? commentField(written, texts.rule.field, {
					isRequired: true,
					hint: texts.rule.hint,
				})
			: null;
	const approve = (/** @type {Omit<Choice, 'verdict'>} */ further = {}) =>
		decide({
			verdict: "approve",
			...further,
			...(comment && { reason: comment.read() }),
		});
	const reject = (/** @type {RequestedAction | undefined} */ action) =>
		rejectDialog(item, action, decide, written.value);

	const buttons = actions.map((action) => {
		const { verdict } = action;
		const one = button("", {
			kind: verdict === "approve" ? "good" : "bad-quiet",
		});
		fill(
			one,
			icon(verdict === "approve" ? "check" : "cross"),
			captionOf(action),
		);
		one.addEventListener("click", () =>
			verdict === "approve"
				? busy(
						one,
						place,
						() => approve({ actionId: action.id }),
						texts.decide.sending,
					)
				: reject(action),
		);
		return one;
	});
	const plainReject =
		item.artifactHash === null
			? null
			: button(isQuestion ? texts.question.dismiss : texts.decide.reject, {
					kind: "bad-quiet",
					icon: "cross",
					"aria-keyshortcuts": "r",
					on: () => reject(undefined),
				});
	plainReject?.append(keyHint("r"));
	const plainApprove =
		mayApprove && actions.length === 0
			? button(isQuestion ? texts.question.send : texts.decide.approve, {
					kind: "good",
					icon: "check",
					"aria-keyshortcuts": "a",
				})
			: null;
	plainApprove?.append(keyHint("a"));
	plainApprove?.addEventListener("click", () =>
		busy(
			plainApprove,
			place,
			() => {
				if (!isQuestion) return approve();
				const given = answers();
				if (given === null) throw Problem.of("oddAnswers", {});
				return approve({ answers: given });
			},
			texts.decide.sending,
		),
	);
	// Nothing else comes again in the same way.
	const isLasting =
		artifact?.payload.kind === "command" ||
		artifact?.payload.kind === "tool" ||
		(artifact && coveredEdits(artifact).length > 0);
	const longer =
		plainApprove && artifact && isLasting && allowsGrant(artifact.rule)
			? button("", {
					kind: "plain small longer",
					title: texts.decide.options,
					on: async () => {
						const { longerDialog } = await import("./longer.js");
						longerDialog(item, artifact, subjectOf(item), decide);
					},
				})
			: null;
	longer?.append(icon("down", "small"), el("span", null, texts.decide.options));

	const approvals = plainApprove
		? [plainApprove]
		: buttons.filter((_, at) => actions[at].verdict === "approve");
	const press = (/** @type {HTMLButtonElement | null} */ one) => {
		if (one && !one.disabled) one.click();
	};
	const element = el(
		"div",
		{ class: "decision", role: "group", "aria-label": texts.decide.label },
		place,
		approvalProblem && note("warn", problemText(approvalProblem)),
		comment?.element,
		actions.length > 0 && el("p", { class: "fine quiet" }, texts.decide.choose),
		artifact?.hasOddActions &&
			el("p", { class: "fine quiet" }, texts.decide.oddActions),
		el(
			"div",
			{ class: ["decision-buttons", actions.length > 1 && "many"] },
			plainReject,
			buttons,
			plainApprove,
		),
		longer,
	);
	return {
		element,
		approve: () => press(approvals.length === 1 ? approvals[0] : null),
		reject: () => press(plainReject),
	};
}

/** @param {string} key */
function keyHint(key) {
	return el("kbd", { "aria-hidden": "true" }, key);
}

/**
 * The page's own word for what is signed comes first: a caption could say the opposite.
 * @param {RequestedAction} action
 */
function captionOf({ verdict, caption }) {
	return el(
		"span",
		{ class: "caption" },
		el("strong", null, `${texts.decide[verdict]}: `),
		marked(caption, { singleLine: true }),
	);
}

/**
 * The subject of the dialog.
 * @param {Item} item
 */
function subjectOf(item) {
	const artifact = artifactOf(item);
	return el(
		"div",
		{ class: "dialog-subject" },
		el("span", null, `${kindOf(artifact).label} · `, whoAsks(item)),
		artifact && el("span", null, sentenceView(artifact)),
	);
}

/**
 * @param {Item} item
 * @param {RequestedAction | undefined} action
 * @param {(choice: Choice) => Promise<void>} decide
 * @param {string} written the comment so far
 */
function rejectDialog(item, action, decide, written) {
	const reason = el("textarea", {
		class: "input",
		maxlength: LONGEST_REASON,
		rows: 3,
	});
	reason.value = written;
	const place = el("div", null);
	const go = button(texts.decide.reject, { kind: "bad", type: "submit" });
	const artifact = artifactOf(item);
	const isQuestion = artifact?.payload.kind === "question";
	const isRequired =
		item.isPaired && wantsComment(artifact?.rule ?? null, "reject");
	const label = isRequired ? texts.rule.field : texts.decide.reason;
	const comment = commentField(reason, label, {
		isRequired,
		hint: isQuestion ? texts.question.dismissHint : texts.decide.reasonHint,
	});
	if (action) fill(go, captionOf(action));
	else if (isQuestion) fill(go, texts.question.dismiss);
	const send = () =>
		busy(
			go,
			place,
			async () => {
				await decide({
					verdict: "reject",
					reason: comment.read(),
					actionId: action?.id,
				});
				dialog.close();
			},
			texts.decide.sending,
		);
	reason.addEventListener("keydown", (event) => {
		if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
			event.preventDefault();
			send();
		}
	});
	const quick = el(
		"div",
		{
			class: "row quick",
			role: "group",
			"aria-label": texts.decide.quickLabel,
		},
		texts.decide.quick.map((text) =>
			button(text, {
				kind: "small",
				on: () => {
					reason.value = text;
					reason.dispatchEvent(new Event("input"));
					reason.focus();
				},
			}),
		),
	);
	const title = isQuestion
		? texts.question.dismissTitle
		: texts.decide.rejectTitle;
	const dialog = openDialog(title, () => [
		el(
			"form",
			{
				class: "flat",
				on: {
					submit: (/** @type {Event} */ event) => {
						event.preventDefault();
						send();
					},
				},
			},
			subjectOf(item),
			item.isPaired
				? [comment.element, !isQuestion && quick]
				: el("p", { class: "quiet" }, texts.decide.noReason),
			place,
			el(
				"div",
				{ class: "dialog-actions" },
				button(texts.cancel, { on: () => dialog.close() }),
				go,
			),
		),
	]);
	if (item.isPaired) reason.focus();
	else go.focus();
}
