// Decisions of this device do not change with later answers of the gateway: `node --test
// web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../core/problem.js";

globalThis.WebSocket ??= { OPEN: 1 };

const { REQUEST, request, scene } = await import("./hostile.mjs");

/** A device that has approved a request, and a decision that nobody signed. */
async function approved() {
	const all = await scene();
	const shown = await all.shows(await request(all.enforcers.bot, all.device));
	await all.model.decide(shown, { verdict: "approve", reason: "fine" });
	const own = JSON.parse(all.sent[0]);
	return {
		...all,
		shown,
		own,
		forged: { ...own, decision: "reject", signature: "A".repeat(86) },
	};
}

const verdictOf = ({ decisions }) =>
	JSON.parse(decisions.get(REQUEST).body).decision;

test("the own decision, delivered", async () => {
	const all = await approved();
	all.says.exchange = { state: "delivered", decision: all.own };
	await all.model.ask(REQUEST);
	const item = all.model.find(REQUEST);
	assert.deepEqual(
		[item.state, item.gatewaySays, item.decision.isOwn, item.decision.reason],
		["delivered", undefined, true, "fine"],
	);
	assert.equal(all.decisions.get(REQUEST).state, "delivered");
});

test("another decision than the own one is what the gateway says, and no more", async () => {
	const all = await approved();
	for (const [state, decision] of [
		["delivered", all.forged],
		["decided", all.forged],
		["withdrawn", undefined],
		["expired", undefined],
	]) {
		all.says.exchange = { state, ...(decision && { decision }) };
		await all.model.ask(REQUEST);
		const item = all.model.find(REQUEST);
		assert.deepEqual(
			[
				item.state,
				item.decision.verdict,
				item.decision.isOwn,
				item.gatewaySays,
			],
			["decided", "approve", true, state],
		);
		assert.equal(verdictOf(all), "approve");
	}
	// It can come to its senses.
	all.says.exchange = { state: "decided", decision: all.own };
	await all.model.ask(REQUEST);
	assert.equal(all.model.find(REQUEST).gatewaySays, undefined);
});

test("a record of the past is kept when its request is shown again", async () => {
	const all = await approved();
	all.model.finished = [];
	all.model.items.clear();
	const unreadable = {
		enforcerId: "stranger",
		artifact: {
			artifactType: "command.review",
			artifactHash: all.shown.artifactHash,
			expiresAt: "x",
			repoRef: "repo",
		},
	};
	await all.shows({
		msgId: "m9",
		msgType: "approval.request",
		requestId: REQUEST,
		body: unreadable,
	});
	all.says.exchange = { state: "delivered", decision: all.forged };
	await all.model.ask(REQUEST);
	assert.equal(verdictOf(all), "approve");
	assert.ok(all.decisions.get(REQUEST).artifact !== null);
	assert.equal(all.model.find(REQUEST).gatewaySays, "delivered");
});

test("another artifact under the id of one that was decided cannot be approved", async () => {
	const all = await approved();
	all.model.finished = [];
	const item = await all.shows(
		await request(all.enforcers.bot, all.device, {
			payload: { kind: "command", command: "rm" },
		}),
	);
	assert.equal(item.content.problem?.code, "replaced");
});

test("a decision that only claims to be of this device is not its own", async () => {
	const all = await scene();
	const shown = await all.shows(await request(all.enforcers.bot, all.device));
	const { own } = await approved();
	const forged = {
		...own,
		artifactHash: shown.artifactHash,
		signerKeyId: all.device.bundle.deviceId,
	};
	all.says.exchange = { state: "decided", decision: forged };
	await all.model.ask(REQUEST);
	const { decision } = all.model.find(REQUEST);
	assert.deepEqual([decision.isOwn, decision.isVerified], [false, false]);
});

test("a decision that was accepted counts, also if it cannot be kept", async () => {
	const all = await scene();
	const shown = await all.shows(await request(all.enforcers.bot, all.device));
	const keep = all.session.store.keepDecision;
	all.session.store.keepDecision = () =>
		Promise.reject(Problem.of("storage", { cause: "full" }));
	await all.model.decide(shown, { verdict: "approve" });
	const own = JSON.parse(all.sent[0]);
	assert.deepEqual(
		[all.model.find(REQUEST).state, all.model.find(REQUEST).isUnkept],
		["decided", true],
	);
	all.says.exchange = {
		state: "delivered",
		decision: { ...own, decision: "reject" },
	};
	await all.model.ask(REQUEST);
	assert.equal(all.model.find(REQUEST).decision.verdict, "approve");
	all.session.store.keepDecision = keep;
	all.says.exchange = { state: "delivered", decision: own };
	await all.model.ask(REQUEST);
	assert.deepEqual(
		[all.model.find(REQUEST).state, all.model.find(REQUEST).isUnkept],
		["delivered", undefined],
	);
	assert.equal(verdictOf(all), "approve");
});
