// The questions that an agent asks its user: each with its choices, and room for other words. What
// is chosen here is signed with the decision.

import { texts } from "../texts.js";
import { el } from "../ui/dom.js";
import { marked } from "../ui/marked.js";
import { treeView } from "./tree.js";

/** @typedef {import('../core/types.js').JsonObject} JsonObject */
/** @typedef {import('../core/types.js').JsonValue} JsonValue */

/**
 * @typedef {object} Question
 * @property {string} question
 * @property {string | null} header
 * @property {{ label: string, description: string | null }[]} options
 * @property {boolean} isMultiple
 * @property {JsonObject | null} more what is in it besides
 */

const LONGEST_ANSWER = 4000;

/** @param {JsonValue | undefined} value */
function isObject(value) {
	return value !== null && typeof value === "object" && !Array.isArray(value);
}

/**
 * Null: not what the kind promises.
 * @param {JsonValue | undefined} value
 * @returns {Question | null}
 */
function readQuestion(value) {
	if (!isObject(value)) return null;
	const { question, header, options, multiSelect, more, ...rest } =
		/** @type {JsonObject} */ (value);
	if (
		typeof question !== "string" ||
		typeof multiSelect !== "boolean" ||
		(header !== undefined && typeof header !== "string") ||
		!Array.isArray(options) ||
		Object.keys(rest).length > 0
	)
		return null;
	/** @type {Question['options']} */
	const read = [];
	/** @type {JsonObject} */
	const others = isObject(more) ? { .../** @type {JsonObject} */ (more) } : {};
	for (const option of options) {
		if (!isObject(option) || typeof option.label !== "string") return null;
		const { label, description, ...other } =
			/** @type {JsonObject & { label: string }} */ (option);
		if (description !== undefined && typeof description !== "string")
			return null;
		read.push({ label, description: description ?? null });
		if (Object.keys(other).length > 0) others[label] = other.more ?? other;
	}
	return {
		question,
		header: header ?? null,
		options: read,
		isMultiple: multiSelect,
		more: Object.keys(others).length > 0 ? others : null,
	};
}

/**
 * The questions of a payload; null if it cannot be shown as questions.
 * @param {JsonObject} payload
 * @returns {Question[] | null}
 */
export function readQuestions(payload) {
	const { questions } = payload;
	if (!Array.isArray(questions) || questions.length === 0) return null;
	const read = questions.flatMap((one) => readQuestion(one) ?? []);
	return read.length === questions.length ? read : null;
}

/**
 * @param {Question} question
 * @param {number} at
 */
function questionCard(question, at) {
	const { options, isMultiple, header, more } = question;
	const name = `question-${at}`;
	const type = isMultiple ? "checkbox" : "radio";
	const inputs = options.map(() => el("input", { type, name }));
	const other = el("input", { type, name });
	const words = el("textarea", {
		class: "input",
		rows: 2,
		maxlength: LONGEST_ANSWER,
		"aria-label": texts.question.words,
	});
	words.addEventListener("input", () => {
		other.checked = words.value.trim() !== "";
	});
	words.hidden = options.length > 0;
	const tree = more && treeView(more, texts.request.also);
	const element = el(
		"fieldset",
		{ class: "card card-body question-form" },
		el(
			"legend",
			null,
			header !== null && el("span", { class: "chip" }, marked(header)),
			el("span", { class: "asked" }, marked(question.question)),
		),
		isMultiple && el("p", { class: "hint" }, texts.question.several),
		options.map(({ label, description }, index) =>
			el(
				"label",
				{ class: "radio" },
				inputs[index],
				el(
					"span",
					null,
					el("span", null, marked(label)),
					" ",
					description !== null &&
						el("span", { class: "hint" }, marked(description)),
				),
			),
		),
		options.length > 0 &&
			el(
				"label",
				{ class: "radio" },
				other,
				el("span", null, texts.question.other),
			),
		words,
		tree?.element,
	);
	element.addEventListener("change", ({ target }) => {
		words.hidden = options.length > 0 && !other.checked;
		if (target === other && other.checked) words.focus();
	});
	return {
		element,
		start: () => tree?.start(),
		dispose: () => tree?.dispose(),
		/** @returns {string[]} */
		answer: () => {
			const own = words.value.trim();
			const takesOwn = (options.length === 0 || other.checked) && own !== "";
			return [
				...options
					.filter((_, index) => inputs[index].checked)
					.map(({ label }) => label),
				...(takesOwn ? [own] : []),
			];
		},
	};
}

/** @param {Question[]} questions */
export function questionView(questions) {
	const cards = questions.map(questionCard);
	const element = el(
		"section",
		{
			class: "stack questions",
			"aria-label": texts.request.contentOf(texts.kinds.question),
		},
		cards.map((card) => card.element),
	);
	return {
		element,
		start: () => {
			for (const card of cards) card.start();
		},
		dispose: () => {
			for (const card of cards) card.dispose();
		},
		/** Null while a question has no answer. */
		answers: () => {
			const all = cards.map((card) => card.answer());
			return all.every((one) => one.length > 0) ? all : null;
		},
		end: () => {
			for (const card of cards) card.element.disabled = true;
		},
	};
}
