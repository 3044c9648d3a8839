// Enforcers that owners introduce to the members of a team: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "../core/canonical.js";
import { judgeIntroductions, parseIntroduction } from "../core/introduction.js";
import {
	introduceEnforcers,
	introduceToTeams,
	learnEnforcers,
	readTeamIntroductions,
	shareEnforcers,
} from "../core/introductions.js";
import { Problem } from "../core/problem.js";
import {
	approverOf,
	bob,
	carol,
	chainOf,
	contentOf,
	introductionOf,
	KEY,
	next,
	owner,
	recordOf,
	refused,
	seatOf,
	signed,
	teamScene,
} from "./teams.mjs";

const OTHER_KEY = "CgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const LATER = "2026-01-02T00:00:00Z";
const refusal = (status, code) =>
	Problem.of("refused", { status, code, message: "" });

/** A team that this device takes part in, and which enforcers it knows. */
async function joined(records = [], scene = {}) {
	const made = await teamScene(scene);
	await made.pin();
	made.session.enforcers = new Map(
		records.map((record) => [record.enforcerId, record]),
	);
	return made;
}

const isOwner = { seats: ([olga, alice]) => [olga, { ...alice, owner: true }] };

/** Alice is an owner with another device. */
const ownerWith =
	(other) =>
	([olga, alice]) => [
		olga,
		{ ...alice, owner: true, devices: [...alice.devices, other.bundle.text] },
	];

/** Whether this device’s own word for the enforcer counts in the team. */
const introducesStill = ({ device }, [{ accepted }]) =>
	accepted.some(
		({ enforcerId, by }) =>
			enforcerId === "ci" && by === device.bundle.deviceId,
	);

const byOlga = ({ serves }, enforcerId, further) =>
	introductionOf(owner, "olga", serves.teamId, enforcerId, further);

/** A device of bob, an owner too. */
const byBob = ({ serves }, enforcerId, further) =>
	introductionOf(bob, "bob", serves.teamId, enforcerId, further);

const bothOwn = {
	seats: ([olga, alice, bobs]) => [olga, alice, { ...bobs, owner: true }],
};

/** The next state, in which olga is no owner any more. */
async function demoteOlga(made) {
	const [olga, ...others] = made.first.statement.seats;
	const seats = [{ ...olga, owner: false }, ...others];
	made.serves.states.push(await next(made.first, { seats }, owner));
}

const introduceTo = async ({ session }) =>
	introduceToTeams(session, await readTeamIntroductions(session));

/** The enforcers that were introduced to teams, or to the own devices. */
const introducedTo = ({ posted }, start) =>
	posted
		.filter(({ path }) => path.startsWith(start))
		.map(({ body }) => body.statement.enforcerId);
const [TEAMS, OWN] = ["/v1/teams/", "/v1/approvers/"];

test("members’ devices take over the introductions of owners, and of nobody else", async () => {
	const made = await joined();
	const { session, serves } = made;
	const { teamId } = serves;
	const dave = { operators: ["dave"] };
	const good = await byOlga(made, "ci", dave);
	serves.introductions = [
		await introductionOf(bob, "bob", teamId, "ci"),
		await introductionOf(bob, "olga", teamId, "ci"),
		await introductionOf(owner, "bob", teamId, "ci"),
		await introductionOf(owner, "olga", "AAAAAAAAAAAAAAAAAAAAAA", "ci"),
		await byOlga(made, "ci", { tenantId: "other" }),
		{ ...good, statement: { ...good.statement, operators: ["erin"] } },
	];
	assert.equal(await learnEnforcers(session), false);
	assert.equal(session.enforcers.size, 0);
	serves.introductions.push(good);
	assert.equal(await learnEnforcers(session), true);
	const { introducedBy } = session.enforcers.get("ci");
	assert.equal(introducedBy, owner.bundle.deviceId);
	assert.deepEqual(session.enforcers.get("ci").operators, ["dave"]);
	assert.equal(session.enforcers.get("ci").owner, "olga");
	assert.equal(session.enforcers.get("ci").teamId, teamId);
	assert.equal(await learnEnforcers(session), false);
	// An introduction for a team is none for the own devices.
	session.enforcers.clear();
	serves.introductions = [];
	serves.own = [await introductionOf(made.device, "alice", teamId, "ci")];
	session.identity.deviceId = "x";
	assert.equal(await learnEnforcers(session), false);
});

