// The library against a real gateway, with the program as the approver.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Client, NotPaired, Rejected } from "@countersign/client";
import { thrown, until } from "../support.mjs";
import { LiveGateway } from "./gateway.mjs";

const run = promisify(execFile);
const worker = fileURLToPath(new URL("worker.mjs", import.meta.url));
let gateway;
let client;

before(async () => {
	gateway = await LiveGateway.start("--nodes", "2");
	client = await Client.fromProfile();
});

after(async () => {
	client?.close();
	await gateway?.stop();
});

test("an approved call runs, and the approver's device has it confirmed", async () => {
	const profile = join(gateway.ready.profiles, "default.toml");
	const unchanged = await readFile(profile, "utf8");
	const file = join(gateway.home, "decision.json");
	const transfer = client.approvalRequired(
		"transfer",
		{ timeout: "1m", show: ["amount", "iban"] },
		async ({ amount }, { approval }) => {
			await approval.record().save(file);
			return { amount, by: approval.approver, reason: approval.reason };
		},
	);
	const running = transfer({ iban: "DE02", amount: 500 });
	const told = await gateway.approve(
		await gateway.onlyRequest(),
		"--reason",
		"fine",
	);
	assert.match(told, /confirmed by the agent's machine/);
	assert.deepEqual(await running, { amount: 500, by: "me", reason: "fine" });
	assert.match(await gateway.cli("verify", file), /approved by me/);
	const verified = await client.verifyRecord(await readFile(file, "utf8"));
	assert.equal(verified.approver, "me");
	assert.equal(await readFile(profile, "utf8"), unchanged);
	const learned = await readFile(
		join(gateway.ready.profiles, "default.trust.json"),
		"utf8",
	);
	assert.equal(JSON.parse(learned).approvers[0].id, "me");
});

test("a rejection, with its reason", async () => {
	const asking = thrown(() =>
		client.ask({
			type: "plan.review",
			payload: { kind: "plan", text: "Deploy" },
		}),
	);
	await gateway.reject(
		await gateway.onlyRequest(),
		"--reason",
		"Not on a Friday.",
	);
	const error = await asking;
	assert.ok(error instanceof Rejected, `${error}`);
	assert.equal(error.reason, "Not on a Friday.");
});

test("a question that is aborted leaves the inbox", async () => {
	const controller = new AbortController();
	const call = { name: "pay", args: { amount: 1 } };
	const asking = thrown(() => client.ask({ call, signal: controller.signal }));
	await gateway.onlyRequest();
	controller.abort();
	assert.equal((await asking).name, "AbortError");
	assert.deepEqual(await gateway.inbox(), []);
});

test("submitted by one process, resumed by another, used once", async () => {
	const work = async (...words) => {
		const { stdout } = await run(process.execPath, [worker, ...words], {
			env: gateway.env,
		});
		return stdout.trim();
	};
	const file = join(gateway.home, "pending.json");
	const id = await work("submit", file);
	assert.equal(await work("submit", file), id);
	assert.equal(await work("resume", file), "waiting");
	await gateway.approve(id, "--wait", "1s");
	assert.equal(await work("resume", file), "ran 7");
	assert.equal(await work("resume", file), "already_used");
});

test("100 questions at once, a node killed meanwhile", async () => {
	const [ran, events] = [[], []];
	const profile = await readFile(
		join(gateway.ready.profiles, "default.toml"),
		"utf8",
	);
	// All wait at the node that is killed; the approver uses the other one.
	const urls = JSON.stringify([...gateway.ready.nodes].reverse());
	const other = await Client.fromProfileText(
		profile.replace(/^urls = .*$/m, `urls = ${urls}`),
		{
			state: join(gateway.home, "state"),
			onEvent: ({ event }) => events.push(event),
		},
	);
	const pay = other.approvalRequired("pay", { timeout: "2m" }, ({ amount }) => {
		ran.push(amount);
		return amount;
	});
	const results = Array.from({ length: 100 }, (_, amount) => pay({ amount }));
	const waiting = await until(async () => {
		const found = await gateway.inbox();
		return found.length >= 100 && found;
	}, 60_000);
	process.kill(gateway.ready.pids[1], "SIGKILL");
	const decide = async () => {
		for (let id = waiting.pop(); id !== undefined; id = waiting.pop())
			await gateway.approve(id, "--wait", "1s");
	};
	await Promise.all([decide(), decide(), decide()]);
	const numbers = Array.from({ length: 100 }, (_, amount) => amount);
	assert.deepEqual(await Promise.all(results), numbers);
	assert.ok(events.includes("gateway_away"));
	other.close();
	assert.deepEqual(
		ran.sort((one, other) => one - other),
		numbers,
	);
});

test("a pairing that the approver has ended", async () => {
	await gateway.cli("unpair", "--profile", "me", gateway.ready.enforcer.id);
	const call = { name: "pay", args: {} };
	const error = await thrown(() => client.ask({ call, timeout: "5s" }));
	assert.ok(error instanceof NotPaired, `${error}`);
});
