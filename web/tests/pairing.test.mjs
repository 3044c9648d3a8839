// The enforcer is shown before it is paired, and a known key is replaced only on purpose: `node
// --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { randomBytes, sha256, toBase64url, utf8 } from "../core/bytes.js";
import { canonical } from "../core/canonical.js";
import { pairByCode, readPairingLink } from "../core/pair.js";
import { RANDOM } from "../core/seal.js";
import {
	AT,
	chainOf,
	contentOf,
	seatOf,
	signed,
	teamGateway,
	teamStore,
} from "./teams.mjs";

globalThis.WebSocket ??= { OPEN: 1 };

const { newDevice, scene } = await import("./hostile.mjs");

const refused = (code) => (error) => error.code === code;

/**
 * A device and the link of an enforcer `prod`, which the device may know already, with this key or
 * another.
 */
async function offered(known) {
	const { session } = await scene();
	const { publicKey } = await RANDOM.ephemeral();
	const key = toBase64url(publicKey);
	const bundle = toBase64url(
		utf8(
			canonical({
				v: 1,
				random: toBase64url(randomBytes(16)),
				x25519: key,
				enforcerId: "prod",
				label: "build machine",
			}),
		),
	);
	const calls = [];
	session.enforcers = new Map(
		known === null
			? []
			: [
					[
						"prod",
						{ enforcerId: "prod", key: known === "same" ? key : "another" },
					],
				],
	);
	const unpaired = async () => [];
	Object.assign(session.store, teamStore(), { unpaired });
	session.pin = async (record) =>
		session.enforcers.set(record.enforcerId, record);
	const sent = [];
	session.client.members = async ({ path, body }) => {
		calls.push(path.split("/")[3]);
		if (body !== undefined) {
			const { publicKey, teamId } = JSON.parse(body);
			const answer = JSON.parse(Buffer.from(publicKey, "base64url"));
			sent.push(teamId === undefined ? answer : { answer, teamId });
		}
		const resolved = {
			nonce: toBase64url(randomBytes(32)),
			publicKey: bundle,
			enforcerLabel: "your friendly bot",
		};
		return {
			members: path.includes("resolve")
				? resolved
				: { routingToken: `token ${sent.length}` },
		};
	};
	session.client.call = async ({ path }) => calls.push(path);
	const print = toBase64url((await sha256(utf8(bundle))).subarray(0, 16));
	const link = (fingerprint = print) =>
		`#/pair/7K3M-9QRT/${toBase64url(randomBytes(16))}/${fingerprint}`;
	return { session, link, calls, key, sent };
}

test("a link names the enforcer before anything is paired, as its machine calls itself", async () => {
	const { session, link, calls, key } = await offered(null);
	const offer = await readPairingLink(session, link());
	assert.deepEqual(
		[offer.enforcerId, offer.label, offer.standing],
		["prod", "build machine", "new"],
	);
	assert.ok(!calls.includes("complete"));
	await offer.accept(false);
	assert.ok(calls.includes("complete"));
	const { key: pinned, label } = session.enforcers.get("prod");
	assert.deepEqual([pinned, label], [key, "build machine"]);
});

test("a link whose fingerprint is another names nobody", async () => {
	const { session, link } = await offered(null);
	await assert.rejects(
		readPairingLink(session, link(toBase64url(randomBytes(16)))),
		refused("fingerprint"),
	);
});

test("the key of a known enforcer is replaced only on purpose", async () => {
	const same = await offered("same");
	const again = await readPairingLink(same.session, same.link());
	assert.equal(again.standing, "known");
	await again.accept(false);
	const { session, link, calls, key } = await offered("other");
	const offer = await readPairingLink(session, link());
	assert.equal(offer.standing, "otherKey");
	await assert.rejects(offer.accept(false), refused("replacesKey"));
	assert.ok(!calls.includes("complete"));
	assert.equal(session.enforcers.get("prod").key, "another");
	await offer.accept(true);
	assert.equal(session.enforcers.get("prod").key, key);
});