test("an enforcer that only a team has introduced is not passed on to the own devices", async () => {
	const made = await joined([recordOf("own")]);
	made.serves.introductions = [await byOlga(made, "ci")];
	await shareEnforcers(made.session, async () => {});
	assert.ok(made.session.enforcers.has("ci"));
	assert.deepEqual(introducedTo(made, OWN), ["own"]);
	// As it was kept before records named the team.
	const { teamId: _, ...before } = made.session.enforcers.get("ci");
	made.session.enforcers.set("ci", before);
	await introduceEnforcers(made.session);
	assert.deepEqual(introducedTo(made, OWN), ["own", "own"]);
	await learnEnforcers(made.session);
	assert.equal(made.session.enforcers.get("ci").teamId, made.serves.teamId);
});

test("it is forgotten with its last basis in the team, and can come back", async () => {
	const made = await joined([recordOf("own")], bothOwn);
	const { session, serves } = made;
	let changes = 0;
	const learn = async () => {
		if (await learnEnforcers(session)) changes += 1;
		return session.enforcers.has("ci");
	};
	serves.introductions = [await byOlga(made, "ci")];
	assert.equal(await learn(), true);
	// The list may be withheld, as long as the owner is one.
	serves.introductions = [];
	assert.equal(await learn(), true);
	serves.introductions = [await byOlga(made, "ci")];
	await demoteOlga(made);
	assert.equal(await learn(), false);
	assert.deepEqual([...session.enforcers.keys()], ["own"]);
	assert.equal(changes, 2);
	serves.introductions = [await byBob(made, "ci")];
	assert.equal(await learn(), true);
	assert.equal(session.enforcers.get("ci").owner, "bob");
});

test("another key that an owner introduces is no basis for the one before", async () => {
	const made = await joined([], bothOwn);
	const { session, serves } = made;
	serves.introductions = [await byOlga(made, "ci")];
	await learnEnforcers(session);
	serves.introductions.push(await byBob(made, "ci", { key: OTHER_KEY }));
	await learnEnforcers(session);
	assert.equal(session.enforcers.get("ci").key, KEY);
	assert.equal(session.refused.get("ci"), "otherKey");
	await demoteOlga(made);
	await learnEnforcers(session);
	const { key, owner: by } = session.enforcers.get("ci");
	assert.deepEqual([key, by], [OTHER_KEY, "bob"]);
});

test("it stays while another owner introduces the same key", async () => {
	const made = await joined([], bothOwn);
	const { session, serves } = made;
	serves.introductions = [await byOlga(made, "ci")];
	await learnEnforcers(session);
	const before = session.enforcers.get("ci");
	serves.introductions.push(await byBob(made, "ci"));
	await demoteOlga(made);
	assert.equal(await learnEnforcers(session), false);
	assert.equal(session.enforcers.get("ci"), before);
});

test("it stays if the team cannot be read, and so does what this person knows otherwise", async () => {
	const made = await joined([], bothOwn);
	const { session, serves } = made;
	serves.introductions = [await byOlga(made, "ci")];
	await learnEnforcers(session);
	serves.introductions.push(await byBob(made, "ci"));
	await demoteOlga(made);
	await learnEnforcers(session);
	const { teamId } = serves;
	session.enforcers.set("paired", recordOf("paired", { teamId }));
	const introducedBy = carol.bundle.deviceId;
	const ofOwn = recordOf("ofOwn", { introducedBy, teamId });
	session.enforcers.set("ofOwn", ofOwn);
	serves.introductions = [];
	const { json } = session.client;
	const withheld = (end) => async (it) => {
		const path = it.path.split("?")[0];
		if (path.startsWith(TEAMS) && path.endsWith(end))
			throw Problem.of("slow", {});
		return json(it);
	};
	for (const end of ["/states", "/introductions"]) {
		session.client.json = withheld(end);
		await learnEnforcers(session);
		assert.ok(session.enforcers.has("ci"), end);
	}
	session.client.json = json;
	await learnEnforcers(session);
	assert.deepEqual([...session.enforcers.keys()], ["paired", "ofOwn"]);
});

