// Questions of an agent with their choices, complete.

import { texts } from "../texts.js";
import { el } from "../ui/dom.js";
import { marked } from "../ui/marked.js";

/** @typedef {import('../core/types.js').JsonObject} JsonObject */
/** @typedef {{ label: string, description?: string }} Choice */
/** @typedef {{ question: string, header?: string, multiSelect?: boolean, options: Choice[] }} Question */

/**
 * Whether it has these members only, each as it should be. Anything else is shown as it is.
 * @param {any} value
 * @param {Record<string, (member: any) => boolean>} members
 */
function isShaped(value, members) {
	return (
		value !== null &&
		typeof value === "object" &&
		Object.keys(value).every((name) => Object.hasOwn(members, name)) &&
		Object.entries(members).every(([name, isRight]) => isRight(value[name]))
	);
}

const isText = (/** @type {unknown} */ value) => typeof value === "string";
const maybe =
	(/** @type {(value: any) => boolean} */ isRight) =>
	(/** @type {unknown} */ value) =>
		value === undefined || isRight(value);

const isChoice = (/** @type {unknown} */ value) =>
	isShaped(value, { label: isText, description: maybe(isText) });
const isQuestion = (/** @type {unknown} */ value) =>
	isShaped(value, {
		question: isText,
		header: maybe(isText),
		multiSelect: maybe((one) => typeof one === "boolean"),
		options: (list) => Array.isArray(list) && list.every(isChoice),
	});

/** @param {JsonObject} input */
export function questionPart(input) {
	const isWhole = isShaped(input, {
		questions: (list) => Array.isArray(list) && list.every(isQuestion),
	});
	if (!isWhole) return null;
	const list = /** @type {Question[]} */ (
		/** @type {unknown} */ (input.questions)
	);
	const element = el(
		"section",
		{
			class: "card content card-body",
			"aria-label": texts.request.contentOf(texts.kinds.question),
		},
		list.map(questionView),
	);
	return { element, start: () => {}, dispose: () => {} };
}

/** @param {Question} question */
function questionView({ question, header, multiSelect, options }) {
	return el(
		"div",
		{ class: "question stack tight" },
		el(
			"div",
			{ class: "row" },
			header && el("span", { class: "chip accent" }, marked(header)),
			el(
				"span",
				{ class: "fine quiet" },
				texts.questions[multiSelect ? "several" : "one"],
			),
		),
		el("h2", null, marked(question)),
		el(
			"ul",
			{ class: "choices-list" },
			options.map(({ label, description }) =>
				el(
					"li",
					null,
					el("strong", null, marked(label)),
					description && el("p", { class: "quiet" }, marked(description)),
				),
			),
		),
	);
}
