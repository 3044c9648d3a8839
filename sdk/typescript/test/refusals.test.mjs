// Calls that must not run: the tool has no effect, and the text for the model says so.

import assert from "node:assert/strict";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import {
	Action,
	Client,
	Denied,
	Ended,
	NotAskable,
	NotPaired,
	ProfileError,
	Rejected,
	TimedOut,
	Unavailable,
	Untrusted,
} from "@countersign/client";
import { FakeApprover } from "@countersign/client/testing";
import { directory, gatedTool, thrown, until } from "./support.mjs";

function assertDenied(error, kind, ran) {
	assert.ok(error instanceof kind, `${error}`);
	assert.ok(error instanceof Denied);
	assert.match(error.forModel(), /Nothing was executed\. Do not repeat/);
	assert.deepEqual(ran, []);
}

test("control: an approved call runs once, with its result", async () => {
	const { approver, pay, ran } = await gatedTool();
	assert.deepEqual(await pay({ amount: 5, to: "DE02" }), { paid: 5 });
	assert.deepEqual(ran, [{ amount: 5, to: "DE02" }]);
	assert.deepEqual(approver.asked[0].args, { amount: 5, to: "DE02" });
	assert.equal(
		approver.gateway.stateOf(approver.asked[0].requestId),
		"delivered",
	);
});

test("control: an error of the tool is thrown on as it is", async () => {
	const { approver } = await gatedTool();
	const failure = new Error("the bank is closed");
	const pay = approver.client.approvalRequired("pay", {}, () => {
		throw failure;
	});
	assert.equal(await thrown(() => pay({})), failure);
});

test("rejected: the reason arrives", async () => {
	const { approver, pay, ran } = await gatedTool();
	approver.when({ tool: "pay" }).reject("not on a Friday");
	const error = await thrown(() => pay({ amount: 5 }));
	assertDenied(error, Rejected, ran);
	assert.equal(error.reason, "not on a Friday");
	assert.equal(error.cause, "rejected");
	assert.match(error.forModel(), /"not on a Friday"/);
});

test("a request that no rule is about is rejected", async () => {
	const approver = await FakeApprover.create();
	const asking = approver.client.ask({ call: { name: "pay", args: {} } });
	assert.ok((await thrown(() => asking)) instanceof Rejected);
});

test("a misspelt option is refused before anybody is asked", async () => {
	const approver = await FakeApprover.create();
	const { client } = approver;
	const call = { name: "pay", args: {} };
	const wrong = [
		["aprovals", () => client.ask({ call, aprovals: 2 })],
		[
			"aproval",
			() => client.ask({ type: "plan.review", payload: {}, aproval: 2 }),
		],
		["key", () => client.ask({ call, key: "k" })],
		["time", () => client.submit({ call, time: "1h" })],
		[
			"askif",
			async () => client.approvalRequired("pay", { askif: 1 }, () => {}),
		],
	];
	for (const [name, ask] of wrong) {
		const error = await thrown(ask);
		assert.ok(error instanceof TypeError, `${error}`);
		assert.match(error.message, new RegExp(`no option ${name}$`));
	}
	assert.equal(approver.asked.length, 0);
});

// They only wait.
describe("no decision", { concurrency: 4 }, () => {
	test("no decision in time", async () => {
		const { approver, pay, ran } = await gatedTool({}, { timeout: "2s" });
		approver.when({ tool: "pay" }).wait();
		assertDenied(await thrown(() => pay({ amount: 5 })), TimedOut, ran);
		await approver.asked[0].approve();
		assert.deepEqual(ran, []);
	});

	test("silent gateway: a decision that is withheld", async () => {
		const { approver, pay, ran } = await gatedTool({}, { timeout: "2s" });
		approver.gateway.silent();
		assertDenied(await thrown(() => pay({ amount: 5 })), TimedOut, ran);
	});

	test("gateway down while waiting", async () => {
		const { approver, pay, ran } = await gatedTool({}, { timeout: "3s" });
		approver.when({ tool: "pay" }).wait();
		const paying = thrown(() => pay({ amount: 5 }));
		await until(() => approver.asked.length === 1);
		approver.gateway.down();
		assertDenied(await paying, Unavailable, ran);
	});

	test("a revocation stays known when the gateway shows old statements again", async () => {
		const approver = await FakeApprover.create();
		await approver.addDevice();
		approver.when({}).approve();
		await approver.client.ask({ call: { name: "pay", args: {} } });
		await approver.revokeDevice();
		approver.when({}).wait();
		await approver.client.submit({ call: { name: "pay", args: {} } });
		const shown = approver.gateway.statements;
		approver.gateway.statements = shown.slice(0, 1);
		// After a restart, from what was stored.
		const client = await approver.newClient();
		const asking = client.ask({
			call: { name: "pay", args: {} },
			timeout: "2s",
		});
		await until(() => approver.asked.length === 3).catch(() => undefined);
		await approver.asked[2]?.approve();
		assert.ok((await thrown(() => asking)) instanceof Denied);
	});
});