test("the word of an own device replaces that of a team", async () => {
	const made = await joined([], bothOwn);
	made.trusts(carol);
	const { session, serves } = made;
	const own = await introductionOf(carol, "alice", undefined, "ci");
	serves.introductions = [await byOlga(made, "ci")];
	await learnEnforcers(session);
	serves.own = [own];
	assert.equal(await learnEnforcers(session), true);
	const record = session.enforcers.get("ci");
	assert.equal(record.introducedBy, carol.bundle.deviceId);
	assert.ok(!("owner" in record));
	await demoteOlga(made);
	assert.equal(await learnEnforcers(session), false);
	await introduceEnforcers(session);
	assert.deepEqual(introducedTo(made, OWN), ["ci"]);
	// The same from the start, in any order.
	const offers = [...serves.introductions, own].map((node) =>
		parseIntroduction(parse("answer", JSON.stringify(node))),
	);
	const here = { own: "x", known: new Map(), ended: new Map() };
	for (const order of [offers, [...offers].reverse()]) {
		const [taken] = judgeIntroductions(order, here).taken;
		assert.equal(taken.introducedBy, carol.bundle.deviceId);
		assert.ok(!("owner" in taken));
	}
});

test("owners’ devices introduce to the members what they have paired, once", async () => {
	const teamId = "AAAAAAAAAAAAAAAAAAAAAA";
	const introducedBy = owner.bundle.deviceId;
	const records = [recordOf("alone"), recordOf("elsewhere", { teamId })];
	const made = await joined(records, isOwner);
	const further = { teamId: made.serves.teamId };
	const others = [{ token: "kept", ...further }];
	for (const record of [
		recordOf("ci", further),
		recordOf("again", { routingToken: "newest", others }),
		recordOf("introduced", { ...further, introducedBy }),
	])
		made.session.enforcers.set(record.enforcerId, record);
	await introduceTo(made);
	assert.deepEqual(introducedTo(made, TEAMS), ["ci", "again"]);
	made.serves.introductions = made.posted.map(({ body }) => body);
	await introduceTo(made);
	assert.equal(made.posted.length, 2);
});

test("an owner’s device does not vouch by itself for what another owner alone has introduced", async () => {
	const made = await joined([recordOf("own")], isOwner);
	const { session, serves } = made;
	serves.introductions = [
		await byOlga(made, "ci"),
		// Of another key than the one that is known here.
		await byOlga(made, "own", { key: OTHER_KEY }),
		await introductionOf(bob, "bob", serves.teamId, "forged"),
	];
	for (let times = 0; times < 2; times += 1)
		await shareEnforcers(session, async () => {});
	assert.ok(session.enforcers.has("ci"));
	assert.deepEqual(introducedTo(made, TEAMS), []);
	// Nor for one that was kept before records named the team.
	const { teamId: _, ...before } = session.enforcers.get("ci");
	session.enforcers.set("ci", before);
	await introduceTo(made);
	assert.deepEqual(introducedTo(made, TEAMS), []);
	await learnEnforcers(session);
	// Then it ends with that owner.
	await demoteOlga(made);
	await learnEnforcers(session);
	assert.deepEqual([...session.enforcers.keys()], ["own"]);
});

