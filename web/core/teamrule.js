// Rules that ask teams: whether an approval by this person would count, by the newest states of the
// teams that this device knows.

import { readTime } from "./canonical.js";
import { callDeadline } from "./gateway.js";
import { asProblem, Problem } from "./problem.js";
import { groupsOf, ruleProblem, teamsOf } from "./rule.js";
import { followTo, hasDevice } from "./teams.js";

/** @typedef {import('./rule.js').RuleSubject} RuleSubject */
/** @typedef {import('./team.js').TeamChain} TeamChain */
/** @typedef {import('./types.js').ApprovalRule} ApprovalRule */
/** @typedef {import('./types.js').TeamState} TeamState */
/** @typedef {import('./types.js').TeamSeat} TeamSeat */

/**
 * Why an approval by this person would not count; and the teams of the rule that this device knows,
 * which are those that it takes part in.
 * @param {import('./session.js').Session} session
 * @param {ApprovalRule} rule
 * @param {RuleSubject} about
 */
export async function judgeTeamRule(session, rule, about) {
	const deadline = callDeadline();
	/** @type {Map<string, TeamChain>} */
	const teams = new Map();
	/** @type {Set<string>} */
	const others = new Set();
	/** @type {Problem | null} */
	let problem = null;
	for (const head of teamsOf(rule)) {
		if (others.has(head.teamId)) continue;
		try {
			const chain = await followTo(session, head, deadline);
			if (chain === null) others.add(head.teamId);
			else teams.set(head.teamId, chain);
		} catch (error) {
			if (!(error instanceof Problem)) throw error;
			problem ??= error;
		}
	}
	const here = { deviceId: session.identity.deviceId, now: Date.now() };
	return {
		problem: problem ?? teamRuleProblem(rule, about, teams, here),
		teams,
	};
}

/**
 * @param {ApprovalRule} rule
 * @param {RuleSubject} about
 * @param {Map<string, TeamChain>} teams
 * @param {{ deviceId: string, now: number }} here
 * @returns {Problem | null}
 */
export function teamRuleProblem(rule, about, teams, here) {
	const { approverId, enforcerId, operators = [] } = about;
	const { seat: seatId } = rule;
	if (rule.enforcerId !== enforcerId) return Problem.of("ruleOfOther", {});
	let isSeated = false;
	for (const head of teamsOf(rule)) {
		const chain = teams.get(head.teamId);
		// Teams of other people are not known here.
		if (chain === undefined) continue;
		const team = chain.newest;
		const problem = headProblem(chain, head);
		if (problem !== null) return problem;
		const isSeparate = operators.every((id) => rule.notBy.includes(id));
		if (isBelow(rule, team) || (team.minimum.separate && !isSeparate))
			return Problem.of("belowMinimum", { team: team.name });
		const seat = team.seats.find((it) => it.approverId === seatId);
		if (seat === undefined) continue;
		if (!mayDecide(seat, approverId, here))
			return seatId === approverId
				? Problem.of("notOnSeat", { team: team.name })
				: Problem.of("otherSeat", { seat: seat.approverId });
		isSeated = true;
	}
	return teams.size === 0 && seatId === approverId && !isNamed(rule, approverId)
		? Problem.of("teamUnknown", {})
		: ruleProblem(rule, { ...about, isSeated });
}

/**
 * @param {TeamChain} chain
 * @param {import('./types.js').TeamHead} head
 */
function headProblem(chain, head) {
	try {
		const { name: team } = chain.newest;
		return chain.knows(head) ? null : Problem.of("teamWithheld", { team });
	} catch (error) {
		return asProblem(error);
	}
}

/**
 * @param {ApprovalRule} rule
 * @param {string} approverId
 */
function isNamed({ asks }, approverId) {
	return asks.flatMap(groupsOf).some(({ from }) => from.includes(approverId));
}

/**
 * Whether this device decides on a seat: as its member, or as the stand-in.
 * @param {TeamSeat} seat
 * @param {string} approverId
 * @param {{ deviceId: string, now: number }} here
 */
function mayDecide({ standIn, ...seat }, approverId, { deviceId, now }) {
	if (seat.approverId === approverId) return hasDevice(seat, deviceId);
	return (
		standIn?.approverId === approverId &&
		hasDevice(standIn, deviceId) &&
		Number(readTime(standIn.from)) <= now &&
		now < Number(readTime(standIn.until))
	);
}

/**
 * Whether a rule demands less than a team whose people it asks.
 * @param {ApprovalRule} rule
 * @param {TeamState} team
 */
function isBelow({ asks, rejections, comment }, { teamId, minimum }) {
	const own = asks.filter((ask) =>
		groupsOf(ask).some(({ team }) => team?.teamId === teamId),
	);
	return (
		own.some(({ approvals }) => approvals < minimum.approvals) ||
		rejections > minimum.rejections ||
		!(["none", comment].includes(minimum.comment) || comment === "always")
	);
}
