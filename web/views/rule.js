// The rule of a request in one sentence, and the comment that it may require.

import { Problem } from "../core/problem.js";
import { isBlank } from "../core/rule.js";
import { pageLocale } from "../texts/language.js";
import { texts } from "../texts.js";
import { el } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { markedName } from "../ui/marked.js";
import { field } from "../ui/parts.js";

/** @typedef {import('../core/types.js').ApprovalAsk} ApprovalAsk */
/** @typedef {import('../core/types.js').ApprovalRule} ApprovalRule */
/** @typedef {import('../core/types.js').Artifact} Artifact */

const UNITS = /** @type {const} */ ([
	["hour", 3600],
	["minute", 60],
	["second", 1],
]);

/**
 * "3 minutes": in the largest unit that leaves no rest.
 * @param {number} seconds
 */
function duration(seconds) {
	const [unit, length] =
		UNITS.find(([, each]) => seconds % each === 0) ?? UNITS[2];
	return new Intl.NumberFormat(pageLocale(), {
		style: "unit",
		unit,
		unitDisplay: "long",
	}).format(seconds / length);
}

/**
 * @param {ApprovalAsk} ask
 * @param {string | null} seat
 * @param {(names: string[]) => string} people
 */
function askClauses({ approvals, from, escalate }, seat, people) {
	const { rule } = texts;
	const isAsked = [from, ...escalate.map((step) => step.from)].some(
		(names) => seat !== null && names.includes(seat),
	);
	const said = isAsked && approvals > 1 ? rule.oneOf : rule.approvals;
	return [
		said(approvals, people(from)),
		...escalate.map((step) =>
			rule.later(duration(step.after), people(step.from), step.from.length),
		),
	];
}

/**
 * @param {ApprovalRule} rule
 * @param {(name: string) => string} [spell]
 */
export function ruleSentence(
	{ asks, seat, notBy, rejections, comment },
	spell = (name) => name,
) {
	const { rule } = texts;
	const people = (/** @type {string[]} */ names) =>
		rule.people(names.map(spell));
	const sentence = [
		...asks.flatMap((ask) => askClauses(ask, seat, people)),
		...(notBy.length > 0 ? [rule.notBy(people(notBy))] : []),
		...(rejections > 1 ? [rule.rejections(rejections)] : []),
		...(comment === "none" ? [] : [rule.comment[comment]]),
	].join("; ");
	return `${sentence.slice(0, 1).toLocaleUpperCase(pageLocale())}${sentence.slice(1)}.`;
}

/**
 * The sentence, with each name set apart: a name may have words of its own.
 * @param {Artifact} artifact
 */
export function ruleView({ rule }) {
	if (rule === null || rule === "unknown") return null;
	// No id has this character.
	const parts = ruleSentence(rule, (name) => `\0${name}\0`).split("\0");
	return el(
		"p",
		{ class: "rule" },
		icon("info", "small"),
		el(
			"span",
			null,
			parts.map((part, at) =>
				at % 2 === 1 ? el("bdi", null, markedName(part)) : part,
			),
		),
	);
}

/**
 * A labelled field for a comment. `read` gives what was written, and refuses a blank comment where
 * the rule requires one.
 * @param {HTMLInputElement | HTMLTextAreaElement} control
 * @param {string} label
 * @param {{ isRequired: boolean, hint?: string }} options
 */
export function commentField(control, label, { isRequired, hint }) {
	control.setAttribute("aria-required", String(isRequired));
	control.removeAttribute("aria-invalid");
	control.oninput = () => control.removeAttribute("aria-invalid");
	const kind = isRequired ? texts.rule.required : texts.decide.optional;
	return {
		element: field(`${label} (${kind})`, control, hint),
		read: () => {
			const text = control.value.trim();
			if (isRequired && isBlank(text)) {
				control.setAttribute("aria-invalid", "true");
				control.focus();
				throw Problem.of("commentMissing", {});
			}
			return text || undefined;
		},
	};
}