test("an owner’s device vouches for what an own device has introduced, once", async () => {
	const made = await joined([], { seats: ownerWith(carol) });
	made.trusts(carol);
	const { session, serves } = made;
	const { teamId } = serves;
	const byCarol = (id, team) => introductionOf(carol, "alice", team, id);
	serves.own = [await byCarol("ci")];
	serves.introductions = [
		await byOlga(made, "ci"),
		await byOlga(made, "agreed"),
		await byCarol("agreed", teamId),
	];
	await shareEnforcers(session, async () => {});
	assert.deepEqual(introducedTo(made, TEAMS).sort(), ["agreed", "ci"]);
	const bodies = made.posted
		.filter(({ path }) => path.startsWith(TEAMS))
		.map(({ body }) => body);
	const [{ statement }] = bodies;
	assert.equal(statement.by, made.device.bundle.deviceId);
	assert.equal(statement.teamId, teamId);
	serves.introductions.push(...bodies);
	await shareEnforcers(session, async () => {});
	assert.equal(introducedTo(made, TEAMS).length, 2);
});

test("a device on the own seat that this one does not trust is no own device", async () => {
	const made = await joined([], { seats: ownerWith(carol) });
	const { session, serves } = made;
	const { teamId } = serves;
	serves.introductions = [await introductionOf(carol, "alice", teamId, "ci")];
	await shareEnforcers(session, async () => {});
	assert.equal(session.enforcers.get("ci").owner, "alice");
	assert.deepEqual(introducedTo(made, TEAMS), []);
});

test("before another own device is revoked, its enforcers are vouched for, and none is learned", async () => {
	const made = await joined([], { seats: ownerWith(carol) });
	made.trusts(carol);
	const { session, serves } = made;
	const { teamId } = serves;
	const { deviceId } = carol.bundle;
	const byCarol = (id) => introductionOf(carol, "alice", teamId, id);
	serves.introductions = [await byCarol("ci")];
	await learnEnforcers(session);
	serves.introductions.push(
		await byCarol("planted"),
		await byOlga(made, "olgas"),
		// Of another key than the one that is known here.
		await introductionOf(carol, "alice", teamId, "paired"),
	);
	const introducedBy = owner.bundle.deviceId;
	for (const record of [
		recordOf("olgas", { introducedBy, owner: "olga", teamId }),
		recordOf("paired", { key: OTHER_KEY }),
	])
		session.enforcers.set(record.enforcerId, record);
	const { approver, sent } = await approverOf(made);
	assert.deepEqual(await approver.revokeDevice(deviceId), []);
	assert.deepEqual(sent, [
		"POST introductions",
		`DELETE ${deviceId}`,
		"POST states",
	]);
	assert.deepEqual(introducedTo(made, TEAMS).slice(0, 1), ["ci"]);
	assert.ok(!session.enforcers.has("planted"));
	// Members keep it, and this device too.
	serves.introductions.push(made.posted[0].body);
	serves.states.push(made.posted[1].body);
	await learnEnforcers(session);
	assert.ok(introducesStill(made, await readTeamIntroductions(session)));
});

test("a device is revoked although its enforcers cannot be vouched for, which is reported", async () => {
	const made = await joined([], { seats: ownerWith(carol) });
	made.trusts(carol);
	const { session, serves } = made;
	const { deviceId } = carol.bundle;
	serves.introductions = [
		await introductionOf(carol, "alice", serves.teamId, "ci"),
	];
	await learnEnforcers(session);
	const { call } = session.client;
	session.client.call = async (it) => {
		if (it.path.endsWith("/introductions")) throw Problem.of("slow", {});
		return call(it);
	};
	const { approver, sent } = await approverOf(made);
	const [notice, ...others] = await approver.revokeDevice(deviceId);
	assert.equal(notice.code, "notVouched");
	assert.equal(notice.values.problem.code, "slow");
	assert.deepEqual(others, []);
	assert.ok(sent.includes(`DELETE ${deviceId}`));
});

test("a gateway that is slow holds a revocation up for the time of one call", async (context) => {
	const made = await joined([], { seats: ownerWith(carol) });
	made.trusts(carol);
	const { session, serves } = made;
	const { teamId } = serves;
	const { deviceId } = carol.bundle;
	for (let at = 0; at < 40; at += 1)
		serves.introductions.push(
			await introductionOf(carol, "alice", teamId, `ci${at}`),
		);
	await learnEnforcers(session);
	let now = Date.now();
	context.mock.method(Date, "now", () => now);
	const { call } = session.client;
	session.client.call = async (it) => {
		if (it.path.endsWith("/introductions")) now += 1_000;
		return call(it);
	};
	const { approver } = await approverOf(made);
	const before = now;
	const [notice] = await approver.revokeDevice(deviceId);
	assert.equal(notice.code, "notVouched");
	assert.ok(now - before <= 15_000, String(now - before));
});

