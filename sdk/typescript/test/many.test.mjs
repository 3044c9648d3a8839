// Many questions at once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Denied, TimedOut } from "@countersign/client";
import { FakeApprover } from "@countersign/client/testing";
import { Deadline } from "../dist/clock.js";
import { WaitLimiter } from "../dist/limiter.js";
import { gatedTool, thrown, until } from "./support.mjs";

test("100 questions at once: each tool runs as often as it was approved", async () => {
	const { approver, pay, ran } = await gatedTool({}, { timeout: "30s" });
	approver.when((asked) => asked.args.amount % 3 === 0).reject("no");
	approver.when((asked) => asked.args.amount % 5 === 1).wait();
	const results = Array.from({ length: 100 }, (_, amount) =>
		pay({ amount }).then(
			() => "ran",
			(error) => error.cause,
		),
	);
	await until(() => approver.asked.length === 100);
	// A node is away for a moment.
	approver.gateway.down();
	await new Promise((resolve) => setTimeout(resolve, 200));
	approver.gateway.up();
	for (const asked of approver.asked)
		if (asked.args.amount % 5 === 1) await asked.approve();
	const found = await Promise.all(results);
	const expected = Array.from({ length: 100 }, (_, amount) =>
		amount % 5 !== 1 && amount % 3 === 0 ? "rejected" : "ran",
	);
	assert.deepEqual(found, expected);
	assert.equal(ran.length, expected.filter((each) => each === "ran").length);
	assert.equal(new Set(ran.map(({ amount }) => amount)).size, ran.length);
});

test("waits beyond the limit queue, within their deadlines", async () => {
	const clock = { now: Date.now, monotonic: () => performance.now() };
	const limiter = new WaitLimiter(2);
	let [running, most] = [0, 0];
	const action = async () => {
		running += 1;
		most = Math.max(most, running);
		await new Promise((resolve) => setTimeout(resolve, 30));
		running -= 1;
		return "done";
	};
	const run = (time, signal) =>
		limiter.run(action, Deadline.after(clock, time), signal, () => "late");
	const many = await Promise.all(Array.from({ length: 10 }, () => run(5_000)));
	assert.ok(many.every((each) => each === "done"));
	assert.equal(most, 2);
	const blocked = [run(5_000), run(5_000)];
	assert.equal(await run(5), "late");
	await assert.rejects(run(5_000, AbortSignal.abort()));
	await Promise.all(blocked);
	assert.equal(await run(5), "done");
});

test("a question that never gets a turn is denied", async () => {
	const approver = await FakeApprover.create();
	approver.when({}).wait();
	const ask = (timeout) =>
		thrown(() =>
			approver.client.ask({ call: { name: "pay", args: {} }, timeout }),
		);
	const all = Array.from({ length: 101 }, () => ask("4s"));
	for (const error of await Promise.all(all)) {
		assert.ok(error instanceof Denied);
		assert.ok(error instanceof TimedOut);
	}
});
