// Requests that ask a team, from the gateway to the signature: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { canonical } from "../core/canonical.js";
import { isApprovable } from "../ui/selection.js";
import { fakeDocument } from "./elements.mjs";
import {
	APPROVE,
	away,
	bob,
	carol,
	chainOf,
	HOUR,
	hintsOf,
	next,
	owner,
	refused,
	seatOf,
	teamScene,
} from "./teams.mjs";

fakeDocument();
const { ruleSentence } = await import("../views/rule.js");

test("a member approves on the own seat, and names the state that the device knows", async () => {
	const made = await teamScene();
	await made.pin();
	const item = await made.asks();
	assert.equal(item.approvalProblem, null);
	assert.ok(isApprovable(item));
	assert.deepEqual(item.content.artifact.rest, {});
	assert.equal(
		ruleSentence(item.content.artifact.rule, undefined, item.teamNames),
		"One of 2 approvals, from payments; not by erin.",
	);
	await made.model.decide(item, APPROVE);
	assert.deepEqual(await hintsOf(made), { teams: [made.chain.head] });
});

test("a team of others is not named, and asked beside one’s own", async () => {
	const made = await teamScene();
	await made.pin();
	const other = {
		teamId: "AAAAAAAAAAAAAAAAAAAAAA",
		seq: 3,
		digest: "0".repeat(64),
	};
	const steps = { escalate: [{ after: 180, team: other }] };
	const item = await made.asks({}, steps);
	assert.equal(item.approvalProblem, null);
	assert.equal(
		ruleSentence(item.content.artifact.rule, undefined, item.teamNames),
		"One of 2 approvals, from payments; after 3 minutes another team is asked too; not by erin.",
	);
	await made.model.decide(item, APPROVE);
	assert.deepEqual(await hintsOf(made), { teams: [made.chain.head] });
});

test("a newer state that the request names is read, and the decision names it", async () => {
	const made = await teamScene();
	await made.pin();
	const second = await next(made.first, { name: "refunds" }, owner);
	made.serves.states.push(second);
	const { head } = await chainOf(made.first, second);
	const item = await made.asks({}, { team: head });
	assert.equal(item.approvalProblem, null);
	assert.deepEqual(Object.values(item.teamNames), ["refunds"]);
	await made.model.decide(item, APPROVE);
	assert.deepEqual(await hintsOf(made), { teams: [head] });
	assert.equal((await made.store.team(head.teamId)).digests.length, 2);
});

test("the newest state that is known counts, and the decision names it", async () => {
	const made = await teamScene();
	const out = await next(
		made.first,
		{
			seats: made.first.statement.seats.filter(
				({ approverId }) => approverId !== "alice",
			),
		},
		owner,
	);
	await made.pin(await chainOf(made.first, out));
	const item = await made.asks();
	assert.equal(item.approvalProblem.code, "notInRule");
	await assert.rejects(
		made.model.decide(item, APPROVE),
		refused("notApprovable"),
	);
	await made.model.decide(item, { verdict: "reject" });
	assert.equal(JSON.parse(made.sent[0]).decision, "reject");
});

test("a team that this person has left is one of others", async () => {
	const made = await teamScene();
	await made.pin();
	const out = await next(made.first, { name: "refunds" }, owner);
	const { head } = await chainOf(made.first, out);
	made.leave();
	const item = await made.asks({
		asks: [
			{ approvals: 1, team: head },
			{ approvals: 1, from: ["alice", "bob"] },
		],
	});
	assert.equal(item.approvalProblem, null);
	assert.deepEqual(item.teamNames, {});
	await made.model.decide(item, APPROVE);
	assert.equal(JSON.parse(made.sent[0]).policyHints, undefined);
	const other = await teamScene();
	await other.pin();
	other.leave();
	const ofTeam = await other.asks(
		{},
		{ team: { ...other.chain.head, seq: 1, digest: "0".repeat(64) } },
	);
	assert.equal(ofTeam.approvalProblem.code, "teamUnknown");
});

test("a state that the gateway withholds is waited for", async () => {
	const made = await teamScene();
	await made.pin();
	const second = await next(made.first, { name: "refunds" }, owner);
	const { head } = await chainOf(made.first, second);
	const item = await made.asks({}, { team: head });
	assert.equal(item.approvalProblem.code, "teamWithheld");
	await assert.rejects(
		made.model.decide(item, APPROVE),
		refused("notApprovable"),
	);
	made.serves.states.push(second);
	made.model.lookedAt = 0;
	await made.model.refresh();
	const now = made.model.find(item.requestId);
	assert.equal(now.approvalProblem, null);
	assert.notEqual(now.content, item.content);
});

test("a gateway that repeats states is not read for ever", async () => {
	const made = await teamScene();
	await made.pin();
	const { json } = made.session.client;
	made.session.client.json = (it) => json({ path: it.path.split("?")[0] });
	const head = { ...made.chain.head, seq: 1, digest: "0".repeat(64) };
	const item = await made.asks({}, { team: head });
	assert.equal(item.approvalProblem.code, "teamWithheld");
});

