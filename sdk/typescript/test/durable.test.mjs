// Requests that outlive a process: resumed, used once, edited, killed.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import {
	AlreadyUsed,
	Approved,
	Changed,
	Denied,
	Expired,
	FileJournal,
	KeyReused,
	StillWaiting,
	TimedOut,
	Untrusted,
} from "@countersign/client";
import { FakeApprover } from "@countersign/client/testing";
import { hashWithout, parse } from "../dist/core/canonical.js";
import { DirectoryState } from "../dist/state.js";
import { directory, thrown, until } from "./support.mjs";

const CALL = { name: "transfer", args: { amount: 500, iban: "DE02" } };

async function waiting(options) {
	const approver = await FakeApprover.create(options);
	approver.when({}).wait();
	return approver;
}

test("submitted, resumed by another client, and used once", async () => {
	const approver = await waiting();
	const pending = await approver.client.submit({ call: CALL, timeout: "1h" });
	const text = pending.toJson();
	const other = await approver.newClient();
	const resumed = other.pending(JSON.parse(text));
	assert.equal(resumed.requestId, pending.requestId);
	assert.ok((await resumed.outcome({ wait: "0s" })) instanceof StillWaiting);
	await approver.asked[0].approve();
	const outcome = await resumed.outcome({ wait: "5s" });
	assert.ok(outcome instanceof Approved);
	const result = await outcome.use(CALL, (args) => args.amount);
	assert.equal(result, 500);
	const again = await other.pending(text).outcome({ wait: "0s" });
	assert.ok(again instanceof Approved);
	const error = await thrown(() =>
		again.use(CALL, () => assert.fail("ran twice")),
	);
	assert.ok(error instanceof AlreadyUsed);
	// It has run: nothing else may be said.
	assert.equal(
		error.forModel(),
		"This call was not executed again: the approval was used before. It may have been executed then. Do not repeat it. Tell the user to check whether it was done.",
	);
});

test("many uses at once: one runs", async () => {
	const approver = await waiting();
	const pending = await approver.client.submit({ call: CALL });
	await approver.asked[0].approve();
	let ran = 0;
	const uses = await Promise.allSettled(
		Array.from({ length: 20 }, async () => {
			const outcome = await pending.outcome({ wait: "5s" });
			return outcome.use(CALL, () => {
				ran += 1;
			});
		}),
	);
	assert.equal(ran, 1);
	assert.equal(uses.filter(({ status }) => status === "fulfilled").length, 1);
});

test("edited arguments are refused", async () => {
	const approver = await waiting();
	const pending = await approver.client.submit({ call: CALL });
	await approver.asked[0].approve();
	const outcome = await pending.outcome({ wait: "5s" });
	for (const call of [
		{ name: "transfer", args: { amount: 501, iban: "DE02" } },
		{ name: "transfer", args: { amount: 500 } },
		{ name: "transfer", args: { amount: 500, iban: "DE02", more: true } },
		{ name: "Transfer", args: CALL.args },
		{ type: "command.review", payload: CALL.args },
	]) {
		const error = await thrown(() => outcome.use(call, () => assert.fail()));
		assert.ok(error instanceof Changed, `${error}`);
	}
	// None of them has used it up.
	assert.equal(await outcome.use(CALL, ({ amount }) => amount), 500);
});

test("an edited record is refused, with or without a right hash", async () => {
	const approver = await waiting();
	const pending = await approver.client.submit({ call: CALL });
	await approver.asked[0].approve();
	const record = JSON.parse(pending.toJson());
	const edited = record.artifact.replace('"amount":500', '"amount":999');
	assert.notEqual(edited, record.artifact);
	const outcomeOf = (artifact) =>
		approver.client.pending({ ...record, artifact }).outcome({ wait: "0s" });
	assert.ok((await outcomeOf(edited)) instanceof Changed);
	const old = JSON.parse(record.artifact).artifactHash;
	const hash = await hashWithout(parse("artifact", edited), "artifactHash");
	const refused = await outcomeOf(edited.replace(old, hash));
	assert.ok(refused instanceof Changed, `${refused}`);
	for (const damaged of ["", "{}", "[]", '{"v":2}', { ...record, more: 1 }]) {
		const error = await thrown(() => approver.client.pending(damaged));
		assert.ok(error instanceof Changed);
	}
	const foreign = { ...record, enforcerId: "other" };
	const other = await approver.client.pending(foreign).outcome({ wait: "0s" });
	assert.ok(other instanceof Changed);
});

