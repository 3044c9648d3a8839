// An outcome of a set, of which this device knows one part: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
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
			sign({ set, decisions: [HASH, digest], ...change }, undefined, [
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

const FORGED = {
	"no set": (sign) => sign(),
	"another set": (sign) => sign({ set: "AQECAwQFBgcICQoLDA0ODw" }),
	"a set that is no text": (sign) => sign({ set: 1 }),
	"no part": (sign) => sign({ set }, undefined, []),
	"the parts of others": (sign) =>
		sign({ set }, undefined, [other("a"), other("b")]),
	"another artifact as one’s own part": (sign, { own }) =>
		sign({ set }, undefined, [other(own.name), other("b")]),
	"one’s own hash under another name": (sign, { own }) =>
		sign({ set }, undefined, [{ ...own, name: "b" }, other("c")]),
	"one’s own part twice": (sign, { own }) =>
		sign({ set }, undefined, [own, own]),
	"one’s own part twice, the other way": (sign, { own }) =>
		sign({ set }, undefined, [other(own.name), own]),
	"a further member of a part": (sign, { own }) =>
		sign({ set }, undefined, [own, { ...other("b"), seat: "bob" }]),
	"a further hash of a part": (sign, { own }) =>
		sign({ set }, undefined, [
			own,
			{ name: "b", digest: { sha256: HASH, sha512: HASH } },
		]),
	"a part that is no object": (sign, { own }) =>
		sign({ set }, undefined, [own, "b"]),
	"too many parts": (sign, { own }) =>
		sign({ set }, undefined, [own, ...crowd(64).map(other)]),
	"the decisions of others": (sign) => sign({ set, decisions: [HASH] }),
	"too many decisions": (sign, { digest }) =>
		sign({ set, decisions: [...Array(64).fill(HASH), digest] }),
	"no decision": (sign) => sign({ set, decisions: [] }),
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
