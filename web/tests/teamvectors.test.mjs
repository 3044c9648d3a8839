// Page and terminal judge teams alike: `node --test web/tests/`.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { canonical, parse } from "../core/canonical.js";
import { Problem } from "../core/problem.js";
import { readRule } from "../core/rule.js";
import { parseState } from "../core/team.js";
import { parseTeamLink, receiveConsent } from "../core/teamconsent.js";
import { teamRuleProblem } from "../core/teamrule.js";
import { chainOf, read } from "./teams.mjs";

const file = new URL("../../tests/vectors/team.json", import.meta.url);
const vectors = existsSync(file)
	? JSON.parse(readFileSync(file, "utf8"))
	: null;
const options = { skip: vectors === null };
const codeOf = (error) => {
	assert.ok(error instanceof Problem, String(error));
	return error.code;
};

test("chains of states, and what does not follow", options, async () => {
	assert.ok(vectors.chains.length > 10);
	for (const { name, states, head, refusal } of vectors.chains) {
		const followed = refusal === null ? states : states.slice(0, -1);
		const chain = await chainOf(...followed);
		assert.deepEqual(chain.head, head, name);
		if (refusal === null) continue;
		const last = read(states[states.length - 1]);
		const code = await last
			.then((it) => chain.follow(it))
			.then(() => null, codeOf);
		if (refusal === "fork") assert.equal(code, "teamFork", name);
		else assert.ok(code !== null && code !== "teamFork", name);
		assert.deepEqual(chain.head, head, name);
	}
});

test("states of a wrong form", options, async () => {
	assert.ok(vectors.states.length > 10);
	for (const { name, state } of vectors.states)
		await assert.rejects(
			async () => parseState(parse("team", JSON.stringify(state))),
			(error) => codeOf(error) !== null,
			name,
		);
});

test("consents to an invitation", options, async () => {
	const { link, invited, tenantId, rows } = vectors.consents;
	const about = { tenantId, approverId: invited };
	for (const { name, signed, isRefused } of rows) {
		const code = await receiveConsent(
			parseTeamLink(link),
			about,
			parse("answer", canonical(signed)),
		).then(() => null, codeOf);
		assert.equal(code !== null, isRefused, name);
	}
});

test("rules that ask a team", options, async () => {
	const codes = {
		seat: "otherSeat",
		notAsked: "notInRule",
		notBy: "excludedByRule",
		enforcer: "ruleOfOther",
		minimum: "belowMinimum",
		teamWithheld: "teamWithheld",
		teamFork: "teamFork",
	};
	const { enforcerId, states, rows } = vectors.approvals;
	const chain = await chainOf(...states);
	const teams = new Map([[chain.newest.teamId, chain]]);
	for (const row of rows) {
		const { name, approverId, deviceId, operators, at, refusal } = row;
		const extensions = canonical({ "countersign.rule": row.rule });
		const rule = readRule(parse("artifact", extensions));
		const about = { approverId, enforcerId, operators };
		const here = { deviceId, now: Date.parse(at) };
		const problem = teamRuleProblem(rule, about, teams, here);
		// Why one’s own device does not decide on one’s own seat is told apart here.
		const code = problem?.code === "notOnSeat" ? "otherSeat" : problem?.code;
		assert.equal(code ?? null, refusal === null ? null : codes[refusal], name);
	}
});
