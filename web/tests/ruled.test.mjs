// Requests with a rule, from the gateway to the signature: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { canonical, parse } from "../core/canonical.js";
import { open, parseCiphertext } from "../core/seal.js";
import { isApprovable, isRejectable } from "../ui/selection.js";
import { crowd, RULE, SINGLE } from "./rules.mjs";

globalThis.WebSocket ??= { OPEN: 1 };

const { request, scene } = await import("./hostile.mjs");

/** A request with this rule in the inbox of alice, whom `bot` or another enforcer asks. */
async function ruled(rule, enforcerId = "bot") {
	const made = await scene();
	const { device, enforcers, shows } = made;
	const extensions = { "countersign.rule": rule };
	const item = await shows(
		await request(enforcers[enforcerId], device, { further: { extensions } }),
	);
	return { ...made, item };
}

const refused = (code) => (error) => error.code === code;
const APPROVE = { verdict: "approve" };

test("an approval that counts is signed, and the rule has a place of its own", async () => {
	const { item, model, sent } = await ruled(RULE);
	assert.equal(item.approvalProblem, null);
	assert.deepEqual(item.content.artifact.rest, {});
	assert.equal(item.content.artifact.rule.seat, "alice");
	assert.ok(isApprovable(item) && isRejectable(item));
	await model.decide(item, APPROVE);
	assert.equal(JSON.parse(sent[0]).decision, "approve");
});

test("without a rule everything is as before", async () => {
	const { device, enforcers, shows } = await scene();
	const item = await shows(await request(enforcers.bot, device));
	assert.equal(item.content.artifact.rule, null);
	assert.equal(item.approvalProblem, null);
	assert.ok(isApprovable(item));
});

for (const [name, rule, code, enforcerId] of [
	["somebody else’s seat", { ...RULE, seat: "bob" }, "otherSeat"],
	[
		"a person that it excludes",
		{ ...RULE, notBy: ["alice"] },
		"excludedByRule",
	],
	[
		"other people",
		{ ...SINGLE, asks: [{ approvals: 1, from: ["bob"] }] },
		"notInRule",
	],
	["another enforcer", RULE, "ruleOfOther", "prod"],
	["a version that is not known", { ...RULE, v: 2 }, "version"],
])
	test(`a rule for ${name}: rejected or nothing`, async () => {
		const { item, model, sent } = await ruled(rule, enforcerId);
		assert.ok(item.content.opened);
		assert.equal(item.approvalProblem.code, code);
		assert.ok(!isApprovable(item) && isRejectable(item));
		await assert.rejects(model.decide(item, APPROVE), refused("notApprovable"));
		assert.deepEqual(sent, []);
		await model.decide(item, { verdict: "reject" });
		assert.equal(JSON.parse(sent[0]).decision, "reject");
	});

test("a rule that is not understood is shown as it is", async () => {
	const rule = { v: 2, further: ["x"] };
	const { item } = await ruled(rule);
	assert.deepEqual(item.content.artifact.rest, {
		extensions: { "countersign.rule": rule },
	});
});

test("a malformed rule keeps a request from opening", async () => {
	for (const rule of [
		{ ...RULE, further: 1 },
		{ ...RULE, rejections: 0 },
		{ ...RULE, asks: [{ approvals: 2, from: crowd(1) }] },
		"two of three",
	]) {
		const { item, model } = await ruled(rule);
		assert.equal(item.content.opened, false, JSON.stringify(rule));
		assert.equal(item.approvalProblem, null);
		await assert.rejects(model.decide(item, APPROVE), refused("notApprovable"));
	}
});

/** The hints that a sent decision has, as the enforcer opens them. */
async function hintsOf(body, { device, enforcers }) {
	const { policyHints, requestId, artifactHash } = JSON.parse(body);
	const context = {
		v: 1,
		requestId,
		artifactHash,
		enforcerId: "bot",
		deviceId: device.bundle.deviceId,
	};
	const sealed = parseCiphertext(
		"hints",
		parse("decision", canonical(policyHints.sealed)),
	);
	const opened = await open(
		sealed,
		"bot",
		enforcers.bot.pair,
		device.bundle.encryptionKey,
		context,
	);
	return JSON.parse(new TextDecoder().decode(opened));
}

test("a required comment goes with the approval, encrypted", async () => {
	const rule = { ...RULE, comment: "always" };
	const made = await ruled(rule);
	const { item, model, sent } = made;
	for (const reason of [undefined, "", " \u200b "])
		await assert.rejects(
			model.decide(item, { ...APPROVE, reason }),
			refused("commentMissing"),
		);
	assert.deepEqual(sent, []);
	await model.decide(item, { ...APPROVE, reason: "planned for today" });
	assert.ok(!sent[0].includes("planned"));
	assert.deepEqual(await hintsOf(sent[0], made), {
		reason: "planned for today",
	});
});

test("an approval under a rule permits nothing beyond its request", async () => {
	const longer = {
		...APPROVE,
		scope: "timebox",
		lastsSeconds: 900,
		grant: { match: "same" },
	};
	for (const rule of [RULE, SINGLE]) {
		const { item, model, sent } = await ruled(rule);
		await assert.rejects(model.decide(item, longer), refused("ruleOnce"));
		assert.deepEqual(sent, []);
	}
});
