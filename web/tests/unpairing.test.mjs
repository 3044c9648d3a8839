// Ending a pairing, of one person or of a team: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { LiveValue } from "../core/live.js";
import { Problem } from "../core/problem.js";
import { pairedTeams, tellUnpaired, unpair } from "../core/unpair.js";
import { buttonsOf, dialogOf, fakeDocument, shown } from "./elements.mjs";
import {
	AT,
	approverOf,
	away,
	HOUR,
	owner,
	refused,
	teamScene,
} from "./teams.mjs";

fakeDocument();
const { view: agentView } = await import("../views/agent.js");

const isOwner = ([olga, alice]) => [olga, { ...alice, owner: true }];
const isOut = ([olga]) => [olga];
const standsIn = ([olga, alice]) => [
	{
		...olga,
		standIn: {
			approverId: "alice",
			devices: alice.devices,
			...away(-HOUR, HOUR),
		},
	},
];

/** This device with an enforcer, of a team unless `record` says otherwise. */
async function pairingScene({ seats, direct = null, record = {} }) {
	const made = await teamScene({ seats });
	await made.pin();
	const { session, serves } = made;
	const paired = {
		enforcerId: "ci",
		introducedBy: null,
		routingToken: "kept",
		teamId: serves.teamId,
		...record,
	};
	session.enforcers = new Map([["ci", paired]]);
	const unpaired = new Map();
	Object.assign(session.store, {
		unpaired: async () => [...unpaired.values()],
		keepUntold: async (enforcerId, untold) => {
			const before = unpaired.get(enforcerId);
			if (before) unpaired.set(enforcerId, { ...before, untold });
		},
	});
	session.unpin = async ({ enforcerId }, untold) => {
		unpaired.set(enforcerId, { enforcerId, at: AT, untold });
		session.enforcers.delete(enforcerId);
	};
	const line = { enforcerId: "ci", approverId: "alice", teamId: serves.teamId };
	session.client.members = async () => ({
		members: {
			items: [
				direct === null ? line : { ...line, routingToken: direct },
				{ ...line, approverId: "olga", routingToken: "another" },
			],
		},
	});
	return { ...made, unpaired };
}

/** The tokens that are kept until the gateway is told. */
const untold = ({ unpaired }) =>
	[...unpaired.values()].flatMap(({ untold }) =>
		untold && (untold.direct !== null || untold.tokens.length > 0)
			? [[untold.direct, ...untold.tokens].filter((token) => token !== null)]
			: [],
	);

const introduced = { routingToken: null, introducedBy: owner.bundle.deviceId };
const alone = { teamId: undefined };

for (const [name, scene, endsForAll, ended] of [
	["an owner’s device that paired it", { seats: isOwner }, true, ["kept"]],
	[
		"the same, also paired directly",
		{ seats: isOwner, direct: "own" },
		true,
		["own", "kept"],
	],
	[
		"another device of an owner",
		{ seats: isOwner, record: introduced },
		false,
		[],
	],
	["a member’s device", { record: introduced }, false, []],
	[
		"a member’s device, also paired directly",
		{ record: introduced, direct: "own" },
		false,
		["own"],
	],
	["a stand-in’s device", { seats: standsIn, record: introduced }, false, []],
	["a device whose person is no owner any more", {}, false, []],
	["a device whose person has left the team", { seats: isOut }, null, []],
	["a device of no team", { record: alone, direct: "own" }, null, ["own"]],
	["a device whose pairing is not listed", { record: alone }, null, ["kept"]],
])
	test(`unpairing on ${name} ends ${ended.join(" and ") || "nothing else"}`, async () => {
		const made = await pairingScene(scene);
		const { teamId } = made.serves;
		assert.deepEqual(
			await pairedTeams(made.session, "ci"),
			endsForAll === null ? [] : [{ teamId, name: "payments", endsForAll }],
		);
		await unpair(made.session, "ci");
		assert.equal(made.session.enforcers.size, 0);
		assert.deepEqual(
			made.posted.map(({ path, body }) => [path, body.routingToken]),
			ended.map((token) => ["/v1/pairing/revoke", token]),
		);
	});

for (const [name, newest, others] of [
	["directly afterwards", { teamId: undefined }, (teamId) => [{ teamId }]],
	["directly before", {}, () => [{}]],
])
	test(`an agent of a team that was also paired ${name} is unpaired from both`, async () => {
		const made = await pairingScene({ seats: isOwner, record: newest });
		const { session, serves } = made;
		const [other] = others(serves.teamId);
		const record = session.enforcers.get("ci");
		record.others = [{ token: "earlier", ...other }];
		const [team] = await pairedTeams(session, "ci");
		assert.deepEqual([team.name, team.endsForAll], ["payments", true]);
		await unpair(session, "ci");
		assert.deepEqual(told(made).sort(), ["earlier", "kept"]);
		assert.deepEqual(untold(made), []);
	});

test("a device that does not know the team any more ends nothing of it", async () => {
	const made = await pairingScene({ seats: isOwner });
	made.store.records.clear();
	assert.deepEqual(await pairedTeams(made.session, "ci"), []);
	await unpair(made.session, "ci");
	assert.deepEqual(made.posted, []);
});

