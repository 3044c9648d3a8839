// State in files, and its trust: revocations, locks, directories, ids.

import assert from "node:assert/strict";
import {
	chmod,
	mkdir,
	readFile,
	stat,
	utimes,
	writeFile,
} from "node:fs/promises";
import https from "node:https";
import { join } from "node:path";
import { test } from "node:test";
import { ProfileError } from "@countersign/client";
import { Deadline, SYSTEM_CLOCK } from "../dist/clock.js";
import { parse } from "../dist/core/canonical.js";
import { HttpTransport } from "../dist/http.js";
import { parseProfile } from "../dist/profile.js";
import { DirectoryState, removeLock } from "../dist/state.js";
import { sealArtifact } from "../dist/submission.js";
import { merged, TrustStore } from "../dist/trust.js";
import { directory, thrown, until } from "./support.mjs";

const KEY = "JfVxTC4_qfj6DFk8rS-Kc2_HtRWFXGxFrnYsvyuAUU8";

test("a revocation outlives another pairing", () => {
	const record = {
		id: "alice",
		devices: ["one"],
		revoked: ["x"],
		addedBy: new Map(),
		checkedAt: "2026-02-21T12:00:00Z",
		routingToken: "new",
	};
	const old = {
		...record,
		devices: ["lost"],
		revoked: ["y"],
		addedBy: new Map([["one", "lost"]]),
		checkedAt: "2026-02-21T12:01:00Z",
		routingToken: "old",
	};
	const both = merged(record, old);
	assert.deepEqual(both, { ...record, revoked: ["x", "y"] });
});

test("certificates are verified, whatever the environment says", async (t) => {
	const { createConnection } = https.Agent.prototype;
	const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
	t.after(() => {
		https.Agent.prototype.createConnection = createConnection;
		if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
		else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
	});
	process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
	const seen = [];
	https.Agent.prototype.createConnection = (options) => {
		seen.push(options.rejectUnauthorized);
		throw new Error("no network in this test");
	};
	const transport = new HttpTransport({
		urls: ["https://127.0.0.1:9"],
		ca: undefined,
		allowHttp: false,
		apiKey: "csk_secret",
	});
	t.after(() => transport.close());
	const { signal } = new AbortController();
	const request = { method: "GET", path: "/", body: undefined, signal };
	await thrown(() => transport.send(request));
	assert.deepEqual(seen, [true]);
});

const PROFILE = (id, approvers) => `[enforcer]
id = "${id}"
key = "${KEY}"
[enforcer.gateway]
urls = ["http://127.0.0.1:9"]
tenant = "acme"
api_key = "csk_secret"
${approvers
	.map(
		(approver) => `[[enforcer.approvers]]
id = "${approver}"
paired_at = ""
routing_token = "token"
checked_at = ""
devices = []
`,
	)
	.join("")}`;

test("ids that look like others, or that are there twice, are refused", () => {
	parseProfile(PROFILE("bot", ["alice", "bob"]));
	for (const control of ["\u061c", "\u200e", "\u2028", "\u202e", "\u2069"])
		for (const text of [
			PROFILE(`b${control}ot`, ["alice"]),
			PROFILE("bot", [`al${control}ice`]),
		])
			assert.throws(() => parseProfile(text), ProfileError);
	assert.throws(
		() => parseProfile(PROFILE("bot", ["alice", "alice"])),
		ProfileError,
	);
});

test("a device id with two keys is not encrypted to", async () => {
	const approver = (fill) => ({
		trust: {
			inForce: [
				{ deviceId: "device", encryptionKey: new Uint8Array(32).fill(fill) },
			],
		},
	});
	const error = await thrown(() =>
		sealArtifact({}, {}, [approver(1), approver(2)]),
	);
	assert.ok(error instanceof ProfileError, `${error}`);
});

