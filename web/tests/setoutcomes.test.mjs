// An outcome of a set, of which this device knows one part: `node --test web/tests/`.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { parseArtifact } from "../core/artifact.js";
import { utf8 } from "../core/bytes.js";
import { verifyOutcome } from "../core/outcome.js";
import { Problem } from "../core/problem.js";
import { delivered } from "./delivered.mjs";
import { crowd, RULE, SINGLE } from "./rules.mjs";

const HASH = "1".repeat(64);
const other = (name) => ({ name, digest: { sha256: HASH } });
const { set } = RULE;

/** What becomes of an approval under this rule, if the gateway serves what `serve` makes. */
async function outcomeOf(serve, { rule = RULE, ...further } = {}) {
	const { item } = await delivered(serve, { rule, ...further });
	assert.equal(item.state, "delivered");
	return item.decision.outcome;
}

test("the outcome of a set counts if one’s own part and decision are in it", async () => {
	const both =
		(change) =>
		(sign, { own, digest }) =>
			sign({ set, decisions: [HASH, digest, HASH], ...change }, undefined, [
				other("0199f3c2-0000-7000-8000-000000000002"),
				own,
				other("0199f3c2-0000-7000-8000-000000000003"),
			]);
	assert.equal(await outcomeOf(both({})), "allowed");
	assert.equal(
		await outcomeOf(both({ outcome: "denied", cause: "missing" })),
		"missing",
	);
	const rejected = both({ outcome: "denied", cause: "rejected" });
	assert.equal(
		await outcomeOf(rejected, { choice: { verdict: "reject" } }),
		"rejected",
	);
	const most = (sign, { own, digest }) =>
		sign({ set, decisions: [...Array(63).fill(HASH), digest] }, undefined, [
			...crowd(63).map(other),
			own,
		]);
	assert.equal(await outcomeOf(most), "allowed");
});

test("a set of one request has one part", async () => {
	assert.equal(await outcomeOf((sign) => sign({ set })), "allowed");
	const single = (sign) => sign({ set });
	assert.equal(await outcomeOf(single, { rule: SINGLE }), "allowed");
});

/** Signed by the right machine: these parts, and these decisions. */
const signed = (subjects, decisions) => (sign, known) =>
	sign({ set, decisions: decisions(known) }, undefined, subjects(known));
const ownFirst = ({ digest }) => [digest, HASH];

const FORGED = {
	"no set": (sign) => sign(),
	"another set": (sign) => sign({ set: "AQECAwQFBgcICQoLDA0ODw" }),
	"a set that is no text": (sign) => sign({ set: 1 }),
	"no part": signed(
		() => [],
		() => [],
	),
	"the parts of others": signed(() => [other("a"), other("b")], ownFirst),
	"another artifact as one’s own part": signed(
		({ own }) => [other(own.name), other("b")],
		ownFirst,
	),
	"one’s own hash under another name": signed(
		({ own }) => [{ ...own, name: "b" }, other("c")],
		ownFirst,
	),
	"one’s own hash at another part": signed(
		({ own }) => [other(own.name), { ...own, name: "b" }],
		ownFirst,
	),
	"one’s own part twice": signed(({ own }) => [own, own], ownFirst),
	"another part twice": signed(
		({ own }) => [own, other("b"), other("b")],
		({ digest }) => [digest, HASH, HASH],
	),
	"a further member of a part": signed(
		({ own }) => [own, { ...other("b"), seat: "bob" }],
		ownFirst,
	),
	"a further hash of a part": signed(
		({ own }) => [own, { name: "b", digest: { sha256: HASH, sha512: HASH } }],
		ownFirst,
	),
	"a part that is no object": signed(({ own }) => [own, "b"], ownFirst),
	"a part whose hash is none": signed(
		({ own }) => [own, { name: "b", digest: { sha256: "x" } }],
		ownFirst,
	),
	"more parts than decisions": signed(
		({ own }) => [own, other("b")],
		({ digest }) => [digest],
	),
	"more decisions than parts": signed(({ own }) => [own], ownFirst),
	"one’s own decision at another part": signed(
		({ own }) => [own, other("b")],
		({ digest }) => [HASH, digest],
	),
	"the decision of another": (sign) => sign({ set, decisions: [HASH] }),
	"more than 64 parts": signed(
		({ own }) => [own, ...crowd(64).map(other)],
		({ digest }) => [digest, ...Array(64).fill(HASH)],
	),
	"another enforcer": (sign) => sign({ set, enforcerId: "prod" }),
	"another tenant": (sign) => sign({ set, tenantId: "other" }),
	"a further member": (sign) => sign({ set, seat: "alice" }),
};

for (const [name, serve] of Object.entries(FORGED))
	test(`forged: ${name}`, async () =>
		assert.equal(await outcomeOf(serve), "forged"));

test("forged: signed with another key", async () => {
	const key = await crypto.subtle.generateKey({ name: "Ed25519" }, true, [
		"sign",
		"verify",
	]);
	assert.equal(await outcomeOf((sign) => sign({ set }, key)), "forged");
});

test("without a rule there is one part, and no set", async () => {
	const plain = { rule: null };
	assert.equal(await outcomeOf((sign) => sign(), plain), "allowed");
	assert.equal(await outcomeOf((sign) => sign({ set }), plain), "forged");
	const two = (sign, { own }) => sign({}, undefined, [own, other("b")]);
	assert.equal(await outcomeOf(two, plain), "forged");
});

test("an outcome under a rule that is not understood is neither believed nor called forged", async () => {
	const rule = { ...RULE, v: 2 };
	const choice = { verdict: "reject" };
	const denied = { set, outcome: "denied", cause: "rejected", further: 1 };
	const serve = (sign) => sign(denied);
	assert.equal(await outcomeOf(serve, { rule, choice }), null);
});

test("page and terminal verify the same outcomes of sets", async () => {
	const { set: vectors } = JSON.parse(
		await readFile(
			new URL("../../tests/vectors/outcome.json", import.meta.url),
			"utf8",
		),
	);
	const artifact = await parseArtifact(utf8(vectors.artifact));
	assert.ok(vectors.refused.length > 6);
	for (const { envelope, outcome } of vectors.accepted)
		assert.equal(await verifyOutcome(envelope, artifact, vectors), outcome);
	for (const { name, envelope } of vectors.refused)
		await assert.rejects(
			verifyOutcome(envelope, artifact, vectors),
			(error) => error instanceof Problem,
			name,
		);
});
