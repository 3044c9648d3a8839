// Every adapter refuses the same things: the tool has no effect, and the model is told so.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
	Action,
	Client,
	CountersignError,
	ProfileError,
} from "@countersign/client";
import { z } from "zod";
import { directory, thrown, until } from "../support.mjs";
import {
	ADAPTERS,
	assertDenied,
	assertUsed,
	pay,
	refusal,
	scene,
} from "./scenario.mjs";

for (const adapter of ADAPTERS) {
	test(`control, ${adapter.name}: an approved call runs once, with its own result`, async () => {
		const { approver, ran, run } = await scene(adapter);
		const { told, error } = await run([pay(5)]);
		assert.equal(error, undefined);
		assert.deepEqual(ran, [{ amount: 5 }]);
		assert.equal(told.c1, '{"paid":5}');
		const [asked, ...others] = approver.asked;
		assert.deepEqual(others, []);
		assert.equal(asked.tool, "pay");
		assert.deepEqual(asked.args, { amount: 5 });
		assert.deepEqual(asked.metadata, {
			framework: adapter.name,
			toolCallId: "c1",
		});
	});

	test(`control, ${adapter.name}: a tool that is not gated is untouched`, async () => {
		const { approver, run } = await scene(adapter);
		const search = { id: "c1", name: "search", args: { query: "x" } };
		assert.equal((await run([search])).told.c1, '{"found":"x"}');
		assert.deepEqual(approver.asked, []);
	});

	test(`control, ${adapter.name}: the model reads an error of the tool, not a denial`, async () => {
		const { run } = await scene(adapter);
		const execute = () => {
			throw new Error("the bank is closed");
		};
		const { told } = await run([pay(5)], { pay: { execute } });
		assert.match(told.c1, /bank is closed|error occurred/);
		assert.doesNotMatch(told.c1, /denied/);
	});
}

for (const adapter of ADAPTERS)
	test(`${adapter.name}: gate refuses a tool that it cannot gate, or that is gated`, async () => {
		const { approver } = await scene(adapter);
		const { client } = approver;
		assert.throws(() => adapter.gateAgain(client), /gated already/);
		assert.throws(() => adapter.gateWithout(client), /no function/);
		assert.throws(() => adapter.gate(client, { timeout: "none" }), /timeout/);
	});

for (const adapter of ADAPTERS)
	for (const durable of [false, true]) {
		const name = `${adapter.name}, ${durable ? "durable" : "at once"}`;

		test(`${name}: gate refuses a choice that the tool would not learn`, async () => {
			const { approver } = await scene(adapter);
			const no = Action.reject("no", "Not today");
			const staging = Action.approve("staging", "To staging");
			const production = Action.approve("prod", "To production");
			const gate = (...actions) =>
				adapter.gate(approver.client, { durable, actions });
			gate(staging, no, Action.reject("never", "Never"));
			assert.throws(() => gate(staging, no, production), {
				name: "TypeError",
				message: /more than one approves/,
			});
		});

		test(`${name}: gate refuses unknown options`, async () => {
			const { approver } = await scene(adapter);
			for (const option of ["askIf", "timeOut", "key", "signal", "__proto__"]) {
				const options = Object.fromEntries([["durable", durable]]);
				Object.defineProperty(options, option, {
					value: () => false,
					enumerable: true,
				});
				assert.throws(() => adapter.gate(approver.client, options), {
					name: "TypeError",
					message: new RegExp(`no option ${option}`),
				});
			}
			adapter.gate(approver.client, {
				durable,
				timeout: "1m",
				submitTimeout: "1s",
				approver: "me",
				repoRef: "repo:a",
				show: ["amount"],
				actions: [],
				metadata: {},
				sessionId: "0190b6f0-0000-7000-8000-000000000000",
			});
		});
	}

for (const adapter of ADAPTERS)
	test(`${adapter.name}: a condition that the types refuse lets nothing run unasked`, async () => {
		const { approver, ran, run } = await scene(adapter);
		approver.when({}).reject();
		const running = run([pay(5)], { options: { askIf: () => false } });
		const result = await running.catch((error) => ({ told: {}, error }));
		assertDenied(result, ran);
	});

refusal(1, "rejected, with a reason that arrives", async (adapter) => {
	const { approver, ran, run } = await scene(adapter);
	approver.when({}).reject("not on a Friday");
	const result = await run([pay(5)]);
	assertDenied(result, ran);
	assert.match(result.told.c1, /fake-approver rejected it.*"not on a Friday"/);
});

