// The known answers about rules, counting, and outcomes of sets.

import assert from "node:assert/strict";
import { test } from "node:test";
import { verifyOutcome } from "../../../web/core/outcome.js";
import { artifactForPart, ruleJson } from "../dist/artifact.js";
import { parseArtifact } from "../dist/core/artifact.js";
import { utf8 } from "../dist/core/bytes.js";
import { parse } from "../dist/core/canonical.js";
import { isBlank, readRule } from "../dist/core/rule.js";
import { OutcomeKey } from "../dist/keys.js";
import { decisionDigest, signOutcome } from "../dist/outcome.js";
import { choiceOf, VoteCount } from "../dist/votes.js";
import { vectors } from "./support.mjs";

const rules = await vectors("rule");

function read(rule) {
	const extensions = JSON.stringify({ "countersign.rule": rule });
	return readRule(parse("artifact", extensions));
}

test("rules are read and written", () => {
	for (const { name, rule } of rules.accepted)
		assert.deepEqual(ruleJson(read(rule)), rule, name);
	for (const { name, rule } of rules.unknown)
		assert.equal(read(rule), "unknown", name);
	for (const { name, rule } of rules.refused)
		assert.throws(() => read(rule), undefined, name);
});

test("the artifact of another part", async () => {
	const { artifact, requestId, seat, result } = rules.part;
	const first = await parseArtifact(utf8(artifact));
	assert.equal((await artifactForPart(first, requestId, seat)).text, result);
});

test("comments that nobody can see", () => {
	for (const { comment, refusal } of rules.approvals)
		if (refusal === "comment") assert.ok(isBlank(comment ?? ""));
		else if (comment !== null) assert.ok(!isBlank(comment));
});

for (const { name, rule, votes, state, actionId } of rules.counts)
	test(`count: ${name}`, () => {
		const count = new VoteCount(read(rule));
		for (const { approverId, vote, comment, actionId: chosen } of votes)
			if (vote === "dropOut") count.dropOut(approverId);
			else
				count.count({
					approver: approverId,
					isApproval: vote === "approve",
					choice: choiceOf(chosen ?? undefined),
					hasComment: comment,
				});
		const found = count.state();
		assert.equal(found.stage, state);
		if (state === "satisfied")
			assert.equal(found.choice, choiceOf(actionId ?? undefined));
		assert.equal(count.approvers().length > 0, state === "satisfied");
	});

test("answers that differ are not added up", () => {
	const count = new VoteCount(read(rules.counts[0].rule));
	for (const [approver, answer] of [
		["alice", "red"],
		["bob", "blue"],
		["carol", "red"],
	]) {
		assert.deepEqual(count.approvers(), []);
		const choice = choiceOf(undefined, [[answer]]);
		count.count({ approver, isApproval: true, choice, hasComment: true });
	}
	assert.deepEqual(count.approvers(), ["alice", "carol"]);
});

test("outcomes of sets have the published form", async () => {
	const { set } = await vectors("outcome");
	const artifact = await parseArtifact(utf8(set.artifact));
	const key = OutcomeKey.generate();
	const own = {
		...artifact,
		outcomeKey: Buffer.from(key.publicKey(), "base64url"),
	};
	for (const { envelope, outcome } of set.accepted) {
		const { payload } = JSON.parse(envelope);
		const { subject, predicate } = JSON.parse(Buffer.from(payload, "base64"));
		const signed = signOutcome(key, {
			subjects: subject.map(({ name, digest }, at) => ({
				requestId: name,
				artifactHash: digest.sha256,
				decision: predicate.decisions[at],
			})),
			set: predicate.set,
			tenantId: set.tenantId,
			enforcerId: set.enforcerId,
			effect: outcome,
			at: predicate.at,
		});
		assert.equal(JSON.parse(signed).payload, payload);
		assert.equal(await verifyOutcome(signed, own, set), outcome);
	}
	assert.equal(
		(await decisionDigest(parse("decision", set.decision))).length,
		64,
	);
});

test("an outcome that no gateway takes is refused", () => {
	const subject = {
		requestId: "01J2V8V3K6B2Z9X6G1V7Y2QK80",
		artifactHash: "0".repeat(64),
		decision: "0".repeat(64),
	};
	const sign = (parts) =>
		signOutcome(OutcomeKey.generate(), {
			subjects: Array(parts).fill(subject),
			set: "s".repeat(22),
			tenantId: "acme",
			enforcerId: "build-bot",
			effect: "allowed",
			at: "2026-02-21T12:01:00Z",
		});
	assert.ok(sign(56).length <= 16 << 10);
	assert.throws(() => sign(64), { cause: "failed" });
});
