// Cancelling, and deadlines by two clocks.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CountersignError } from "@countersign/client";
import { FakeApprover } from "@countersign/client/testing";
import { Deadline } from "../dist/clock.js";
import { readTimeout, readWait } from "../dist/durations.js";
import { gatedTool, thrown, until } from "./support.mjs";

test("an aborted question is withdrawn, and never runs", async () => {
	const { approver, pay, ran } = await gatedTool();
	approver.when({ tool: "pay" }).wait();
	const controller = new AbortController();
	const paying = thrown(() =>
		pay({ amount: 5 }, { signal: controller.signal }),
	);
	const [asked] = await until(() => approver.asked.length && approver.asked);
	const start = Date.now();
	const reason = new Error("the run was cancelled");
	controller.abort(reason);
	assert.equal(await paying, reason);
	assert.ok(Date.now() - start < 3_000);
	assert.equal(approver.gateway.stateOf(asked.requestId), "withdrawn");
	await asked.approve();
	assert.deepEqual(ran, []);
});

test("aborted at the moment of the approval: nothing runs", async () => {
	const { approver, pay, ran } = await gatedTool();
	const controller = new AbortController();
	approver
		.when((asked) => {
			controller.abort();
			return asked.tool === "pay";
		})
		.approve();
	const error = await thrown(() =>
		pay({ amount: 5 }, { signal: controller.signal }),
	);
	assert.equal(error.name, "AbortError");
	assert.deepEqual(ran, []);
});

test("aborted before the question: nobody is asked", async () => {
	const { approver, pay, ran } = await gatedTool();
	await assert.rejects(pay({ amount: 5 }, { signal: AbortSignal.abort() }));
	assert.equal(approver.asked.length, 0);
	assert.deepEqual(ran, []);
});

test("a withdrawal that the gateway does not take ends within three seconds", async () => {
	const { approver, pay } = await gatedTool();
	approver.when({ tool: "pay" }).wait();
	const controller = new AbortController();
	const paying = thrown(() =>
		pay({ amount: 5 }, { signal: controller.signal }),
	);
	await until(() => approver.asked.length === 1);
	approver.gateway.down();
	const start = Date.now();
	controller.abort();
	assert.equal((await paying).name, "AbortError");
	assert.ok(Date.now() - start < 4_500);
});

test("an aborted look at a durable request does not withdraw it", async () => {
	const approver = await FakeApprover.create();
	approver.when({}).wait();
	const pending = await approver.client.submit({
		call: { name: "pay", args: {} },
	});
	const signal = AbortSignal.timeout(100);
	await assert.rejects(pending.outcome({ wait: "10s", signal }));
	assert.equal(approver.gateway.stateOf(pending.requestId), "pendingApproval");
});

test("a deadline holds by the clock that leaves less", () => {
	const clock = {
		wall: 1_000,
		steady: 0,
		now: () => clock.wall,
		monotonic: () => clock.steady,
	};
	const deadline = Deadline.after(clock, 100);
	assert.equal(deadline.left(), 100);
	// The machine slept: only the wall clock went on.
	clock.wall += 60;
	assert.equal(deadline.left(), 40);
	// The clock was set back: the other one counts.
	clock.wall -= 1_000;
	clock.steady += 90;
	assert.equal(deadline.left(), 10);
	clock.steady += 10;
	assert.ok(deadline.isOver());
});

test("durations", () => {
	assert.equal(readTimeout("10m"), 600_000);
	assert.equal(readTimeout("250ms"), 250);
	assert.equal(readTimeout("30d"), 30 * 86_400_000);
	assert.equal(readWait("0s"), 0);
	for (const text of ["none", "", "0s", "31d", "-1s", "1.5h", 10, undefined])
		assert.throws(() => readTimeout(text), CountersignError, String(text));
});