/** A store of trust whose gateway answers with this, after something else has happened. */
async function trustStore(t, statements, meanwhile = async () => {}) {
	const state = new DirectoryState(join(await directory(t), "/"));
	const record = {
		id: "alice",
		devices: [],
		revoked: [],
		addedBy: new Map(),
		checkedAt: "",
		routingToken: "old",
	};
	const profile = { tenantId: "acme", approvers: [record] };
	const gateway = {
		call: async () => {
			await meanwhile(profile, state);
			return { json: () => parse("answer", JSON.stringify({ statements })) };
		},
	};
	const read = async () => structuredClone(profile);
	const store = new TrustStore(read, state, gateway, SYSTEM_CLOCK);
	const deadline = Deadline.after(SYSTEM_CLOCK, 1_000);
	return { state, ask: () => store.devicesOf(["alice"], true, deadline) };
}

test("a late answer for an old pairing changes nothing of the new one", async (t) => {
	const learned = {
		id: "alice",
		routing_token: "new",
		checked_at: "2026-02-21T12:00:00Z",
		devices: [],
		revoked: [],
		added_by: { two: "one" },
	};
	const text = JSON.stringify({ v: 1, approvers: [learned] });
	const { state, ask } = await trustStore(t, [], async (profile, files) => {
		profile.approvers[0].routingToken = "new";
		await files.store("trust.json", text);
	});
	await ask();
	const { approvers } = JSON.parse(await state.load("trust.json"));
	assert.deepEqual(approvers, [learned]);
});

test("a list of too many statements is not followed", async (t) => {
	const many = await trustStore(t, new Array(513).fill({}));
	const error = await thrown(many.ask);
	assert.match(error.message, /more than 512 statements/);
	await (await trustStore(t, new Array(512).fill({}))).ask();
});

test("a lock that was stolen is neither written under nor removed by its first holder", async (t) => {
	const place = await directory(t);
	const state = new DirectoryState(join(place, "/"));
	const lock = join(place, "trust.lock");
	const lockText = () => readFile(lock, "utf8").catch(() => null);
	const [first, second] = [later(), later()];
	let runs = 0;
	const suspended = state.exclusively(async (isHeld) => {
		runs += 1;
		if (runs === 1) await first.promise;
		if (await isHeld()) await state.store("list", `${await load()} first`);
		else throw new Error("not held");
	});
	const load = async () => (await state.load("list")) ?? "";
	await until(async () => runs === 1);
	const mine = await lockText();
	await utimes(lock, 1, 1);
	const thief = state.exclusively(async () => {
		await second.promise;
		await state.store("list", `${await load()} second`);
	});
	await until(async () => ![mine, null].includes(await lockText()));
	const theirs = await lockText();
	first.resolve();
	await assert.rejects(suspended, /not held/);
	assert.equal(await lockText(), theirs);
	second.resolve();
	await thief;
	assert.equal(await load(), " second");
	assert.equal(await lockText(), null);
});

test("a new lock without a mark is not taken for an old one", async (t) => {
	const lock = join(await directory(t), "trust.lock");
	await writeFile(lock, "", { mode: 0o600 });
	const { ino } = await stat(lock);
	await removeLock(lock, "", ino + 1);
	assert.equal((await stat(lock)).ino, ino);
	await removeLock(lock, "", ino);
	await assert.rejects(stat(lock));
});

function later() {
	let resolve;
	const promise = new Promise((done) => {
		resolve = done;
	});
	return { promise, resolve };
}

test("a state directory that others can write is not used", async (t) => {
	const place = join(await directory(t), "state");
	await mkdir(place, { mode: 0o700 });
	const state = new DirectoryState(join(place, "/"));
	assert.equal(await state.create("used/a", ""), true);
	for (const [where, mode] of [
		[place, 0o770],
		[place, 0o702],
		[join(place, "used"), 0o770],
	]) {
		await chmod(where, mode);
		const error = await thrown(() => state.create("used/b", ""));
		assert.ok(error instanceof ProfileError, `${error}`);
		await chmod(where, 0o700);
	}
	await chmod(place, 0o770);
	for (const use of [
		() => state.load("trust.json"),
		() => state.store("trust.json", ""),
		() => state.exclusively(async () => {}),
	])
		assert.ok((await thrown(use)) instanceof ProfileError);
});
