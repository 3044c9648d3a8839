// The rule of a request: whose approvals its enforcer asks for, and on which conditions. It is part
// of the artifact, so every decision signs it. The enforcer judges by its own copy; this keeps a
// person from giving an approval that would not count.

import { fromBase64urlOf } from "./bytes.js";
import { isId, Reader } from "./canonical.js";
import { Problem } from "./problem.js";

/** @typedef {import('./json.js').Node} Node */
/** @typedef {import('./types.js').ApprovalAsk} ApprovalAsk */
/** @typedef {import('./types.js').ApprovalRule} ApprovalRule */
/** @typedef {import('./types.js').AskedPeople} AskedPeople */
/** @typedef {import('./types.js').Choice} Choice */
/** @typedef {import('./types.js').Verdict} Verdict */
/** @typedef {ApprovalRule | 'unknown' | null} ReadRule */

/**
 * The person of this device, and what it knows of the enforcer and of the teams that a rule names.
 * @typedef {object} RuleSubject
 * @property {string} approverId
 * @property {string} enforcerId
 * @property {string[]} [operators]
 * @property {boolean} [isSeated] the person decides on the seat of the request, as its team says
 */

export const RULE = "countersign.rule";
const WHAT = "rule";
const MAX_PEOPLE = 64;
const MAX_ASKS = 16;
const MAX_STEPS = 8;
const MAX_AFTER_SECONDS = 24 * 60 * 60;
const SET_BYTES = 16;
const TEAM_BYTES = 16;
const MAX_SEQ = 2047;
export const COMMENTS = /** @type {const} */ ([
	"none",
	"reject",
	"approve",
	"always",
]);
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
	for (const [at, node] of nodes.entries())
		asks.push(readAsk(node, `/asks/${at}`));
	const set = reader.string("set");
	fromBase64urlOf(WHAT, set, SET_BYTES);
	const rule = {
		enforcerId: reader.id("enforcerId"),
		set,
		seat: reader.optional("seat") === undefined ? null : reader.id("seat"),
		asks,
		rejections: reader.count("rejections", 1, MAX_PEOPLE),
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
	const hasTeam = teamsOf(rule).length > 0;
	const isSound =
		rule.seat === null
			? !needsSeat && !hasTeam
			: hasTeam || people.has(rule.seat);
	if (!isSound) throw reader.invalid("seat", "one of the people");
	return rule;
}

/**
 * @param {Node} node
 * @param {string} pointer
 * @returns {ApprovalAsk}
 */
function readAsk(node, pointer) {
	const reader = new Reader(WHAT, node, pointer);
	const hasSteps = reader.optional("escalate") !== undefined;
	const steps = (hasSteps ? reader.array("escalate") : []).map(
		(step, at) => new Reader(WHAT, step, `${pointer}/escalate/${at}`),
	);
	if (hasSteps && (steps.length < 1 || steps.length > MAX_STEPS))
		throw reader.invalid("escalate", `1..${MAX_STEPS}`);
	const ask = {
		approvals: reader.count("approvals", 1, MAX_PEOPLE),
		...readAsked(reader),
		escalate: steps.map((step) => ({
			after: step.count("after", 1, MAX_AFTER_SECONDS),
			...readAsked(step),
		})),
	};
	for (const each of [reader, ...steps]) each.finish();
	const times = ask.escalate.map(({ after }) => after);
	if (times.some((after, at) => at > 0 && after <= times[at - 1]))
		throw reader.invalid("escalate", "in the order of time");
	const reachable = new Set(peopleOf(ask)).size;
	const isOfTeam = groupsOf(ask).some(({ team }) => team !== null);
	if (ask.approvals > reachable && !isOfTeam)
		throw reader.invalid("approvals", `<= ${reachable}`);
	return ask;
}

/**
 * People by their ids, or those of a team.
 * @param {Reader} reader
 * @returns {AskedPeople}
 */
function readAsked(reader) {
	const named = reader.optionalObject("team");
	if (named === undefined)
		return { from: readPeople(reader, "from"), team: null };
	return { from: [], team: readTeamHead(named, `${reader.pointer}/team`) };
}

/**
 * A state of a team, as an enforcer or a device knows it.
 * @param {Node} node
 * @param {string} pointer
 */
function readTeamHead(node, pointer) {
	const reader = new Reader(WHAT, node, pointer);
	const head = {
		teamId: reader.string("teamId"),
		seq: reader.count("seq", 0, MAX_SEQ),
		digest: reader.hash("digest"),
	};
	fromBase64urlOf(WHAT, head.teamId, TEAM_BYTES);
	reader.finish();
	return head;
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

/**
 * Those who are asked at once, and those of each step.
 * @param {ApprovalAsk} ask
 * @returns {AskedPeople[]}
 */
export function groupsOf(ask) {
	return [ask, ...ask.escalate];
}

/** @param {ApprovalAsk} ask */
function peopleOf(ask) {
	return groupsOf(ask).flatMap(({ from }) => from);
}

/**
 * The states of teams that a rule names.
 * @param {ReadRule} rule
 */
export function teamsOf(rule) {
	if (rule === null || rule === "unknown") return [];
	return rule.asks.flatMap(groupsOf).flatMap(({ team }) => team ?? []);
}

/**
 * Why an approval by this person would not count, as far as the rule says. Null: it would. Where the
 * rule excludes anybody, the operators that this device knows are excluded too.
 * @param {ReadRule} rule
 * @param {RuleSubject} about
 * @returns {Problem | null}
 */
export function ruleProblem(rule, about) {
	if (rule === null) return null;
	if (rule === "unknown") return Problem.of("version", { what: WHAT });
	const { approverId, operators = [], isSeated = false } = about;
	const { seat, asks, notBy } = rule;
	if (rule.enforcerId !== about.enforcerId)
		return Problem.of("ruleOfOther", {});
	if (!isSeated && seat !== null && seat !== approverId)
		return Problem.of("otherSeat", { seat });
	const isAsked = asks.some((ask) => peopleOf(ask).includes(approverId));
	if (!isSeated && !isAsked) return Problem.of("notInRule", {});
	const excluded = notBy.length > 0 ? [...notBy, ...operators] : [];
	const isExcluded = [approverId, seat ?? approverId].some((id) =>
		excluded.includes(id),
	);
	return isExcluded ? Problem.of("excludedByRule", {}) : null;
}

/**
 * Refuses an approval that would not count. A rejection always counts, also without a comment.
 * @param {ReadRule} rule
 * @param {Problem | null} problem why an approval by this person does not count
 * @param {Choice} choice
 */
export function checkRule(rule, problem, { verdict, scope = "once", reason }) {
	if (verdict === "reject") return;
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