/** These tokens cannot be told to the gateway, nor can the list be read if `list` is among them. */
function failing({ session }, fails, error = () => Problem.of("slow", {})) {
	const { call, members } = session.client;
	session.client.call = async (it) => {
		if (fails.has(JSON.parse(it.body).routingToken)) throw error();
		return call(it);
	};
	session.client.members = async (it) => {
		if (fails.has("list")) throw Problem.of("offline", {});
		return members(it);
	};
}

const told = ({ posted }) => posted.map(({ body }) => body.routingToken);

for (const [fails, tokens, code] of [
	[["own"], ["kept"], "slow"],
	[["list"], ["kept"], "offline"],
	[["kept"], ["own"], "slow"],
	[["list", "kept"], [], "offline"],
])
	test(`unpairing tells the other tokens although ${fails.join(" and ")} fails`, async () => {
		const made = await pairingScene({ seats: isOwner, direct: "own" });
		const failures = new Set(fails);
		failing(made, failures);
		await assert.rejects(unpair(made.session, "ci"), refused(code));
		assert.equal(made.session.enforcers.size, 0);
		assert.deepEqual(told(made), tokens);
		// The same button tells the rest.
		failures.clear();
		await unpair(made.session, "ci");
		assert.deepEqual(told(made).sort(), ["kept", "own"].sort());
		assert.deepEqual(untold(made), []);
		made.posted.length = 0;
		await unpair(made.session, "ci");
		assert.deepEqual(told(made), []);
	});

test("without the list, the token of the record is told", async () => {
	const made = await pairingScene({ record: alone, direct: "own" });
	failing(made, new Set(["list"]));
	await assert.rejects(unpair(made.session, "ci"), refused("offline"));
	assert.deepEqual(told(made), ["kept"]);
});

test("tokens that could not be told are told later, and no newer pairing is ended", async () => {
	const made = await pairingScene({ seats: isOwner });
	const failures = new Set(["list", "kept"]);
	failing(made, failures);
	await assert.rejects(unpair(made.session, "ci"), refused("offline"));
	await assert.rejects(tellUnpaired(made.session), refused("slow"));
	assert.deepEqual(untold(made), [["kept"]]);
	failures.clear();
	// Another device has paired meanwhile.
	const line = { enforcerId: "ci", approverId: "alice", routingToken: "newer" };
	made.session.client.members = async () => ({ members: { items: [line] } });
	await tellUnpaired(made.session);
	assert.deepEqual(told(made), ["kept"]);
	assert.deepEqual(untold(made), []);
	await tellUnpaired(made.session);
	assert.equal(made.posted.length, 1);
});

test("an approver’s page tells them when it shares what it knows, also if that fails", async () => {
	const made = await pairingScene({ seats: isOwner });
	const failures = new Set(["kept"]);
	failing(made, failures);
	await assert.rejects(unpair(made.session, "ci"), refused("slow"));
	failures.clear();
	made.session.client.json = async () => {
		throw Problem.of("slow", {});
	};
	const { approver } = await approverOf(made);
	await approver.share();
	assert.deepEqual(told(made), ["kept"]);
});

test("a token that the gateway does not know any more is not told again", async () => {
	const made = await pairingScene({ record: alone });
	const [status, code] = [404, "NOT_FOUND"];
	failing(made, new Set(["kept"]), () =>
		Problem.of("refused", { status, code, message: "" }),
	);
	await assert.rejects(unpair(made.session, "ci"), refused("refused"));
	assert.deepEqual(untold(made), []);
});

test("a pairing that is made again forgets the tokens of the one before", async () => {
	const made = await pairingScene({ seats: isOwner });
	failing(made, new Set(["kept"]));
	await assert.rejects(unpair(made.session, "ci"), refused("slow"));
	const [record] = made.unpaired.values();
	const tell = tellUnpaired(made.session);
	made.unpaired.delete(record.enforcerId);
	await assert.rejects(tell, refused("slow"));
	assert.equal(made.unpaired.size, 0);
});

for (const [teams, words] of [
	[[], "on this device. You can pair it again"],
	[
		[{ name: "payments", endsForAll: true }],
		"for all members of the team payments",
	],
	[
		[{ name: "payments", endsForAll: false }],
		"The team payments stays paired, so the agent still asks you",
	],
	[
		[
			{ name: "payments", endsForAll: true },
			{ name: "operations", endsForAll: true },
		],
		"for all members of the team operations",
	],
])
	test(`the question before unpairing says: ${words}`, async () => {
		const agent = {
			enforcerId: "ci",
			label: null,
			pairedAt: "2026-01-01T00:00:00Z",
			introducedBy: null,
			presence: null,
		};
		const unpaired = [];
		const approver = {
			agents: new LiveValue([agent]),
			inbox: new LiveValue({ items: [] }),
			sessions: async () => [],
			refreshAgents: async () => {},
			orders: async () => [],
			pairedTeams: async () => teams,
			unpair: async (enforcerId) => void unpaired.push(enforcerId),
		};
		const element = await shown(agentView, approver, ["ci"]);
		await buttonsOf(element).get("Unpair").click();
		const dialog = dialogOf("Unpair ci?");
		assert.ok(dialog.textContent.includes(words), dialog.textContent);
		assert.deepEqual(unpaired, []);
		await buttonsOf(dialog).get("Unpair").click();
		assert.deepEqual(unpaired, ["ci"]);
	});
