// This device does not forget what it learned about devices and decisions: `node --test
// web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { canonical, parse } from "../core/canonical.js";
import { sign } from "../core/keys.js";
import { Session } from "../core/session.js";
import {
	DeviceTrust,
	spellSigned,
	spellStatement,
} from "../core/statements.js";
import { Store } from "../core/store.js";
import { chainOf, recordOf, refresh } from "../core/teams.js";
import { installStorage } from "./memory.mjs";

globalThis.WebSocket ??= { OPEN: 1 };

const { newDevice } = await import("./hostile.mjs");
const teams = await import("./teams.mjs");
installStorage();

const SUBJECT = { tenantId: "t", approverId: "alice" };
const AT = "2026-01-01T00:00:00Z";

async function adds(by, device) {
	const text = spellStatement(
		SUBJECT,
		{ add: device.bundle },
		AT,
		by.bundle.deviceId,
	);
	return parse(
		"statement",
		spellSigned(text, await sign(by, text), await sign(device, text)),
	);
}

async function revokes(by, device, keeps) {
	const change = {
		revoke: device.bundle.deviceId,
		...(keeps && { keeps: keeps.map(({ bundle }) => bundle.deviceId) }),
	};
	const text = spellStatement(SUBJECT, change, AT, by.bundle.deviceId);
	return parse("statement", spellSigned(text, await sign(by, text), null));
}

test("a statement counts also if its signer is added later in the list", async () => {
	const [own, other, stolen] = [
		await newDevice("own"),
		await newDevice("other"),
		await newDevice("stolen"),
	];
	const trust = new DeviceTrust(SUBJECT, [own.bundle]);
	const unreadable = parse("statement", "{}");
	await trust.followAll([
		await adds(own, stolen),
		unreadable,
		await revokes(other, stolen),
		await adds(own, other),
	]);
	assert.deepEqual(
		trust.inForce.map(({ name }) => name),
		["own", "other"],
	);
	assert.ok(trust.revoked.has(stolen.bundle.deviceId));
});

test("what a stolen device adds goes with it, wherever the gateway lists it", async () => {
	const names = ["own", "stolen", "good", "thief", "friend", "child"];
	const [own, stolen, good, thief, friend, child] = await Promise.all(
		names.map(newDevice),
	);
	const list = [
		await adds(own, stolen),
		await adds(stolen, good),
		await adds(stolen, thief),
		await adds(thief, friend),
		await adds(good, child),
	];
	const revocation = await revokes(own, stolen, [own, good]);
	for (const before of [
		[],
		[await revokes(stolen, stolen, [own, good, thief, friend])],
		[await revokes(stolen, stolen)],
		[await revokes(thief, thief)],
		[await revokes(stolen, thief)],
	]) {
		const trust = new DeviceTrust(SUBJECT, [own.bundle]);
		for (let turn = 0; turn < 2; turn += 1) {
			await trust.followAll([...list, ...before, revocation]);
			assert.deepEqual(
				trust.inForce.map(({ name }) => name),
				["own", "good", "child"],
			);
			assert.ok(trust.revoked.has(thief.bundle.deviceId));
		}
	}
});

test("who added whom is not forgotten", async () => {
	const [own, stolen, thief] = await Promise.all(
		["own", "stolen", "thief"].map(newDevice),
	);
	const store = await Store.open();
	const session = {
		store,
		keys: own,
		subject: SUBJECT,
		identity: { deviceId: own.bundle.deviceId },
	};
	const [trustOf, remember] = ["trust", "remember"].map((name) =>
		Session.prototype[name].bind(session),
	);
	const before = await trustOf();
	await before.followAll([await adds(own, stolen), await adds(stolen, thief)]);
	await remember(before);
	const after = await trustOf();
	assert.equal(after.inForce.length, 3);
	await after.followAll([await revokes(own, stolen, [own])]);
	await remember(after);
	assert.deepEqual(
		(await trustOf()).inForce.map(({ name }) => name),
		["own"],
	);
});

test("a revocation is not forgotten when two lists are read at once", async () => {
	const [own, other, stolen] = [
		await newDevice("own"),
		await newDevice("other"),
		await newDevice("stolen"),
	];
	const store = await Store.open();
	const session = {
		store,
		keys: own,
		subject: SUBJECT,
		identity: { deviceId: own.bundle.deviceId },
	};
	const [trustOf, remember] = ["trust", "remember"].map((name) =>
		Session.prototype[name].bind(session),
	);
	const start = await trustOf();
	await start.followAll([await adds(own, stolen)]);
	await remember(start);
	const [one, two] = [await trustOf(), await trustOf()];
	await one.followAll([await revokes(own, stolen)]);
	await two.followAll([await adds(own, other)]);
	await Promise.all([remember(one), remember(two)]);
	const now = await trustOf();
	assert.deepEqual(now.inForce.map(({ name }) => name).sort(), [
		"other",
		"own",
	]);
	assert.ok(now.revoked.has(stolen.bundle.deviceId));
});

