// Runs that are suspended, kept as text, and resumed elsewhere. The framework only suspends: the tool
// verifies the signed decision before it runs.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	ADAPTERS,
	assertDenied,
	assertUsed,
	pay,
	refusal,
	scene,
} from "./scenario.mjs";

/** A suspended run. `resume` goes on in a new client, as after a restart. */
async function suspended(adapter, calls = [pay(5)]) {
	const { approver, ran } = await scene(adapter);
	approver.when({}).wait();
	const options = { timeout: "1h" };
	const setup = { client: approver.client, options, ran };
	const stored = await adapter.suspend({ ...setup, calls });
	const resume = async (changes = {}) =>
		adapter.resume({
			...setup,
			client: await approver.newClient(),
			stored,
			...changes,
		});
	return { approver, ran, stored, resume };
}

for (const adapter of ADAPTERS) {
	test(`control, ${adapter.name}: a suspended run goes on once it is approved`, async () => {
		const { approver, ran, resume } = await suspended(adapter);
		assert.deepEqual(approver.asked, []);
		assert.equal(await resume(), null);
		assert.equal(await resume(), null);
		assert.equal(approver.asked.length, 1);
		await approver.asked[0].approve();
		const { told } = await resume({ wait: "5s" });
		assert.equal(told.c1, '{"paid":5}');
		assert.deepEqual(ran, [{ amount: 5 }]);
		assert.equal(approver.asked.length, 1);
	});

	test(`${adapter.name}: a suspended run whose call is rejected`, async () => {
		const { approver, ran, resume } = await suspended(adapter);
		await resume();
		await approver.asked[0].reject("too much");
		const result = await resume();
		assertDenied(result, ran);
		assert.match(result.told.c1, /"too much"/);
	});

	test(`${adapter.name}: two suspended calls, one approved`, async () => {
		const calls = [pay(1, "c1"), pay(2, "c2")];
		const { approver, ran, resume } = await suspended(adapter, calls);
		await resume();
		const find = (amount) =>
			approver.asked.find(({ args }) => args.amount === amount);
		await find(2).approve();
		assert.equal(await resume(), null);
		await find(1).reject();
		const result = await resume();
		assert.deepEqual(ran.splice(0), [{ amount: 2 }]);
		assertDenied(result, ran, "c1");
		assert.equal(result.told.c2, '{"paid":2}');
	});

	test(`${adapter.name}: an answer that nobody signed runs nothing`, async () => {
		const { approver, ran, resume } = await suspended(adapter);
		await resume();
		await approver.asked[0].reject();
		assertDenied(await resume({ isForced: true }), ran);
	});

	test(`${adapter.name}: an answer before the decision waits for it`, async () => {
		const { approver, ran, resume } = await suspended(adapter);
		await resume();
		const running = resume({ isForced: true });
		await new Promise((resolve) => setTimeout(resolve, 200));
		assert.deepEqual(ran, []);
		await approver.asked[0].reject();
		assertDenied(await running, ran);
	});

	test(`${adapter.name}: a durable request outlives a run that is cancelled`, async () => {
		const { approver, ran, resume } = await suspended(adapter);
		await resume();
		const signal = AbortSignal.timeout(300);
		await resume({ isForced: true, signal }).catch(() => {});
		assert.ok(signal.aborted);
		const { requestId } = approver.asked[0];
		assert.equal(approver.gateway.stateOf(requestId), "pendingApproval");
		await approver.asked[0].approve();
		assert.deepEqual(ran, []);
		const { told } = await resume();
		assert.equal(told.c1, '{"paid":5}');
		assert.deepEqual(ran, [{ amount: 5 }]);
		assert.equal(approver.asked.length, 1);
	});

	test(`${adapter.name}: settle refuses unknown options`, async () => {
		const { approver, ran } = await scene(adapter);
		const setup = { client: approver.client, options: {}, ran };
		const stored = await adapter.suspend({ ...setup, calls: [pay(5)] });
		const settling = { waits: "5s" };
		await assert.rejects(adapter.settle({ ...setup, stored, settling }), {
			name: "TypeError",
			message: /no option waits/,
		});
		assert.deepEqual(approver.asked, []);
	});

	test(`${adapter.name}: settle leaves a tool alone that is not durable`, async () => {
		const { approver, ran } = await scene(adapter);
		const setup = {
			client: approver.client,
			options: { durable: false },
			pay: { approvalHook: async () => true },
			ran,
		};
		const stored = await adapter.suspend({ ...setup, calls: [pay(5)] });
		assert.ok(await adapter.settle({ ...setup, stored }));
		assert.deepEqual(approver.asked, []);
		// The framework's own answer does not replace the approver's.
		const { told } = await adapter.resume({ ...setup, stored, isForced: true });
		assert.equal(told.c1, '{"paid":5}');
		assert.equal(approver.asked.length, 1);
		assert.deepEqual(ran, [{ amount: 5 }]);
	});
}

refusal(13, "the stored state is edited, then resumed", async (adapter) => {
	for (const isForced of [false, true]) {
		const { approver, ran, stored, resume } = await suspended(adapter);
		await resume();
		await approver.asked[0].approve();
		const edited = adapter.edit(stored, 5, 99);
		assert.notEqual(edited, stored);
		const result = await resume({ stored: edited, isForced });
		assertDenied(result, ran);
		assert.match(result.told.c1, /used before, for another call/);
		// The call that was approved can still run.
		const { told } = await resume();
		assert.equal(told.c1, '{"paid":5}');
		assert.deepEqual(ran, [{ amount: 5 }]);
	}
});

refusal(14, "resumed twice: ran once", async (adapter) => {
	const { approver, ran, resume } = await suspended(adapter);
	await resume();
	await approver.asked[0].approve();
	const first = await resume();
	assert.equal(first.told.c1, '{"paid":5}');
	assert.deepEqual(ran.splice(0), [{ amount: 5 }]);
	for (const isForced of [false, true]) {
		assertUsed(await resume({ isForced }), ran);
	}
	const both = await suspended(adapter);
	await both.resume();
	await both.approver.asked[0].approve();
	await Promise.all([both.resume(), both.resume(), both.resume()]);
	assert.deepEqual(both.ran, [{ amount: 5 }]);
});