test("the same by code", async () => {
	const { session, calls } = await offered("other");
	const comparing = await pairByCode(session, "7K3M-9QRT");
	assert.equal(comparing.standing, "otherKey");
	await assert.rejects(comparing.confirm(false), refused("replacesKey"));
	assert.equal(session.enforcers.get("prod").key, "another");
	await comparing.abort();
	assert.ok(calls.includes("/v1/pairing/revoke"));
});

test("operators are told to the enforcer only if the person named them, and are kept", async () => {
	const { session, link, sent } = await offered(null);
	const pair = async (operators) =>
		(await readPairingLink(session, link())).accept(false, operators);
	await pair(null);
	await pair(["dave"]);
	await pair([]);
	await (await pairByCode(session, "7K3M-9QRT", ["erin"])).confirm(false);
	const named = sent.map(({ operators }) => operators);
	assert.deepEqual(named, [undefined, ["dave"], [], ["erin"]]);
	assert.ok(!("operators" in sent[0]));
	assert.deepEqual(session.enforcers.get("prod").operators, ["dave", "erin"]);
});

test("an owner pairs the enforcer with a team, and nobody else can", async () => {
	const { session, link, sent } = await offered(null);
	const pins = async (isOwner) => {
		const seats = [
			seatOf("alice", [session.keys], { owner: isOwner }),
			seatOf("olga", [olga], { owner: true }),
		];
		const state = await signed(contentOf(seats), olga);
		const { newest, digests, head } = await chainOf(state);
		const { teamId, raw } = newest;
		gateway.serves.teamId = teamId;
		gateway.serves.states = [state];
		await session.store.keepTeam({ teamId, state: raw, digests, fork: null });
		return head;
	};
	const olga = await newDevice("olga");
	const gateway = teamGateway();
	const { json } = session.client;
	session.client.json = (it) =>
		gateway.isAnswered(it.path) ? gateway.json(it) : json(it);
	await pins(false);
	assert.deepEqual((await readPairingLink(session, link())).teams, []);
	session.store.records.clear();
	const head = await pins(true);
	const offer = await readPairingLink(session, link());
	assert.deepEqual(
		offer.teams.map(({ name }) => name),
		["payments"],
	);
	await offer.accept(false, ["dave"], offer.teams[0]);
	const [{ answer, teamId }] = sent;
	assert.equal(teamId, head.teamId);
	assert.deepEqual(answer.team, head);
	assert.deepEqual(answer.operators, ["dave"]);
	assert.equal(session.enforcers.get("prod").teamId, head.teamId);
	await (await readPairingLink(session, link())).accept(false, null);
	assert.equal(sent[1].team, undefined);
	// The pairing with the team holds beside it, and a new one with either takes the place of its own.
	const heldNow = () => {
		const { routingToken, others } = session.enforcers.get("prod");
		return [routingToken, others];
	};
	assert.deepEqual(heldNow(), ["token 2", [{ token: "token 1", teamId }]]);
	await (await readPairingLink(session, link())).accept(false, null);
	assert.deepEqual(heldNow(), ["token 3", [{ token: "token 1", teamId }]]);
	const again = await readPairingLink(session, link());
	await again.accept(false, null, again.teams[0]);
	assert.deepEqual(heldNow(), ["token 4", [{ token: "token 3" }]]);
});

test("the gateway is told of ended pairings before a new one takes their place", async () => {
	const { session, link } = await offered(null);
	const untold = { tokens: ["of a team"], direct: null, isUnread: false };
	let isPinned = false;
	const told = [];
	const { pin } = session;
	session.pin = (record) => {
		isPinned = true;
		return pin(record);
	};
	Object.assign(session.store, {
		unpaired: async () => [{ enforcerId: "prod", at: AT, untold }],
		keepUntold: async () => {},
	});
	session.client.call = async ({ path, body }) => {
		if (path.endsWith("/revoke"))
			told.push([JSON.parse(body).routingToken, isPinned]);
	};
	await (await readPairingLink(session, link())).accept(false, null);
	assert.deepEqual(told, [["of a team", false]]);
});
