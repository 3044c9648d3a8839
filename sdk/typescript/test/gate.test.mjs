// The wrapper's condition: only `false` lets a call run unasked.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ApprovalFailure, NotAskable, Rejected } from "@countersign/client";
import { FakeApprover } from "@countersign/client/testing";
import { thrown } from "./support.mjs";

async function conditional(askIf, options = {}) {
	const approver = await FakeApprover.create(options);
	approver.when({}).reject("no");
	const ran = [];
	const pay = approver.client.approvalRequired(
		"pay",
		{ timeout: "5s", askIf },
		(args, { approval }) => ran.push([args, approval]),
	);
	return { approver, pay, ran };
}

test("false: the call runs unasked, with a copy of its arguments", async () => {
	const { approver, pay, ran } = await conditional(({ amount }) => amount > 9);
	const args = { amount: 5 };
	await pay(args);
	assert.deepEqual(ran, [[{ amount: 5 }, undefined]]);
	assert.notEqual(ran[0][0], args);
	assert.equal(approver.asked.length, 0);
	assert.ok((await thrown(() => pay({ amount: 10 }))) instanceof Rejected);
	assert.equal(ran.length, 1);
	assert.deepEqual(approver.asked[0].args, { amount: 10 });
});

for (const answer of [true, undefined, null, 0, "", Promise.resolve()])
	test(`${String(answer)} (${typeof answer}): the call is asked`, async () => {
		const { pay, ran } = await conditional(() => answer);
		assert.ok((await thrown(() => pay({}))) instanceof Rejected);
		assert.deepEqual(ran, []);
	});

test("a promise of false lets it run", async () => {
	const { pay, ran } = await conditional(async () => false);
	await pay({});
	assert.equal(ran.length, 1);
});

for (const [kind, askIf] of [
	["throws", (args) => args.to.iban],
	["rejects", () => Promise.reject("hush")],
])
	test(`a condition that ${kind} denies`, async () => {
		const events = [];
		const onEvent = (event) => events.push(event);
		const { approver, pay, ran } = await conditional(askIf, { onEvent });
		const error = await thrown(() => pay({ note: "hush" }));
		assert.ok(error instanceof ApprovalFailure, `${error}`);
		assert.equal(error.cause, "failed");
		assert.match(error.forModel(), /Nothing was executed/);
		assert.doesNotMatch(JSON.stringify(events) + error.message, /hush|iban/);
		assert.deepEqual(
			events.map(({ event }) => event),
			["denied"],
		);
		assert.equal(approver.asked.length, 0);
		assert.deepEqual(ran, []);
	});

test("a condition cannot change the call", async () => {
	const { approver, pay } = await conditional((args) => {
		args.amount = 1;
		return true;
	});
	await thrown(() => pay({ amount: 500 }));
	assert.deepEqual(approver.asked[0].args, { amount: 500 });
});

test("arguments that are not JSON are refused before the condition", async () => {
	const { pay, ran } = await conditional(() => false);
	assert.ok((await thrown(() => pay({ n: 1n }))) instanceof NotAskable);
	assert.deepEqual(ran, []);
});

test("an aborted call does not run unasked either", async () => {
	const { pay, ran } = await conditional(() => false);
	const signal = AbortSignal.abort();
	assert.equal((await thrown(() => pay({}, { signal }))).name, "AbortError");
	assert.deepEqual(ran, []);
});
