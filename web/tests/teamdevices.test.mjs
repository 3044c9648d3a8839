// The devices of a person, and the own seats in teams: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../core/problem.js";
import { parseTeamLink, spellConsent } from "../core/teamconsent.js";
import { addToSeats, clearSeats } from "../core/teamseat.js";
import { newDevice } from "./hostile.mjs";
import {
	AT,
	approverOf,
	away,
	bob,
	carol,
	chainOf,
	HOUR,
	next,
	owner,
	seatOf,
	teamScene,
} from "./teams.mjs";

const [laptop, stolen, thief] = await Promise.all(
	["laptop", "stolen", "thief"].map((name) => newDevice(name)),
);
const texts = (...devices) => devices.map(({ bundle }) => bundle.text);
const idsOf = (...devices) =>
	new Set(devices.map(({ bundle }) => bundle.deviceId));
const codesOf = (problems) => problems.map(({ code }) => code);
const standInOf = (approverId, devices) => ({
	approverId,
	devices: texts(...devices),
	...away(-HOUR, HOUR),
});
/** The own seat in the state that was published last. */
const published = ({ posted }) =>
	posted
		.at(-1)
		.body.statement.seats.find(({ approverId }) => approverId === "alice");

/**
 * A device of alice that trusts these others, and her seat with these devices, in the team that it has
 * joined. `device` stands for itself.
 */
async function seatScene(others, onSeat, further = {}) {
	let own = null;
	const made = await teamScene({
		seats: ([olga, { devices }]) => {
			[own] = devices;
			const all = onSeat.map((it) => (it === "device" ? own : it.bundle.text));
			return [olga, { ...seatOf("alice", []), devices: all, ...further }];
		},
	});
	made.trusts(...others);
	await made.pin();
	return made;
}

test("a new device is added to the own seat once, and unknown ones stay", async () => {
	const made = await seatScene([], ["device", bob]);
	assert.deepEqual(await addToSeats(made.session, [carol.bundle]), []);
	const { body } = made.posted[0];
	assert.deepEqual(published(made).devices, texts(made.device, bob, carol));
	made.serves.states.push(body);
	assert.deepEqual(await addToSeats(made.session, [carol.bundle]), []);
	assert.equal(made.posted.length, 1);
});

test("a device that somebody else has listed keeps no other one from the seat", async () => {
	const made = await seatScene([laptop], ["device"]);
	const [olga, alice] = made.first.statement.seats;
	const seats = [olga, alice, seatOf("mallory", [laptop])];
	made.serves.states.push(await next(made.first, { seats }, owner));
	const both = [laptop.bundle, carol.bundle];
	const notices = await addToSeats(made.session, both);
	assert.deepEqual(codesOf(notices), ["deviceNotAdded"]);
	assert.deepEqual(published(made).devices, texts(made.device, carol));
});

test("after a revocation the seat has the devices in force, and nothing of a thief’s", async () => {
	const standIn = standInOf("mallory", [carol]);
	for (const onSeat of [
		["device", stolen, thief],
		["device", thief],
	]) {
		const made = await seatScene([laptop], onSeat, { standIn });
		const notices = await clearSeats(made.session, idsOf(stolen));
		assert.equal(made.posted.length, 1);
		assert.deepEqual(published(made).devices, texts(made.device, laptop));
		assert.equal(published(made).standIn, undefined);
		const { deviceId } = thief.bundle;
		assert.deepEqual(
			notices.map(({ code, values }) => [code, values]),
			[
				["deviceDropped", { team: "payments", device: "thief", deviceId }],
				["standInEnded", { team: "payments", approverId: "mallory" }],
			],
		);
	}
});

test("a stand-in whom the revoked device alone could have named is ended", async () => {
	const standIn = standInOf("dave", [carol]);
	const made = await seatScene([], ["device", stolen], { standIn });
	const notices = await clearSeats(made.session, idsOf(stolen));
	assert.deepEqual(codesOf(notices), ["standInEnded"]);
	assert.equal(published(made).standIn, undefined);
	assert.deepEqual(published(made).devices, texts(made.device));
});

test("a revocation ends the stand-in, also one that a thief named before leaving the seat", async () => {
	const standIn = standInOf("mallory", [carol]);
	const made = await seatScene([laptop], ["device", stolen], { standIn });
	const [olga, alice] = made.first.statement.seats;
	const seats = [olga, { ...alice, devices: texts(made.device, laptop) }];
	made.serves.states.push(await next(made.first, { seats }, stolen));
	const notices = await clearSeats(made.session, idsOf(stolen));
	assert.deepEqual(
		notices.map(({ code, values }) => [code, values]),
		[["standInEnded", { team: "payments", approverId: "mallory" }]],
	);
	assert.deepEqual(published(made).devices, texts(made.device, laptop));
	assert.equal(published(made).standIn, undefined);
	made.serves.states.push(made.posted[0].body);
	assert.deepEqual(await clearSeats(made.session, idsOf(stolen)), []);
	assert.equal(made.posted.length, 1);
});

