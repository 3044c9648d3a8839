// The rule of a request: whose approvals its enforcer asks for, and on which conditions. It is part
// of the artifact, so every decision signs it. The enforcer judges by its own copy; this keeps a
// person from giving an approval that would not count.

import { fromBase64urlOf } from "./bytes.js";
import { isId, Reader } from "./canonical.js";
import { Problem } from "./problem.js";

/** @typedef {import('./json.js').Node} Node */
/** @typedef {import('./types.js').ApprovalAsk} ApprovalAsk */
/** @typedef {import('./types.js').ApprovalRule} ApprovalRule */
/** @typedef {import('./types.js').Choice} Choice */
/** @typedef {import('./types.js').Verdict} Verdict */
/** @typedef {ApprovalRule | 'unknown' | null} ReadRule */

export const RULE = "countersign.rule";
const WHAT = "rule";
const MAX_PEOPLE = 64;
const MAX_ASKS = 16;
const MAX_STEPS = 8;
const MAX_AFTER_SECONDS = 24 * 60 * 60;
const SET_BYTES = 16;
const COMMENTS = /** @type {const} */ (["none", "reject", "approve", "always"]);
/** White space, separators, and characters that nobody sees. */
const BLANK = /^[\s\p{Z}\p{C}]*$/u;

/**
 * The rule of an artifact: null if it has none, `unknown` if this page does not know its version.
 * @param {Node | undefined} extensions
 * @returns {ReadRule}
 */
export function readRule(extensions) {
	const named =
		extensions && new Reader("artifact", extensions).optionalObject(RULE);
	if (named === undefined) return null;
	const reader = new Reader(WHAT, named);
	if (reader.required("v", "1").value !== 1) return "unknown";
	const nodes = reader.array("asks");
	if (nodes.length < 1 || nodes.length > MAX_ASKS)
		throw reader.invalid("asks", `1..${MAX_ASKS}`);
	/** @type {ApprovalAsk[]} */
	const asks = [];
	for (const [at, node] of nodes.entries()) {
		const ask = readAsk(node, `/asks/${at}`);
		if (ask === null) return "unknown";
		asks.push(ask);
	}
	const set = reader.string("set");
	fromBase64urlOf(WHAT, set, SET_BYTES);
	const rule = {
		enforcerId: reader.id("enforcerId"),
		set,
		seat: reader.optional("seat") === undefined ? null : reader.id("seat"),
		asks,
		rejections: readCount(reader, "rejections", MAX_PEOPLE),
		comment: reader.oneOf("comment", COMMENTS),
		notBy:
			reader.optional("notBy") === undefined ? [] : readPeople(reader, "notBy"),
	};
	reader.finish();
	const people = new Set(asks.flatMap(peopleOf));
	if (people.size > MAX_PEOPLE)
		throw reader.invalid("asks", `<= ${MAX_PEOPLE}`);
	// One exchange has one decision. Where several are needed, each person has an exchange.
	const needsSeat = needsOthers(rule) || rule.rejections > 1;
	if (rule.seat === null ? needsSeat : !people.has(rule.seat))
		throw reader.invalid("seat", "one of the people");
	return rule;
}

/**
 * Null: people of a team, which a later version of this page knows.
 * @param {Node} node
 * @param {string} pointer
 * @returns {ApprovalAsk | null}
 */
function readAsk(node, pointer) {
	const reader = new Reader(WHAT, node, pointer);
	const hasSteps = reader.optional("escalate") !== undefined;
	const steps = (hasSteps ? reader.array("escalate") : []).map(
		(step, at) => new Reader(WHAT, step, `${pointer}/escalate/${at}`),
	);
	if (hasSteps && (steps.length < 1 || steps.length > MAX_STEPS))
		throw reader.invalid("escalate", `1..${MAX_STEPS}`);
	if ([reader, ...steps].some(({ members }) => members.has("team")))
		return null;
	const ask = {
		approvals: readCount(reader, "approvals", MAX_PEOPLE),
		from: readPeople(reader, "from"),
		escalate: steps.map((step) => ({
			after: readCount(step, "after", MAX_AFTER_SECONDS),
			from: readPeople(step, "from"),
		})),
	};
	for (const each of [reader, ...steps]) each.finish();
	const times = ask.escalate.map(({ after }) => after);
	if (times.some((after, at) => at > 0 && after <= times[at - 1]))
		throw reader.invalid("escalate", "in the order of time");
	const reachable = new Set(peopleOf(ask)).size;
	if (ask.approvals > reachable)
		throw reader.invalid("approvals", `<= ${reachable}`);
	return ask;
}