refusal(2, "no decision in time", async (adapter) => {
	const { approver, ran, run } = await scene(adapter);
	approver.when({}).wait();
	const result = await run([pay(5)], { options: { timeout: "1s" } });
	assertDenied(result, ran);
	assert.match(result.told.c1, /nobody decided in time/);
	await approver.asked[0].approve();
	await sleep(50);
	assert.deepEqual(ran, []);
});

refusal(3, "the gateway is down before the request", async (adapter) => {
	const { approver, ran, run } = await scene(adapter);
	approver.gateway.down();
	const result = await run([pay(5)], { options: { submitTimeout: "300ms" } });
	assertDenied(result, ran);
	assert.match(result.told.c1, /gateway is unavailable/);
});

refusal(4, "the gateway goes down while the call waits", async (adapter) => {
	const { approver, ran, run } = await scene(adapter);
	approver.when({}).wait();
	const running = run([pay(5)], { options: { timeout: "4s" } });
	await until(() => approver.asked.length === 1);
	approver.gateway.down();
	const result = await running;
	assertDenied(result, ran);
	assert.match(result.told.c1, /gateway is unavailable/);
});

refusal(5, "a forged signature", async (adapter) => {
	const { approver, ran, run } = await scene(adapter);
	approver.gateway.forge();
	const result = await run([pay(5)]);
	assertDenied(result, ran);
	assert.match(result.told.c1, /denied: it was not approved\./);
});

refusal(6, "a decision of a revoked device", async (adapter) => {
	const { approver, ran, run } = await scene(adapter);
	await approver.addDevice();
	approver.when({}).wait();
	const running = run([pay(5)]);
	await until(() => approver.asked.length === 1);
	await approver.revokeDevice();
	// The revocation is learned with another request.
	await approver.client.submit({ call: { name: "x", args: {} } });
	await approver.asked[0].approve();
	const result = await running;
	assertDenied(result, ran);
	assert.match(result.told.c1, /denied: it was not approved\./);
});

refusal(7, "a decision about another request", async (adapter) => {
	const { approver, ran, run } = await scene(adapter);
	await run([pay(5)]);
	assert.equal(ran.length, 1);
	ran.length = 0;
	approver.gateway.replay();
	const result = await run([pay(5)]);
	assertDenied(result, ran);
	assert.match(result.told.c1, /denied: it was not approved\./);
});

refusal(8, "no profile, a damaged one, nobody paired", async (adapter, t) => {
	const { ran, run } = await scene(adapter);
	const place = await directory(t);
	process.env.COUNTERSIGN_PROFILES = place;
	t.after(() => delete process.env.COUNTERSIGN_PROFILES);
	const opening = () => Client.fromProfile("agent");
	assert.ok((await thrown(opening)) instanceof ProfileError);
	await writeFile(join(place, "agent.toml"), "damaged", { mode: 0o600 });
	assert.ok((await thrown(opening)) instanceof ProfileError);
	// Without a client nothing can be gated, and nothing is left open by accident.
	for (const client of [undefined, null, {}, opening().catch(() => {})])
		assert.throws(() => adapter.gate(client), CountersignError);
	const result = await run([pay(5)], { options: { approver: "mallory" } });
	assertDenied(result, ran);
	assert.match(result.told.c1, /no approver is paired/);
});

refusal(9, "our own code fails unexpectedly", async (adapter) => {
	const events = [];
	const { ran, run } = await scene(adapter, {
		journal: {
			take: () => Promise.reject(new RangeError("no room in /secret")),
		},
		onEvent: (event) => events.push(event),
	});
	const result = await run([pay(5)]);
	assertDenied(result, ran);
	assert.doesNotMatch(JSON.stringify([result.told, events]), /secret/);
	const { event, tool, cause, detail } = events.at(-1);
	assert.deepEqual([event, tool, cause], ["denied", "pay", "failed"]);
	assert.match(detail, /RangeError/);
});

refusal(10, "the framework's own question gets no answer", async (adapter) => {
	const { approver, ran, run } = await scene(adapter);
	approver.when({}).reject();
	let questions = 0;
	const approvalHook = async () => {
		questions += 1;
	};
	const result = await run([pay(5)], { pay: { approvalHook } });
	assert.ok(questions > 0);
	assertDenied(result, ran);
	// And a journal that forgets to answer.
	const forgetful = await scene(adapter, { journal: { take: async () => {} } });
	assertUsed(await forgetful.run([pay(5)]), forgetful.ran);
});

refusal(11, "of two parallel calls one is approved", async (adapter) => {
	const { approver, ran, run } = await scene(adapter);
	approver.when({}).wait();
	const running = run([pay(1, "c1"), pay(2, "c2")]);
	// Both wait at the same time.
	await until(() => approver.asked.length === 2);
	const askedFor = (amount) =>
		approver.asked.find(({ args }) => args.amount === amount);
	await askedFor(1).reject();
	await askedFor(2).approve();
	const result = await running;
	assert.deepEqual(ran.splice(0), [{ amount: 2 }]);
	assert.equal(result.told.c2, '{"paid":2}');
	assertDenied(result, ran, "c1");
});

