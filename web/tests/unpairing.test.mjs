// Ending a pairing, of one person or of a team: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { LiveValue } from "../core/live.js";
import { pairedTeam, unpair } from "../core/unpair.js";
import { buttonsOf, dialogOf, fakeDocument, shown } from "./elements.mjs";
import { away, HOUR, owner, teamScene } from "./teams.mjs";

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
	session.unpin = async ({ enforcerId }) =>
		void session.enforcers.delete(enforcerId);
	const line = { enforcerId: "ci", approverId: "alice", teamId: serves.teamId };
	session.client.members = async () => ({
		members: {
			items: [
				direct === null ? line : { ...line, routingToken: direct },
				{ ...line, approverId: "olga", routingToken: "another" },
			],
		},
	});
	return made;
}

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
		const team = await pairedTeam(made.session, "ci");
		assert.deepEqual(
			team,
			endsForAll === null ? null : { name: "payments", endsForAll },
		);
		await unpair(made.session, "ci");
		assert.equal(made.session.enforcers.size, 0);
		assert.deepEqual(
			made.posted.map(({ path, body }) => [path, body.routingToken]),
			ended.map((token) => ["/v1/pairing/revoke", token]),
		);
	});

test("a device that does not know the team any more ends nothing of it", async () => {
	const made = await pairingScene({ seats: isOwner });
	made.store.records.clear();
	assert.equal(await pairedTeam(made.session, "ci"), null);
	await unpair(made.session, "ci");
	assert.deepEqual(made.posted, []);
});

for (const [team, words] of [
	[null, "on this device. You can pair it again"],
	[
		{ name: "payments", endsForAll: true },
		"for all members of the team payments",
	],
	[
		{ name: "payments", endsForAll: false },
		"The team payments stays paired, so the agent still asks you",
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
			pairedTeam: async () => team,
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