test("a head that contradicts what is known is a fork", async () => {
	const made = await teamScene();
	await made.pin();
	const item = await made.asks(
		{},
		{ team: { ...made.chain.head, digest: "0".repeat(64) } },
	);
	assert.equal(item.approvalProblem.code, "teamFork");
});

test("a second history that an owner has signed ends the team here, and is kept", async () => {
	const made = await teamScene();
	const [one, other] = await Promise.all(
		["one", "other"].map((name) => next(made.first, { name }, owner)),
	);
	await made.pin(await chainOf(made.first, one));
	const third = await next(other, {}, owner);
	made.serves.states = [made.first, other, third];
	const { head } = await chainOf(made.first, other, third);
	const item = await made.asks({}, { team: head });
	assert.equal(item.approvalProblem.code, "teamFork");
	assert.equal((await made.store.team(head.teamId)).fork, canonical(third));
	const again = await made.asks();
	assert.equal(again.approvalProblem.code, "teamFork");
});

const CASES = {
	"somebody else’s seat": [{ change: { seat: "bob" } }, "otherSeat"],
	"a seat of nobody": [{ change: { seat: "zoe" } }, "otherSeat"],
	"another enforcer": [{ change: { enforcerId: "prod" } }, "ruleOfOther"],
	"a person that it excludes": [
		{ change: { notBy: ["alice"] } },
		"excludedByRule",
	],
	"an operator, where somebody is excluded": [
		{ operators: ["alice"] },
		"excludedByRule",
	],
	"a rule with fewer approvals than the team’s": [
		{
			content: {
				minimum: {
					approvals: 3,
					rejections: 32,
					comment: "none",
					separate: false,
				},
			},
		},
		"belowMinimum",
	],
	"a rule that is harder to reject": [
		{
			change: { rejections: 2 },
			content: {
				minimum: {
					approvals: 1,
					rejections: 1,
					comment: "none",
					separate: false,
				},
			},
		},
		"belowMinimum",
	],
	"a rule without the team’s comment": [
		{
			change: { comment: "reject" },
			content: {
				minimum: {
					approvals: 1,
					rejections: 32,
					comment: "approve",
					separate: false,
				},
			},
		},
		"belowMinimum",
	],
	"a rule that lets an operator approve": [
		{
			operators: ["olga"],
			content: {
				minimum: {
					approvals: 1,
					rejections: 32,
					comment: "none",
					separate: true,
				},
			},
		},
		"belowMinimum",
	],
	"a rule that excludes the operator": [
		{
			operators: ["erin"],
			content: {
				minimum: {
					approvals: 1,
					rejections: 32,
					comment: "none",
					separate: true,
				},
			},
		},
		null,
	],
	"a stricter rule": [
		{
			change: { comment: "always", rejections: 1 },
			content: {
				minimum: {
					approvals: 2,
					rejections: 1,
					comment: "reject",
					separate: false,
				},
			},
		},
		null,
	],
	"a device that is not on the seat": [
		{ content: { seats: ([olga]) => [olga, seatOf("alice", [carol])] } },
		"notOnSeat",
	],
	"another device on the seat of the stand-in": [
		{
			change: { seat: "bob" },
			content: {
				seats: ([olga]) => [
					olga,
					seatOf("bob", [bob], {
						standIn: {
							approverId: "alice",
							devices: [carol.bundle.text],
							...away(-HOUR, HOUR),
						},
					}),
				],
			},
		},
		"otherSeat",
	],
};

for (const [name, [{ change, content, operators }, code]] of Object.entries(
	CASES,
))
	test(`${code === null ? "approved" : "not approved"}: ${name}`, async () => {
		const made = await teamScene(content);
		await made.pin();
		made.session.enforcers.get("bot").operators = operators;
		const item = await made.asks(change);
		assert.ok(item.content.opened);
		assert.equal(item.approvalProblem?.code ?? null, code);
		if (code === null) return;
		await assert.rejects(
			made.model.decide(item, APPROVE),
			refused("notApprovable"),
		);
		assert.deepEqual(made.sent, []);
	});

test("a rule with a team has one form", async () => {
	for (const [change, ask] of [
		[{}, { from: ["alice"] }],
		[{ seat: undefined }, {}],
		[{}, { team: "payments" }],
		[{}, { team: { teamId: "AA", seq: 0, digest: "0".repeat(64) } }],
		[
			{},
			{
				team: {
					teamId: "AAAAAAAAAAAAAAAAAAAAAA",
					seq: 2048,
					digest: "0".repeat(64),
				},
			},
		],
		[{}, { team: { teamId: "AAAAAAAAAAAAAAAAAAAAAA", seq: 0, digest: "0" } }],
		[
			{},
			{
				team: {
					teamId: "AAAAAAAAAAAAAAAAAAAAAA",
					seq: 0,
					digest: "0".repeat(64),
					name: "x",
				},
			},
		],
	]) {
		const made = await teamScene();
		await made.pin();
		const item = await made.asks(
			JSON.parse(
				JSON.stringify({ ...change, seat: "seat" in change ? null : "alice" }),
			),
			ask,
		);
		assert.equal(item.content.opened, false, JSON.stringify([change, ask]));
	}
});