// They only wait.
describe("the end of a request", { concurrency: 2 }, () => {
	test("denials of a durable request are returned", async () => {
		const approver = await waiting();
		const pending = await approver.client.submit({ call: CALL, timeout: "2s" });
		const late = await pending.outcome({ wait: "10s" });
		assert.ok(late instanceof TimedOut);
		const second = await approver.client.submit({ call: CALL });
		await approver.asked[1].reject("no");
		const rejected = await second.outcome({ wait: "5s" });
		assert.equal(rejected.cause, "rejected");
		assert.equal(rejected.reason, "no");
		const third = await approver.client.submit({ call: CALL });
		await third.withdraw();
		assert.equal((await third.outcome({ wait: "5s" })).cause, "ended");
	});

	test("an approval that is used too late", async () => {
		const approver = await waiting();
		const pending = await approver.client.submit({
			call: CALL,
			timeout: "3s",
		});
		await approver.asked[0].approve();
		const outcome = await pending.outcome({ wait: "2s" });
		assert.ok(outcome instanceof Approved);
		await new Promise((resolve) => setTimeout(resolve, 3_100));
		const error = await thrown(() => outcome.use(CALL, () => assert.fail()));
		assert.ok(error instanceof Expired, `${error}`);
		assert.equal(error.cause, "expired");
	});
});

test("a device that is revoked between the approval and its use", async () => {
	const approver = await waiting();
	await approver.addDevice();
	const pending = await approver.client.submit({ call: CALL });
	await approver.asked[0].approve();
	const outcome = await pending.outcome({ wait: "5s" });
	assert.ok(outcome instanceof Approved);
	await approver.revokeDevice();
	// Learned with another request.
	await approver.client.submit({ call: { name: "other", args: {} } });
	const error = await thrown(() => outcome.use(CALL, () => assert.fail()));
	assert.ok(error instanceof Untrusted, `${error}`);
});

test("a key gives the same request again, in another process too", async (t) => {
	const state = new DirectoryState(join(await directory(t), "/"));
	const approver = await waiting({ state });
	const submit = (client, args = CALL.args) =>
		client.submit({ call: { ...CALL, args }, key: "run 1/call 2" });
	const first = await submit(approver.client);
	const others = await Promise.all([
		submit(approver.client),
		submit(approver.client),
		submit(await approver.newClient()),
	]);
	for (const other of others) assert.equal(other.requestId, first.requestId);
	assert.equal(approver.asked.length, 1);
	const error = await thrown(() => submit(approver.client, { amount: 1 }));
	assert.ok(error instanceof KeyReused);
	assert.ok(error instanceof Denied);
});

test("a key whose request was stored, but not sent", async () => {
	const approver = await waiting();
	approver.gateway.down();
	const submission = { call: CALL, key: "k", submitTimeout: "200ms" };
	const failed = await thrown(() => approver.client.submit(submission));
	assert.equal(failed.cause, "unavailable");
	approver.gateway.up();
	const [one, two] = [
		await approver.client.submit(submission),
		await approver.client.submit(submission),
	];
	assert.equal(one.requestId, two.requestId);
	assert.equal(approver.asked.length, 1);
});

test("a journal takes each request once, among processes", async (t) => {
	const place = await directory(t);
	const [one, two] = [new FileJournal(place), new FileJournal(place)];
	const taken = await Promise.all(
		[one, two, one, two].map((journal) => journal.take("a")),
	);
	assert.equal(taken.filter(Boolean).length, 1);
	assert.equal(await two.take("b"), true);
});

// The parent decides when the child is killed; the child tells how far it has come.
const STEPS = ["compared", "taken", "started", "finished"];
describe("kill -9 in the middle of a use", { concurrency: 2 }, () => {
	for (const step of STEPS) {
		test(`kill -9 when the use has ${step}: never twice`, async (t) => {
			const place = await directory(t);
			const effects = join(place, "effects");
			const run = (killAt) =>
				new Promise((resolve, reject) => {
					const child = spawn(
						process.execPath,
						[
							new URL("killed.mjs", import.meta.url).pathname,
							place,
							effects,
							killAt,
						],
						{ stdio: ["ignore", "pipe", "inherit"] },
					);
					let told = "";
					child.stdout.on("data", (chunk) => {
						told += chunk;
						if (killAt !== "" && told.includes(`${killAt}\n`))
							child.kill("SIGKILL");
					});
					child.on("error", reject);
					child.on("exit", (_, signal) => resolve({ told, signal }));
				});
			const first = await run(step);
			assert.equal(first.signal, "SIGKILL");
			const second = await run("");
			const third = await run("");
			const text = await readFile(effects, "utf8").catch(() => "");
			const count = text.split("\n").filter(Boolean).length;
			const isUsed = step !== "compared";
			assert.match(second.told, isUsed ? /already_used/ : /finished/);
			assert.match(third.told, /already_used/);
			assert.equal(count, step === "taken" ? 0 : 1);
		});
	}
});

test("the state forgets nothing when two processes write at once", async (t) => {
	const place = await directory(t);
	const state = new DirectoryState(join(place, "/"));
	await Promise.all(
		Array.from({ length: 20 }, (_, number) =>
			state.exclusively(async () => {
				const before = (await state.load("list")) ?? "";
				await state.store("list", `${before}${number} `);
			}),
		),
	);
	const numbers = (await state.load("list")).trim().split(" ");
	assert.equal(new Set(numbers).size, 20);
	await until(async () => (await state.load("trust.lock")) === null);
});