test("gateway down before the request", async () => {
	const { approver, ran } = await gatedTool();
	const options = { timeout: "5s", submitTimeout: "300ms" };
	const pay = approver.client.approvalRequired("pay", options, () =>
		ran.push(1),
	);
	approver.gateway.down();
	const error = await thrown(() => pay({ amount: 5 }));
	assertDenied(error, Unavailable, ran);
});

test("gateway away for a moment: the wait goes on", async () => {
	const { approver, pay, ran } = await gatedTool();
	approver.when({ tool: "pay" }).wait();
	const paying = pay({ amount: 5 });
	await until(() => approver.asked.length === 1);
	approver.gateway.down();
	setTimeout(() => {
		approver.gateway.up();
		approver.asked[0].approve();
	}, 300);
	assert.deepEqual(await paying, { paid: 5 });
	assert.equal(ran.length, 1);
});

for (const lie of ["forge", "replay", "swapArtifact"]) {
	test(`a gateway that lies: ${lie}`, async () => {
		const { approver, pay, ran } = await gatedTool();
		// So that there is an approval to replay.
		await pay({ amount: 1 });
		ran.length = 0;
		approver.gateway[lie]();
		const error = await thrown(() => pay({ amount: 5 }));
		assertDenied(error, Untrusted, ran);
		assert.doesNotMatch(error.forModel(), /check|signature|trust/);
	});
}

test("a rejection that a gateway turns into an approval", async () => {
	const { approver, pay, ran } = await gatedTool();
	approver.when({ tool: "pay" }).reject();
	approver.gateway.forge();
	assertDenied(await thrown(() => pay({ amount: 5 })), Untrusted, ran);
});

test("a decision by a revoked device", async () => {
	const { approver, pay, ran } = await gatedTool();
	await approver.addDevice();
	assert.deepEqual(await pay({ amount: 1 }), { paid: 1 });
	ran.length = 0;
	approver.when({ tool: "pay" }).wait();
	const paying = thrown(() => pay({ amount: 5 }));
	await until(() => approver.asked.length === 2);
	// The gateway shows the revocation only now, and the thief decides.
	await approver.revokeDevice();
	const pending = await approver.client.submit({
		call: { name: "x", args: {} },
	});
	assert.ok(pending.requestId);
	await approver.asked[1].approve();
	assertDenied(await paying, Untrusted, ran);
});

test("the request was cancelled at the gateway", async () => {
	const { approver, pay, ran } = await gatedTool();
	approver.when({ tool: "pay" }).wait();
	const paying = thrown(() => pay({ amount: 5 }));
	const [asked] = await until(() => approver.asked.length && approver.asked);
	const client = await approver.newClient();
	assert.ok(client);
	await approver.gateway.transport().send({
		method: "POST",
		path: `/v1/exchanges/${asked.requestId}/withdraw`,
		body: "{}",
		signal: new AbortController().signal,
	});
	assertDenied(await paying, Ended, ran);
});