test("a member who is no owner vouches for nothing", async () => {
	const made = await joined();
	made.serves.introductions = [await byOlga(made, "ci")];
	await shareEnforcers(made.session, async () => {});
	assert.deepEqual(introducedTo(made, TEAMS), []);
});

test("a failing record keeps no other introduction from its team, or from the own devices", async () => {
	const ended = {
		denied: refusal(403, "POLICY_DENY"),
		unknown: refusal(403, "SIGNATURE_INVALID"),
		gone: refusal(404, "NOT_FOUND"),
		away: Problem.of("slow", {}),
	};
	const made = await joined([], isOwner);
	const { session, serves } = made;
	const { teamId } = serves;
	const names = ["denied", "unknown", "gone", "ci"];
	for (const name of names)
		session.enforcers.set(name, recordOf(name, { teamId }));
	const { call } = session.client;
	session.client.call = async (it) => {
		const { enforcerId } = JSON.parse(it.body).statement;
		if (ended[enforcerId]) throw ended[enforcerId];
		return call(it);
	};
	await introduceTo(made);
	assert.deepEqual(introducedTo(made, TEAMS), ["ci"]);
	session.enforcers = new Map([
		["away", recordOf("away", { teamId })],
		["ci", recordOf("ci", { teamId })],
	]);
	await assert.rejects(introduceTo(made), refused("slow"));
	assert.deepEqual(introducedTo(made, TEAMS), ["ci", "ci"]);
	made.posted.length = 0;
	await assert.rejects(
		shareEnforcers(session, async () => {}),
		refused("slow"),
	);
	assert.deepEqual(introducedTo(made, OWN), ["ci"]);
	assert.deepEqual(introducedTo(made, TEAMS), ["ci"]);
});

test("a team that was left keeps no introduction from another one", async () => {
	const made = await joined([], isOwner);
	const { session } = made;
	const seats = [
		seatOf("olga", [owner], { owner: true }),
		seatOf("alice", [made.device], { owner: true }),
	];
	const other = await chainOf(await signed(contentOf(seats), owner));
	const { teamId } = other.newest;
	const own = await made.store.team(made.serves.teamId);
	made.store.records.clear();
	await made.pin(other);
	await made.store.keepTeam(own);
	session.enforcers.set("left", recordOf("left", { teamId }));
	const ofTeam = { teamId: made.serves.teamId };
	session.enforcers.set("ci", recordOf("ci", ofTeam));
	const { json, call } = session.client;
	// It was left since its states were read.
	session.client.json = async (it) => {
		const [path] = it.path.split("?");
		if (!path.includes(teamId)) return json(it);
		const list = path.split("/").at(-1);
		return parse("answer", JSON.stringify({ [list]: [] }));
	};
	session.client.call = async (it) => {
		if (it.path.includes(teamId)) throw refusal(404, "NOT_FOUND");
		return call(it);
	};
	await introduceTo(made);
	assert.deepEqual(introducedTo(made, TEAMS), ["ci"]);
});

test("an owner’s introductions at another time are taken over with the latest", async () => {
	const made = await joined([], bothOwn);
	made.serves.introductions = [
		await byOlga(made, "ci"),
		await byBob(made, "ci", { pairedAt: LATER }),
	];
	await learnEnforcers(made.session);
	assert.equal(made.session.enforcers.get("ci").pairedAt, LATER);
	// The first basis stays, as long as it is one.
	const before = made.session.enforcers.get("ci");
	made.serves.introductions.reverse();
	assert.equal(await learnEnforcers(made.session), false);
	assert.equal(made.session.enforcers.get("ci"), before);
});
