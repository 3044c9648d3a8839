// Nothing secret in what programs print: objects, errors, events.

import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import { Client } from "@countersign/client";
import { FakeApprover } from "@countersign/client/testing";
import { DirectoryState } from "../dist/state.js";
import { directory, thrown } from "./support.mjs";

const SECRETS = /hush|csk_secret|JfVxTC4|person's words/;

function shown(value) {
	const deep = { depth: 20, showHidden: false, getters: true };
	return `${inspect(value, deep)} ${String(value)} ${JSON.stringify(value) ?? ""} ${value?.stack ?? ""}`;
}

test("objects, errors and events have no arguments, reasons, keys or credentials", async () => {
	const events = [];
	const approver = await FakeApprover.create({
		onEvent: (event) => events.push(event),
	});
	const call = { name: "pay", args: { note: "hush" } };
	approver.when({ tool: "pay" }).approve({ reason: "a person's words" });
	const pending = await approver.client.submit({ call });
	const outcome = await pending.outcome({ wait: "5s" });
	assert.equal(outcome.reason, "a person's words");
	approver.when({ tool: "pay" }).reject("a person's words");
	const rejected = await thrown(() => approver.client.ask({ call }));
	assert.equal(rejected.reason, "a person's words");
	const changed = await thrown(() =>
		outcome.use({ name: "pay", args: { note: "hush hush" } }, () => {}),
	);
	const record = outcome.record();
	for (const each of [
		approver.client,
		pending,
		outcome,
		rejected,
		changed,
		record,
		events,
	])
		assert.doesNotMatch(shown(each), SECRETS);
	assert.deepEqual(
		events.map(({ event }) => event),
		["asked", "decided", "asked", "denied"],
	);
	// Those that ask for it get it.
	assert.match(pending.toJson(), /hush/);
	assert.match(record.text(), /hush/);
});

test("a client of a profile, and its errors, have neither key nor credential", async (t) => {
	const text = `[enforcer]
id = "build-bot"
key = "JfVxTC4_qfj6DFk8rS-Kc2_HtRWFXGxFrnYsvyuAUU8"
[enforcer.gateway]
urls = ["http://127.0.0.1:9"]
tenant = "acme"
api_key = "csk_secret"
[[enforcer.approvers]]
id = "alice"
paired_at = ""
routing_token = "token"
checked_at = ""
devices = []
`;
	const events = [];
	const client = await Client.fromProfileText(text, {
		state: await directory(t),
		onEvent: (event) => events.push(event),
	});
	assert.doesNotMatch(shown(client), SECRETS);
	const call = { name: "pay", args: { note: "hush" } };
	const error = await thrown(() => client.ask({ call, timeout: "300ms" }));
	assert.equal(error.cause, "unavailable");
	assert.doesNotMatch(shown(error), SECRETS);
	assert.doesNotMatch(shown(events), SECRETS);
	assert.ok(events.some(({ event }) => event === "gateway_away"));
});

test("files that are written are readable by their owner only", async (t) => {
	const place = await directory(t);
	const state = new DirectoryState(join(place, "/"));
	const approver = await FakeApprover.create({ state });
	approver.when({}).approve();
	const call = { name: "pay", args: {} };
	const pending = await approver.client.submit({ call, key: "k" });
	const outcome = await pending.outcome({ wait: "5s" });
	await outcome.use(call, () => {});
	await outcome.record().save(join(place, "record.json"));
	for (const name of ["trust.json", `used/${outcome.requestId}`, "record.json"])
		assert.equal((await stat(join(place, name))).mode & 0o777, 0o600, name);
	const saved = JSON.parse(await readFile(join(place, "record.json"), "utf8"));
	assert.equal(saved.approverId, "fake-approver");
	const verified = await approver.client.verifyRecord(JSON.stringify(saved));
	assert.equal(verified.decision, "approve");
	const forged = {
		...saved,
		decision: saved.decision.replace("approve", "reject"),
	};
	await assert.rejects(approver.client.verifyRecord(JSON.stringify(forged)));
});

test("a listener that throws changes nothing", async () => {
	const approver = await FakeApprover.create({
		onEvent: () => {
			throw new Error("the log is full");
		},
	});
	approver.when({}).approve();
	await approver.client.ask({ call: { name: "pay", args: {} } });
});