/**
 * @param {Reader} reader
 * @param {string} name
 * @param {number} most
 */
function readCount(reader, name, most) {
	const expected = `1..${most}`;
	const { value } = reader.required(name, expected);
	const isCount = typeof value === "number" && Number.isInteger(value);
	if (!isCount || value < 1 || value > most)
		throw reader.invalid(name, expected);
	return value;
}

/**
 * @param {Reader} reader
 * @param {string} name
 */
function readPeople(reader, name) {
	const people = reader.array(name).flatMap(({ value }) => {
		if (typeof value !== "string" || !isId(value))
			throw reader.invalid(name, "id[]");
		return value;
	});
	if (new Set(people).size !== people.length)
		throw reader.invalid(name, "no id twice");
	if (people.length < 1 || people.length > MAX_PEOPLE)
		throw reader.invalid(name, `1..${MAX_PEOPLE}`);
	return people;
}

/** @param {ApprovalAsk} ask */
function peopleOf({ from, escalate }) {
	return [...from, ...escalate.flatMap((step) => step.from)];
}

/**
 * Why an approval by this person would not count, as far as the rule says. Null: it would. Where the
 * rule excludes anybody, the operators that this device knows are excluded too.
 * @param {ReadRule} rule
 * @param {{ approverId: string, enforcerId: string, operators?: string[] }} about
 * @returns {Problem | null}
 */
export function ruleProblem(rule, { approverId, enforcerId, operators = [] }) {
	if (rule === null) return null;
	if (rule === "unknown") return Problem.of("version", { what: WHAT });
	const { seat, asks, notBy } = rule;
	if (rule.enforcerId !== enforcerId) return Problem.of("ruleOfOther", {});
	if (seat !== null && seat !== approverId)
		return Problem.of("otherSeat", { seat });
	if (!asks.some((ask) => peopleOf(ask).includes(approverId)))
		return Problem.of("notInRule", {});
	const excluded = notBy.length > 0 ? [...notBy, ...operators] : [];
	return excluded.includes(approverId)
		? Problem.of("excludedByRule", {})
		: null;
}

/**
 * Refuses an approval that would not count. A rejection always counts, also without a comment.
 * @param {ReadRule} rule
 * @param {{ approverId: string, enforcerId: string, operators?: string[] }} about
 * @param {Choice} choice
 */
export function checkRule(rule, about, { verdict, scope = "once", reason }) {
	if (verdict === "reject") return;
	const problem = ruleProblem(rule, about);
	if (problem !== null) throw Problem.of("notApprovable", { problem });
	if (wantsComment(rule, verdict) && isBlank(reason ?? ""))
		throw Problem.of("commentMissing", {});
	if (scope !== "once" && !allowsGrant(rule)) throw Problem.of("ruleOnce", {});
}

/**
 * @param {ReadRule} rule
 * @param {Verdict} verdict
 */
export function wantsComment(rule, verdict) {
	if (rule === null || rule === "unknown") return false;
	return rule.comment === "always" || rule.comment === verdict;
}

/** @param {string} text */
export function isBlank(text) {
	return BLANK.test(text);
}

/**
 * Whether one approval is not enough.
 * @param {ReadRule} rule
 */
export function needsOthers(rule) {
	if (rule === null || rule === "unknown") return false;
	return (
		rule.asks.length > 1 || rule.asks.some(({ approvals }) => approvals > 1)
	);
}

/**
 * Whether an approval may permit more than this request. No enforcer keeps a grant that is given
 * under a rule.
 * @param {ReadRule} rule
 */
export function allowsGrant(rule) {
	return rule === null;
}