test("no profile, a damaged one, one that others can read", async (t) => {
	const profiles = await directory(t);
	const before = process.env.COUNTERSIGN_PROFILES;
	process.env.COUNTERSIGN_PROFILES = profiles;
	t.after(() => {
		if (before === undefined) delete process.env.COUNTERSIGN_PROFILES;
		else process.env.COUNTERSIGN_PROFILES = before;
	});
	const opened = () => thrown(() => Client.fromProfile("agent"));
	assert.ok((await opened()) instanceof ProfileError);
	const path = join(profiles, "agent.toml");
	await mkdir(profiles, { recursive: true });
	await writeFile(path, 'key = "secret-value', { mode: 0o600 });
	const damaged = await opened();
	assert.ok(damaged instanceof ProfileError);
	assert.doesNotMatch(damaged.message, /secret-value/);
	await chmod(path, 0o640);
	assert.match((await opened()).message, /read by others/);
	assert.match(
		(await thrown(() => Client.fromProfile("../x"))).message,
		/name/,
	);
});

test("an approver that is not paired", async () => {
	const { approver } = await gatedTool();
	const call = { name: "pay", args: {} };
	const asking = approver.client.ask({ call, approver: "mallory" });
	const error = await thrown(() => asking);
	assert.ok(error instanceof NotPaired);
	assert.equal(approver.asked.length, 0);
});

test("our own code fails unexpectedly: nothing runs", async () => {
	const journal = {
		take: async () => {
			throw new RangeError("no room for a journal");
		},
	};
	const { pay, ran } = await gatedTool({ journal });
	assert.ok((await thrown(() => pay({ amount: 5 }))) instanceof RangeError);
	assert.deepEqual(ran, []);
});

test("a journal that answers nothing denies", async () => {
	const { pay, ran } = await gatedTool({ journal: { take: async () => {} } });
	assert.ok((await thrown(() => pay({ amount: 5 }))) instanceof Denied);
	assert.deepEqual(ran, []);
});

test("two calls at once, one approved: only that one runs", async () => {
	const { approver, pay, ran } = await gatedTool();
	approver.when({ tool: "pay", args: { amount: 2 } }).reject();
	const both = await Promise.allSettled([
		pay({ amount: 1 }),
		pay({ amount: 2 }),
	]);
	assert.deepEqual(
		both.map(({ status }) => status),
		["fulfilled", "rejected"],
	);
	assert.deepEqual(ran, [{ amount: 1 }]);
});

test("arguments that change while the person thinks", async () => {
	const { approver, pay, ran } = await gatedTool();
	approver.when({ tool: "pay" }).wait();
	const args = { amount: 1, to: { iban: "DE02" } };
	const paying = pay(args);
	await until(() => approver.asked.length === 1);
	args.amount = 1_000_000;
	args.to.iban = "XX99";
	await approver.asked[0].approve();
	await paying;
	assert.deepEqual(ran, [{ amount: 1, to: { iban: "DE02" } }]);
});

test("arguments that are not JSON", async () => {
	const { approver, pay, ran } = await gatedTool();
	const cyclic = {};
	cyclic.self = cyclic;
	for (const args of [
		{ at: new Date() },
		{ count: Number.NaN },
		{ count: 2 ** 53 },
		{ count: 1n },
		{ text: "\ud800" },
		{ text: "a\0b" },
		{ bytes: new Uint8Array(2) },
		{ map: new Map() },
		{ list: [undefined] },
		{ run: () => {} },
		{ [Symbol("x")]: 1 },
		Object.defineProperty({}, "amount", { get: () => 1, enumerable: true }),
		Object.assign([], { extra: 1 }),
		new (class Money {})(),
		cyclic,
		"text",
		null,
	])
		assertDenied(await thrown(() => pay(args)), NotAskable, ran);
	assert.equal(approver.asked.length, 0);
});

test("actions: the chosen one arrives", async () => {
	const approver = await FakeApprover.create();
	approver
		.when({ type: "plan.review" })
		.approve({ actionId: "staging", reason: "ok" });
	const approval = await approver.client.ask({
		type: "plan.review",
		payload: { kind: "plan", text: "deploy" },
		repoRef: "repo:acme/infra",
		actions: [
			Action.approve("staging", "To staging"),
			Action.reject("no", "Not today"),
		],
	});
	assert.equal(approval.actionId, "staging");
	assert.equal(approval.reason, "ok");
	assert.equal(approver.asked[0].repository, "repo:acme/infra");
	assert.equal(approver.asked[0].actions.length, 2);
});
