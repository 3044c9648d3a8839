// Deciding: one click, with a reason for a rejection, or an approval that reaches further.

import { fewestWords, grantableWords } from "../core/grants.js";
import { Problem } from "../core/problem.js";
import { texts } from "../texts.js";
import { dateTime } from "../ui/clock.js";
import { openDialog } from "../ui/dialog.js";
import { el, fill } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { marked } from "../ui/marked.js";
import { busy, button, field } from "../ui/parts.js";
import { sentenceView } from "../ui/sentence.js";
import { shellLine } from "../ui/shellwords.js";
import { artifactOf, kindOf } from "../ui/summary.js";
import { whoAsks } from "../ui/who.js";

/** @typedef {import('../core/types.js').Item} Item */
/** @typedef {import('../core/types.js').Choice} Choice */
/** @typedef {import('../core/types.js').RequestedAction} RequestedAction */

const LONGEST_REASON = 4000;
const LONGEST_GRANT = 86_400;
const MOST_WORDS = 64;

/**
 * The buttons. A key does what a button says that is the only one of its kind.
 * @param {Item} item
 * @param {(choice: Choice) => Promise<void>} decide throws what the person should read
 * @param {() => string[][] | null} answers to the questions that are asked
 */
export function decisionBar(item, decide, answers) {
	const place = el("div", null);
	const artifact = item.content.opened ? item.content.artifact : null;
	const actions = artifact?.actions ?? [];
	const isQuestion = artifact?.payload.kind === "question";
	const reject = (/** @type {RequestedAction | undefined} */ action) =>
		rejectDialog(item, action, decide);

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
		const approve = () =>
			busy(
				one,
				place,
				() => decide({ verdict: "approve", actionId: action.id }),
				texts.decide.sending,
			);
		one.addEventListener("click", () =>
			verdict === "approve" ? approve() : reject(action),
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
		artifact && actions.length === 0
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
				if (!isQuestion) return decide({ verdict: "approve" });
				const given = answers();
				if (given === null) throw Problem.of("oddAnswers", {});
				return decide({ verdict: "approve", answers: given });
			},
			texts.decide.sending,
		),
	);
	// Nothing else comes again in the same way.
	const isLasting =
		artifact?.payload.kind === "command" || artifact?.payload.kind === "tool";
	const longer =
		plainApprove && artifact && isLasting
			? button("", {
					kind: "plain small longer",
					title: texts.decide.options,
					on: () => longerDialog(item, artifact, decide),
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
 */
function rejectDialog(item, action, decide) {
	const reason = el("textarea", {
		class: "input",
		maxlength: LONGEST_REASON,
		rows: 3,
	});
	const place = el("div", null);
	const go = button(texts.decide.reject, { kind: "bad", type: "submit" });
	if (action) fill(go, captionOf(action));
	else if (artifactOf(item)?.payload.kind === "question")
		fill(go, texts.question.dismiss);
	const send = () =>
		busy(
			go,
			place,
			async () => {
				await decide({
					verdict: "reject",
					reason: reason.value.trim() || undefined,
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
					reason.focus();
				},
			}),
		),
	);
	const label = `${texts.decide.reason} (${texts.decide.optional})`;
	const isQuestion = artifactOf(item)?.payload.kind === "question";
	const title = isQuestion
		? texts.question.dismissTitle
		: texts.decide.rejectTitle;
	const hint = isQuestion
		? texts.question.dismissHint
		: texts.decide.reasonHint;
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
				? [field(label, reason, hint), !isQuestion && quick]
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

/**
 * @param {string} name
 * @param {string} value
 * @param {import('../ui/dom.js').Child} label
 * @param {boolean} checked
 */
function radio(name, value, label, checked) {
	return el(
		"label",
		{ class: "radio" },
		el("input", { type: "radio", name, value, checked }),
		el("span", null, label),
	);
}

/**
 * @param {Item} item
 * @param {import('../core/types.js').Artifact} artifact
 * @param {(choice: Choice) => Promise<void>} decide
 */
function longerDialog(item, artifact, decide) {
	const words =
		artifact.payload.kind === "command" ? grantableWords(artifact) : null;
	const fewest = fewestWords(words ?? []);
	let count = Math.max(Math.min(words?.length ?? 0, 2), fewest);
	const summary = el("p", { class: "note info", role: "status" });
	const place = el("div", null);
	const reason = el("input", { class: "input", maxlength: LONGEST_REASON });
	const wordRow = el("div", {
		class: "words",
		role: "group",
		"aria-label": texts.decide.prefixWords,
	});
	const wordHint = el("p", { class: "hint" }, texts.decide.prefixHint);
	const go = button(texts.decide.approveLonger, {
		kind: "good",
		type: "submit",
		icon: "check",
	});

	const read = () => {
		const data = new FormData(form);
		const lasts = String(data.get("lasts"));
		const isSession = lasts === "session";
		/** @type {import('../core/types.js').Grant} */
		const grant =
			data.get("covers") === "prefix" && words
				? { match: "prefix", argv: words.slice(0, count) }
				: { match: "same" };
		return {
			isSession,
			seconds: isSession ? LONGEST_GRANT : Number(lasts),
			grant,
		};
	};
	const show = () => {
		const { isSession, seconds, grant } = read();
		const named = texts.decide.lasts.find(([value]) => value === seconds)?.[1];
		const end = dateTime(new Date(Date.now() + seconds * 1000).toISOString());
		const time = isSession
			? texts.decide.summary.session(end)
			: texts.decide.summary.lasts(String(named), end);
		fill(
			summary,
			el(
				"span",
				null,
				...(grant.match === "same"
					? [texts.decide.summary.same(time)]
					: [
							texts.decide.summary.prefixBefore,
							el("code", null, marked(shellLine(grant.argv))),
							texts.decide.summary.prefixAfter(time),
						]),
			),
		);
		wordHint.hidden = grant.match === "same";
		fill(
			wordRow,
			grant.match === "prefix" &&
				words?.slice(0, Math.max(MOST_WORDS, fewest)).map((word, at) =>
					el(
						"button",
						{
							type: "button",
							class: "word-choice",
							"aria-pressed": String(at < count),
							on: {
								click: () => {
									count = Math.max(at + 1, fewest);
									show();
									/** @type {HTMLElement} */ (wordRow.children[at]).focus();
								},
							},
						},
						marked(shellLine([word])),
					),
				),
		);
	};
	const form = el(
		"form",
		{
			class: "flat",
			on: {
				change: show,
				submit: (/** @type {Event} */ event) => {
					event.preventDefault();
					const { isSession, seconds, grant } = read();
					busy(
						go,
						place,
						async () => {
							await decide({
								verdict: "approve",
								scope: isSession ? "session" : "timebox",
								lastsSeconds: seconds,
								grant,
								reason: reason.value.trim() || undefined,
							});
							dialog.close();
						},
						texts.decide.sending,
					);
				},
			},
		},
		subjectOf(item),
		el("p", { class: "quiet" }, texts.decide.optionsLead),
		el(
			"fieldset",
			{ class: "field choices" },
			el("legend", null, texts.decide.scope),
			texts.decide.lasts.map(([value, label]) =>
				radio("lasts", String(value), String(label), value === 3600),
			),
			artifact.sessionId !== null &&
				radio("lasts", "session", texts.decide.session, false),
		),
		el(
			"fieldset",
			{ class: "field" },
			el("legend", null, texts.decide.covers),
			radio("covers", "same", texts.decide.same, true),
			words && radio("covers", "prefix", texts.decide.prefix, false),
			wordHint,
			wordRow,
		),
		field(`${texts.decide.note} (${texts.decide.optional})`, reason),
		place,
		el(
			"div",
			{ class: "dialog-actions" },
			summary,
			button(texts.cancel, { on: () => dialog.close() }),
			go,
		),
	);
	const dialog = openDialog(texts.decide.optionsTitle, () => [form]);
	/** @type {HTMLElement | null} */ (
		form.querySelector("input:checked")
	)?.focus();
	show();
}