test("a device that somebody else has listed stops no revocation", async () => {
	const made = await seatScene([laptop], ["device", stolen]);
	const [olga, alice] = made.first.statement.seats;
	const seats = [olga, alice, seatOf("mallory", [laptop])];
	made.serves.states.push(await next(made.first, { seats }, owner));
	const notices = await clearSeats(made.session, idsOf(stolen));
	assert.deepEqual(notices, []);
	assert.deepEqual(published(made).devices, texts(made.device));
});

test("a device that is known to be revoked leaves the seat, and the stand-in ends", async () => {
	const standIn = standInOf("dave", [carol]);
	const made = await seatScene([laptop], ["device", bob], { standIn });
	const trust = await made.session.trust();
	trust.revoke(bob.bundle.deviceId);
	await made.session.remember(trust);
	const notices = await clearSeats(made.session, idsOf(stolen));
	assert.deepEqual(codesOf(notices), ["standInEnded"]);
	assert.deepEqual(published(made).devices, texts(made.device, laptop));
	assert.equal(published(made).standIn, undefined);
});

test("the last device of a person ends the stand-in before it is revoked", async () => {
	const standIn = standInOf("dave", [carol]);
	const made = await seatScene([], ["device"], { standIn });
	const notices = await clearSeats(made.session, idsOf(made.device));
	assert.deepEqual(codesOf(notices), ["lastDevice", "standInEnded"]);
	assert.deepEqual(published(made).devices, texts(made.device));
	assert.equal(published(made).standIn, undefined);
});

for (const [name, others, onSeat, further, codes] of [
	["a trusted device only", [laptop], [laptop], {}, []],
	["a stand-in", [laptop], [laptop], "standIn", ["seatNotCleared"]],
	["an unknown device", [], [thief], {}, ["seatNotCleared"]],
	["the revoked device", [], [stolen], {}, ["deviceNotRemoved"]],
])
	test(`a device that is not on the seat reports a seat with ${name}: ${codes}`, async () => {
		const standIn = standInOf("mallory", [carol]);
		const more = further === "standIn" ? { standIn } : further;
		const made = await seatScene(others, onSeat, more);
		const notices = await clearSeats(made.session, idsOf(stolen));
		assert.deepEqual(codesOf(notices), codes);
		for (const { values } of notices)
			assert.equal(values.problem.code, "notOnSeat");
		assert.deepEqual(made.posted, []);
	});

test("a team that refuses a change is not said to count a device that it does not", async () => {
	const standIn = standInOf("mallory", [carol]);
	for (const [further, code] of [
		[{}, "deviceNotAdded"],
		[{ standIn }, "seatNotCleared"],
	]) {
		const made = await seatScene([laptop], ["device"], further);
		made.session.client.call = async () => {
			throw Problem.of("slow", {});
		};
		const [notice, ...more] = await clearSeats(made.session, idsOf(stolen));
		assert.deepEqual([notice.code, ...more], [code]);
		assert.equal(notice.values.problem.code, "slow");
	}
});

test("a team that the gateway shows no more is reported if it has a seat of this person", async () => {
	const notSeated = { seats: ([olga]) => [olga] };
	const standsIn = (until) => ({
		seats: ([olga, { devices }]) => [
			{
				...olga,
				standIn: {
					approverId: "alice",
					devices: [...devices, stolen.bundle.text],
					...away(-2 * HOUR, until),
				},
			},
		],
	});
	for (const [scene, codes] of [
		[{}, ["teamHidden"]],
		[standsIn(HOUR), ["teamHidden"]],
		[standsIn(-HOUR), []],
		[notSeated, []],
	]) {
		const made = await teamScene(scene);
		await made.pin();
		made.leave();
		const notices = await clearSeats(made.session, idsOf(stolen));
		assert.deepEqual(codesOf(notices), codes);
		for (const { values } of notices) assert.equal(values.team, "payments");
		assert.deepEqual(await addToSeats(made.session, [carol.bundle]), []);
	}
});