refusal(12, "arguments that change after submission", async (adapter) => {
	const { approver, ran, run } = await scene(adapter);
	approver.when({}).wait();
	const given = [];
	const running = run([pay(1)], {
		// The objects that the framework keeps the arguments in.
		pay: { onInputAvailable: ({ input }) => given.push(input) },
		onItems: (items) => given.push(...items),
	});
	await until(() => approver.asked.length === 1);
	assert.equal(given.length, 1);
	if (typeof given[0].arguments === "string")
		given[0].arguments = '{"amount":1000000}';
	else given[0].amount = 1_000_000;
	await approver.asked[0].approve();
	await running;
	assert.deepEqual(ran, [{ amount: 1 }]);
});

for (const [how, cancel] of [
	["cancelled", (controller) => controller.abort()],
	["out of the framework's time", () => {}],
])
	refusal(
		15,
		`a run that is ${how} while the call waits, approved afterwards`,
		async (adapter) => {
			const { approver, ran, run } = await scene(adapter);
			approver.when({}).wait();
			const controller = new AbortController();
			const limits =
				how === "cancelled"
					? { signal: controller.signal }
					: { toolMs: 400, options: { timeout: "1m" } };
			const running = run([pay(5)], limits);
			await until(() => approver.asked.length === 1);
			cancel(controller);
			const result = await running;
			if (how === "cancelled")
				assert.match(String(result.error ?? result.told.c1), /abort/i);
			const { requestId } = approver.asked[0];
			await until(
				() => approver.gateway.stateOf(requestId) === "withdrawn",
			).catch(() => assert.fail("the request was not withdrawn"));
			await approver.asked[0].approve();
			await sleep(100);
			assert.deepEqual(ran, []);
			assert.doesNotMatch(JSON.stringify(result.told), /paid/);
		},
	);

refusal(16, "a tool of a gated name that comes later", async (adapter) => {
	const { approver, ran, run } = await scene(adapter);
	approver.when({}).reject();
	const { client } = approver;
	const result = await run([pay(5)], adapter.replaceLater({ client, ran }));
	assertDenied(result, ran);
});

// JavaScript has no synchronous entry.
refusal(17, "every entry, with and without a stream", async (adapter) => {
	assert.ok(adapter.entries.length >= 3);
	for (const entry of adapter.entries) {
		const { approver, ran, run } = await scene(adapter);
		approver.when({ args: { amount: 5 } }).reject("no");
		const result = await run([pay(5)], { entry });
		assertDenied(result, ran);
		assert.match(result.told.c1, /rejected it, with the reason "no"/, entry);
		await run([pay(6)], { entry });
		assert.deepEqual(ran, [{ amount: 6 }], entry);
	}
});

refusal(18, "sub-agents and handoffs", async (adapter) => {
	assert.ok(adapter.nestings.length >= 1);
	for (const nesting of adapter.nestings) {
		const { approver, ran, run } = await scene(adapter);
		approver.when({ args: { amount: 5 } }).reject("no");
		const result = await run([pay(5)], { nesting });
		assertDenied(result, ran);
		assert.match(result.told.c1, /rejected it, with the reason "no"/, nesting);
		await run([pay(6)], { nesting });
		assert.deepEqual(ran, [{ amount: 6 }], nesting);
	}
});

refusal(19, "arguments that a person cannot be shown", async (adapter) => {
	for (const args of [
		'{"amount":9007199254740993}',
		'{"amount":"a\\u0000b"}',
		'{"amount":"\\ud800"}',
	]) {
		const { approver, ran, run } = await scene(adapter);
		const schema = z.object({ amount: z.union([z.number(), z.string()]) });
		const calls = [{ id: "c1", name: "pay", args }];
		const result = await run(calls, { pay: { schema } });
		assertDenied(result, ran);
		assert.match(result.told.c1, /a person cannot be asked about it/);
		assert.deepEqual(approver.asked, []);
	}
	// The framework refuses these itself, or they are refused here.
	for (const args of ['{"amount":', "[5]", '"5"', "5", "null"]) {
		const { approver, ran, run } = await scene(adapter);
		const { told } = await run([{ id: "c1", name: "pay", args }]);
		assert.deepEqual(ran, [], args);
		assert.deepEqual(approver.asked, [], args);
		assert.doesNotMatch(JSON.stringify(told), /paid/);
	}
});
