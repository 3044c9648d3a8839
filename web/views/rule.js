// The rule of a request in one sentence, and the comment that it may require.

import { Problem } from "../core/problem.js";
import { groupsOf, isBlank } from "../core/rule.js";
import { pageLocale } from "../texts/language.js";
import { texts } from "../texts.js";
import { el } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { markedName } from "../ui/marked.js";
import { field } from "../ui/parts.js";

/** @typedef {import('../core/types.js').ApprovalAsk} ApprovalAsk */
/** @typedef {import('../core/types.js').ApprovalRule} ApprovalRule */
/** @typedef {import('../core/types.js').AskedPeople} AskedPeople */
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
 * @param {(asked: AskedPeople) => boolean} isAsked
 * @param {(asked: AskedPeople) => string} people
 */
function askClauses(ask, isAsked, people) {
	const { rule } = texts;
	const { approvals, escalate } = ask;
	const isOne = approvals > 1 && groupsOf(ask).some(isAsked);
	const said = isOne ? rule.oneOf : rule.approvals;
	return [
		said(approvals, people(ask)),
		...escalate.map((step) =>
			rule.later(
				duration(step.after),
				people(step),
				step.team ? 1 : step.from.length,
			),
		),
	];
}

/**
 * @param {ApprovalRule} rule
 * @param {(name: string) => string} [spell]
 * @param {Record<string, string>} [teams] names of those that this device takes part in, by their ids
 */
export function ruleSentence(
	{ asks, seat, notBy, rejections, comment },
	spell = (name) => name,
	teams = {},
) {
	const { rule } = texts;
	const nameOf = (/** @type {AskedPeople} */ { team }) =>
		team !== null && Object.hasOwn(teams, team.teamId)
			? teams[team.teamId]
			: null;
	const people = (/** @type {string[]} */ names) =>
		rule.people(names.map(spell));
	const asked = (/** @type {AskedPeople} */ group) => {
		const name = nameOf(group);
		if (name !== null) return spell(name);
		return group.team ? rule.otherTeam : people(group.from);
	};
	const isAsked = (/** @type {AskedPeople} */ group) =>
		nameOf(group) !== null || (seat !== null && group.from.includes(seat));
	const sentence = [
		...asks.flatMap((ask) => askClauses(ask, isAsked, asked)),
		...(notBy.length > 0 ? [rule.notBy(people(notBy))] : []),
		...(rejections > 1 ? [rule.rejections(rejections)] : []),
		...(comment === "none" ? [] : [rule.comment[comment]]),
	].join("; ");
	return `${sentence.slice(0, 1).toLocaleUpperCase(pageLocale())}${sentence.slice(1)}.`;
}

/**
 * The sentence, with each name set apart: a name may have words of its own.
 * @param {Artifact} artifact
 * @param {Record<string, string>} [teams]
 */
export function ruleView({ rule }, teams) {
	if (rule === null || rule === "unknown") return null;
	// No id and no name of a team has this character.
	const spell = (/** @type {string} */ name) => `\0${name}\0`;
	const parts = ruleSentence(rule, spell, teams).split("\0");
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