test("a team that is hidden once its states were read is reported", async () => {
	const made = await seatScene([laptop], ["device", stolen]);
	made.session.client.call = async () => {
		const [status, code] = [404, "NOT_FOUND"];
		throw Problem.of("refused", { status, code, message: "" });
	};
	const notices = await clearSeats(made.session, idsOf(stolen));
	assert.deepEqual(codesOf(notices), ["teamHidden"]);
});

test("the last device of a person stays on the seat, which is reported", async () => {
	for (const [onSeat, codes] of [
		[["device"], ["lastDevice"]],
		[["device", thief], ["lastDevice"]],
		[[carol], []],
	]) {
		const made = await seatScene([], onSeat);
		const notices = await clearSeats(made.session, idsOf(made.device));
		assert.deepEqual(codesOf(notices), codes);
		assert.deepEqual(made.posted, []);
	}
});

test("a team that cannot be told does not keep others from it", async () => {
	const made = await seatScene([laptop], ["device"]);
	const { newest, digests } = made.chain;
	const [away, gone] = ["AQAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAA"];
	const own = made.store.records.get(newest.teamId);
	made.store.records.clear();
	for (const teamId of [gone, away])
		made.store.records.set(teamId, {
			teamId,
			state: newest.raw,
			digests,
			fork: null,
		});
	made.store.records.set(newest.teamId, own);
	const { json } = made.session.client;
	made.session.client.json = async (it) => {
		if (it.path.includes(away)) throw Problem.of("slow", {});
		return json(it);
	};
	const [problem, ...others] = await addToSeats(made.session, [laptop.bundle]);
	assert.equal(problem.code, "deviceNotAdded");
	assert.equal(problem.values.team, "payments");
	assert.equal(problem.values.problem.code, "slow");
	assert.deepEqual(others, []);
	assert.equal(made.posted.length, 1);
	const cleared = await clearSeats(made.session, idsOf(stolen));
	assert.deepEqual(codesOf(cleared), ["teamHidden", "deviceNotRemoved"]);
});

test("a team that has forked may still count the device elsewhere", async () => {
	const made = await seatScene([laptop], ["device", stolen]);
	const { teamId } = made.serves;
	const record = await made.store.team(teamId);
	made.store.records.set(teamId, { ...record, fork: record.state });
	const [notice, ...others] = await clearSeats(made.session, idsOf(stolen));
	assert.equal(notice.code, "deviceNotRemoved");
	assert.equal(notice.values.problem.code, "teamFork");
	assert.deepEqual(others, []);
	assert.deepEqual(await addToSeats(made.session, [carol.bundle]), []);
});

test("what was published meanwhile is cleared too, and told once", async () => {
	const made = await seatScene([laptop], ["device", stolen]);
	const [olga, alice] = made.first.statement.seats;
	const devices = [...alice.devices, thief.bundle.text];
	const seats = [olga, { ...alice, devices }];
	const second = await next(made.first, { seats }, stolen);
	const { call } = made.session.client;
	let isTaken = true;
	made.session.client.call = async (it) => {
		if (!isTaken) return call(it);
		isTaken = false;
		made.serves.states.push(second);
		const [status, code] = [409, "TEAM_STATE_TAKEN"];
		throw Problem.of("refused", { status, code, message: "" });
	};
	const notices = await clearSeats(made.session, idsOf(stolen));
	assert.deepEqual(codesOf(notices), ["deviceDropped"]);
	assert.deepEqual(published(made).devices, texts(made.device, laptop));
	const { newest } = await chainOf(made.first, second, made.posted[0].body);
	assert.equal(newest.seq, 2);
});

test("a device that is not on the seat is revoked, whatever this team would refuse", async () => {
	const made = await seatScene([], [carol, bob]);
	const { approver, sent } = await approverOf(made);
	const { deviceId } = made.device.bundle;
	assert.deepEqual(await approver.revokeDevice(deviceId), []);
	assert.deepEqual(sent, [`DELETE ${deviceId}`]);
	// One that is on it, only another device of this person can remove.
	const [problem] = await clearSeats(made.session, idsOf(carol));
	assert.equal(problem.code, "deviceNotRemoved");
	assert.equal(problem.values.problem.code, "notOnSeat");
});

test("the own device leaves its seat and is revoked, also if a team refuses", async () => {
	for (const isRefused of [false, true]) {
		const made = await seatScene([carol], ["device", carol]);
		const { call } = made.session.client;
		made.session.client.call = async (it) => {
			if (isRefused) throw Problem.of("slow", {});
			return call(it);
		};
		const { approver, sent } = await approverOf(made);
		const { deviceId } = made.device.bundle;
		const problems = await approver.revokeDevice(deviceId);
		assert.deepEqual(sent, ["POST states", `DELETE ${deviceId}`]);
		assert.deepEqual(codesOf(problems), isRefused ? ["deviceNotRemoved"] : []);
		if (!isRefused) assert.deepEqual(published(made).devices, texts(carol));
	}
});