test("a verified record is not replaced by one that is not", async () => {
	const store = await Store.open();
	const keep = (body, isVerified) =>
		store.keepDecision({ requestId: "r", decidedAt: AT, body, isVerified });
	await keep("gateway", false);
	await keep("own", true);
	await keep("forged", false);
	assert.equal((await store.decision("r")).body, "own");
});

test("a team is forgotten, and others are kept", async () => {
	const store = await Store.open();
	for (const teamId of ["one", "other"])
		await store.keepTeam({ teamId, state: "", digests: [], fork: null });
	await store.removeTeam("one");
	assert.equal(await store.team("one"), null);
	assert.equal((await store.team("other")).teamId, "other");
});

/** Two tabs with one store, which have pinned a team and are shown other states of it. */
async function tabs(one, other) {
	const store = await Store.open();
	const made = await teams.teamScene();
	const before = recordOf(made.chain);
	await store.keepTeam(before);
	const tab = (states) => ({
		...made.session,
		store,
		client: {
			json: async ({ path }) => {
				const after = Number(path.split("=")[1] ?? -1);
				const left = states.filter(({ statement }) => statement.seq > after);
				return parse("answer", canonical({ states: left }));
			},
		},
	});
	const chains = await Promise.all(
		[one, other].map((make) => make(made.first)),
	);
	const [first, second] = chains.map((states) => tab([made.first, ...states]));
	return { before, first, second, store };
}

const named = async (before, name) => teams.next(before, { name }, teams.owner);

test("two tabs that are shown two histories of a team see the fork", async () => {
	const longer = async (first) => {
		const next = await named(first, "other");
		return [next, await named(next, "third")];
	};
	const shorter = async (first) => [await named(first, "one")];
	for (const histories of [
		[longer, shorter],
		[shorter, longer],
		[shorter, async (first) => [await named(first, "other")]],
	]) {
		const { before, first, second, store } = await tabs(...histories);
		const read = await Promise.allSettled([
			refresh(first, before),
			refresh(second, before),
		]);
		const failed = read.flatMap(({ reason }) => reason?.code ?? []);
		assert.deepEqual(failed, ["teamFork"]);
		const kept = await store.team(before.teamId);
		const [own, fork] = await Promise.all(
			[kept.state, kept.fork].map((text) =>
				chainOf({ state: text, digests: [] }),
			),
		);
		assert.notEqual(own.newest.digest, fork.newest.digest);
		// Only the person ends it, by joining anew.
		await store.keepTeam(before);
		assert.equal((await store.team(before.teamId)).fork, kept.fork);
		await store.keepTeam(before, true);
		assert.equal((await store.team(before.teamId)).fork, null);
	}
});

test("two tabs that have read one history each know all of it", async () => {
	const longer = async (first) => {
		const next = await named(first, "second");
		return [next, await named(next, "third")];
	};
	const { before, first, second, store } = await tabs(longer, async () => []);
	const states = [await refresh(first, before), await refresh(second, before)];
	assert.deepEqual(
		states.map(({ newest }) => newest.seq),
		[2, 2],
	);
	assert.equal((await store.team(before.teamId)).digests.length, 3);
});

test("an enforcer that nobody vouches for is dropped, and can be introduced again", async () => {
	const store = await Store.open();
	const told = [];
	const session = {
		store,
		enforcers: new Map(),
		refused: new Map(),
		tabs: { postMessage: (text) => told.push(text) },
	};
	const [pin, drop, reload] = ["pin", "drop", "reload"].map((name) =>
		Session.prototype[name].bind(session),
	);
	await pin(teams.recordOf("ci"));
	await pin(teams.recordOf("other"));
	await drop("ci");
	assert.deepEqual([...session.enforcers.keys()], ["other"]);
	await reload();
	assert.deepEqual([...session.enforcers.keys()], ["other"]);
	assert.deepEqual(await store.unpaired(), []);
	assert.equal(told.length, 3);
});

test("what the gateway could not be told of an ended pairing is kept until it is paired again", async () => {
	const store = await Store.open();
	const session = {
		store,
		enforcers: new Map(),
		refused: new Map(),
		tabs: { postMessage() {} },
	};
	const [pin, drop, unpin] = ["pin", "drop", "unpin"].map((name) =>
		Session.prototype[name].bind(session),
	);
	session.drop = drop;
	const record = teams.recordOf("told");
	const untold = { tokens: ["kept"], direct: null, isUnread: true };
	const ended = async () =>
		(await store.unpaired()).filter(({ enforcerId }) => enforcerId === "told");
	await pin(record);
	await unpin(record, untold);
	const [{ at, ...kept }] = await ended();
	assert.deepEqual(kept, { enforcerId: "told", untold });
	const left = { ...untold, isUnread: false };
	await store.keepUntold("told", left);
	assert.deepEqual(await ended(), [{ enforcerId: "told", at, untold: left }]);
	await store.keepUntold("told");
	assert.deepEqual(await ended(), [{ enforcerId: "told", at }]);
	await pin(record);
	await store.keepUntold("told", untold);
	assert.deepEqual(await ended(), []);
});
