// An approval that reaches further than its request: for how long, and what else it permits.

import { coveredEdits, editScope, grantableWords } from "../core/grants.js";
import { mayBeFree, patternProblem } from "../core/words.js";
import { texts } from "../texts.js";
import { dateTime } from "../ui/clock.js";
import { openDialog } from "../ui/dialog.js";
import { el, fill } from "../ui/dom.js";
import { grantText } from "../ui/granttext.js";
import { marked } from "../ui/marked.js";
import { busy, button, field } from "../ui/parts.js";
import { shellWord } from "../ui/shellwords.js";

/** @typedef {import('../core/types.js').Item} Item */
/** @typedef {import('../core/types.js').Choice} Choice */
/** @typedef {import('../core/types.js').Grant} Grant */

const LONGEST_REASON = 4000;
const LONGEST_GRANT = 86_400;
const MOST_WORDS = 64;

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
 * The words of a command as buttons: pressed ones must be the same, the others may be any word.
 * @param {string[]} words
 * @param {() => void} changed
 */
function wordChoice(words, changed) {
	const free = words.map(() => false);
	const pattern = () => words.map((word, at) => (free[at] ? null : word));
	const more = el("input", { type: "checkbox", name: "more" });
	const further = el(
		"label",
		{ class: "radio" },
		more,
		el("span", null, texts.decide.moreWords),
	);
	const row = el("div", {
		class: "words",
		role: "group",
		"aria-label": texts.decide.wordsLabel,
	});
	/** @param {number} at */
	const isChoosable = (at) => {
		const tried = pattern();
		tried[at] = null;
		return (
			at > 0 &&
			mayBeFree(words[0], words[at]) &&
			patternProblem(tried, more.checked) === null
		);
	};
	const render = () => {
		more.disabled = patternProblem(pattern(), true) !== null;
		if (more.disabled) more.checked = false;
		fill(
			row,
			...words.map((word, at) =>
				el(
					"button",
					{
						type: "button",
						class: "word-choice",
						"aria-pressed": String(!free[at]),
						disabled: !free[at] && !isChoosable(at),
						on: {
							click: () => {
								free[at] = !free[at];
								changed();
								/** @type {HTMLElement} */ (row.children[at]).focus();
							},
						},
					},
					marked(shellWord(word)),
				),
			),
			further,
		);
	};
	const element = el(
		"div",
		{ class: "stack tight" },
		el("p", { class: "hint" }, texts.decide.wordsHint),
		row,
	);
	return {
		element,
		render,
		/** @returns {Grant} */
		grant: () => ({
			match: "words",
			argv: pattern(),
			...(more.checked ? { more: /** @type {const} */ (true) } : {}),
		}),
	};
}

/**
 * @param {Item} item
 * @param {import('../core/types.js').Artifact} artifact
 * @param {HTMLElement} subject
 * @param {(choice: Choice) => Promise<void>} decide
 */
export function longerDialog(item, artifact, subject, decide) {
	const isCommand = artifact.payload.kind === "command";
	const words = isCommand ? grantableWords(artifact) : null;
	const edits = coveredEdits(artifact);
	const files = editScope(artifact)?.files.length ?? 0;
	const choice =
		words !== null && words.length <= MOST_WORDS
			? wordChoice(words, () => show())
			: null;
	const summary = el("p", { class: "note info", role: "status" });
	const place = el("div", null);
	const reason = el("input", { class: "input", maxlength: LONGEST_REASON });
	const go = button(texts.decide.approveLonger, {
		kind: "good",
		type: "submit",
		icon: "check",
	});

	const read = () => {
		const data = new FormData(form);
		const covers = String(data.get("covers"));
		/** @type {Grant} */
		const grant =
			covers === "words" && choice
				? choice.grant()
				: covers === "file" || covers === "project"
					? { match: covers }
					: { match: "same" };
		const lasts = isForEdits(grant) ? "session" : String(data.get("lasts"));
		const isSession = lasts === "session";
		return {
			isSession,
			seconds: isSession ? LONGEST_GRANT : Number(lasts),
			grant,
		};
	};
	const show = () => {
		choice?.render();
		const { isSession, seconds, grant } = read();
		for (const input of times.querySelectorAll("input")) {
			// Edits are permitted for a session only.
			input.disabled = isForEdits(grant) && input.value !== "session";
			if (isForEdits(grant)) input.checked = input.value === "session";
		}
		const named = texts.decide.lasts.find(([value]) => value === seconds)?.[1];
		const end = dateTime(new Date(Date.now() + seconds * 1000).toISOString());
		const said = texts.decide.summary;
		const time = isSession ? said.session(end) : said.lasts(String(named), end);
		fill(
			summary,
			el(
				"span",
				null,
				...(grant.match === "same"
					? [said.same(time)]
					: [
							said.covers,
							...grantText(grant, artifact),
							isForEdits(grant) ? said.edits(time) : said.words(time),
						]),
			),
		);
		if (choice) choice.element.hidden = grant.match !== "words";
	};
	const hasEdits = edits.length > 0;
	const times = el(
		"fieldset",
		{ class: "field choices" },
		el("legend", null, texts.decide.scope),
		texts.decide.lasts.map(([value, label]) =>
			radio("lasts", String(value), String(label), !hasEdits && value === 3600),
		),
		artifact.sessionId !== null &&
			radio("lasts", "session", texts.decide.session, hasEdits),
	);
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
		subject,
		el("p", { class: "quiet" }, texts.decide.optionsLead),
		el(
			"fieldset",
			{ class: "field" },
			el("legend", null, texts.decide.covers),
			edits.map((match, at) =>
				radio(
					"covers",
					match,
					match === "project"
						? texts.decide.project
						: files > 1
							? texts.decide.files
							: texts.decide.file,
					at === 0,
				),
			),
			radio("covers", "same", texts.decide.same, !hasEdits),
			choice && radio("covers", "words", texts.decide.words, false),
			choice?.element,
		),
		times,
		item.isPaired &&
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

/** @param {Grant} grant */
function isForEdits({ match }) {
	return match === "file" || match === "project";
}