test("another device is revoked first, and a team that refuses is reported", async () => {
	const made = await seatScene([carol], ["device", carol]);
	const { approver, sent } = await approverOf(made);
	const { deviceId } = carol.bundle;
	assert.deepEqual(await approver.revokeDevice(deviceId), []);
	assert.deepEqual(sent, [`DELETE ${deviceId}`, "POST states"]);
	const { json } = made.session.client;
	made.session.client.json = async (it) => {
		if (it.path.includes("/states")) throw Problem.of("slow", {});
		return json(it);
	};
	assert.deepEqual(codesOf(await approver.revokeDevice(deviceId)), [
		"deviceNotRemoved",
	]);
});

test("a list of devices that is withheld after the revocation does not keep a team from it", async () => {
	const made = await seatScene([carol], ["device", carol]);
	const { approver, sent } = await approverOf(made);
	const { json } = made.session.client;
	made.session.client.json = async (it) => {
		if (it.path.endsWith("/devices")) throw Problem.of("slow", {});
		return json(it);
	};
	assert.deepEqual(await approver.revokeDevice(carol.bundle.deviceId), []);
	assert.equal(sent.length, 2);
	assert.deepEqual(published(made).devices, texts(made.device));
});

test("a team that only the stolen device has joined is looked for before, or reported", async () => {
	const made = await seatScene([stolen], ["device", stolen]);
	const { teamId } = made.serves;
	made.store.records.clear();
	const ids = `${teamId}/AAAAAAAAAAAAAAAAAAAAAA/AAAAAAAAAAAAAAAAAAAAAA`;
	const { subject } = made.session;
	const link = parseTeamLink(`#/team/${ids}`);
	const devices = [made.device.bundle, stolen.bundle];
	const consent = await spellConsent(link, subject, devices, AT, stolen);
	made.serves.consents = [JSON.parse(consent)];
	const { approver } = await approverOf(made);
	const { deviceId } = stolen.bundle;
	const { json, members } = made.session.client;
	for (const isWithheld of [
		(path) => path.endsWith("/alice/teams"),
		(path) => path.includes("/states"),
	]) {
		const withheld = (answer) => async (it) => {
			if (isWithheld(it.path)) throw Problem.of("slow", {});
			return answer(it);
		};
		made.session.client.members = withheld(members);
		made.session.client.json = withheld(json);
		made.trusts(stolen);
		const [notice, ...others] = await approver.revokeDevice(deviceId);
		assert.equal(notice.code, "teamsUnread");
		assert.equal(notice.values.problem.code, "slow");
		assert.deepEqual(others, []);
	}
	Object.assign(made.session.client, { json, members });
	made.trusts(stolen);
	assert.deepEqual(await approver.revokeDevice(deviceId), []);
	assert.deepEqual(published(made).devices, texts(made.device));
	// Meanwhile its word counts for nothing.
	made.store.records.clear();
	const told = await approver.revokeDevice(deviceId);
	assert.deepEqual(codesOf(told), ["teamNotJoined"]);
	assert.equal(made.store.records.size, 0);
});

for (const [name, time, isTold] of [
	["now", away(-HOUR, HOUR), true],
	["later", away(HOUR, 2 * HOUR), true],
	["no more", away(-2 * HOUR, -HOUR), false],
])
	test(`a revoked device that stands in ${name} is reported: ${isTold}`, async () => {
		const made = await teamScene({
			seats: ([olga, alice, bobs]) => [
				olga,
				{
					...bobs,
					standIn: {
						approverId: "alice",
						devices: [...alice.devices, carol.bundle.text],
						...time,
					},
				},
			],
		});
		made.trusts(carol);
		await made.pin();
		const { approver, sent } = await approverOf(made);
		const problems = await approver.revokeDevice(carol.bundle.deviceId);
		assert.deepEqual(codesOf(problems), isTold ? ["standsInRevoked"] : []);
		assert.deepEqual(sent, [`DELETE ${carol.bundle.deviceId}`]);
		if (!isTold) return;
		assert.deepEqual(problems[0].values, { member: "bob", team: "payments" });
		const { deviceId } = made.device.bundle;
		assert.deepEqual(codesOf(await approver.revokeDevice(deviceId)), [
			"standsInRevoked",
		]);
		assert.deepEqual(await addToSeats(made.session, [carol.bundle]), []);
	});
