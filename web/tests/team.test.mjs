// Teams: their states, and which of them follow each other: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBase64url, toBase64url, utf8 } from "../core/bytes.js";
import { canonical } from "../core/canonical.js";
import { proofOf } from "../core/pairing.js";
import { Problem } from "../core/problem.js";
import { spellNext } from "../core/team.js";
import { parseTeamLink, spellConsent } from "../core/teamconsent.js";
import { newDevice } from "./hostile.mjs";
import {
	AT,
	chainOf,
	contentOf,
	digestOf,
	next,
	read,
	seatOf,
	signed,
} from "./teams.mjs";

const [alice, bob, carol, dave, spare] = await Promise.all(
	["alice", "bob", "carol", "dave", "spare"].map((name) => newDevice(name)),
);
const STAND_IN = {
	approverId: "dave",
	devices: [dave.bundle.text],
	from: "2026-02-21T12:00:00Z",
	until: "2026-02-28T12:00:00Z",
};
const SEATS = [
	seatOf("alice", [alice], { owner: true }),
	seatOf("bob", [bob], { owner: true }),
	seatOf("carol", [carol]),
];
const CONTENT = contentOf(SEATS);
const FIRST = await signed(CONTENT, alice);
const refused = (code) => (error) =>
	error instanceof Problem && (code === undefined || error.code === code);
const withSeat = (at, change) =>
	SEATS.map((seat, place) => (place === at ? { ...seat, ...change } : seat));

test("the id of a team is the hash of its first state", async () => {
	const team = await read(FIRST);
	assert.equal(team.digest, await digestOf(CONTENT));
	assert.match(team.teamId, /^[\w-]{22}$/);
	assert.notEqual(
		team.teamId,
		(await read(await signed(contentOf(SEATS), alice))).teamId,
	);
	assert.deepEqual(
		team.seats.map(({ isOwner }) => isOwner),
		[true, true, false],
	);
});

const MALFORMED = {
	"another version": { v: 2 },
	"another statement": { statement: "team.consent" },
	"a further member": { further: 1 },
	"a team id in the first state": { teamId: "AAAAAAAAAAAAAAAAAAAAAA" },
	"no random value": { random: "AA" },
	"a sequence beyond the limit": { seq: 2048 },
	"a broken number": { changes: 1.5 },
	"no change": { changes: 0 },
	"too few owners": { changes: 3 },
	"no name": { name: " " },
	"an invisible name": { name: "pay\u200bments" },
	"a long name": { name: "x".repeat(65) },
	"no seat": { seats: [] },
	"a person twice": { seats: [...SEATS, seatOf("carol", [spare])] },
	"a device twice": { seats: [...SEATS, seatOf("dave", [carol])] },
	"a seat without devices": { seats: withSeat(2, { devices: [] }) },
	"a device that is none": { seats: withSeat(2, { devices: ["AA"] }) },
	"an owner who may be one": { seats: withSeat(2, { owner: "yes" }) },
	"a further member of a seat": { seats: withSeat(2, { weight: 2 }) },
	"a stand-in who is a member": {
		seats: withSeat(2, { standIn: { ...STAND_IN, approverId: "bob" } }),
	},
	"a stand-in with a member’s device": {
		seats: withSeat(2, {
			standIn: { ...STAND_IN, devices: [bob.bundle.text] },
		}),
	},
	"two seats with one stand-in": {
		seats: SEATS.map((seat) => ({ ...seat, standIn: STAND_IN })),
	},
	"a stand-in for more than 30 days": {
		seats: withSeat(2, {
			standIn: { ...STAND_IN, until: "2026-03-23T12:00:01Z" },
		}),
	},
	"a stand-in for no time": {
		seats: withSeat(2, { standIn: { ...STAND_IN, until: STAND_IN.from } }),
	},
	"a stand-in’s time with a fraction": {
		seats: withSeat(2, {
			standIn: { ...STAND_IN, from: "2026-02-21T12:00:00.5Z" },
		}),
	},
	"a stand-in’s time in another zone": {
		seats: withSeat(2, {
			standIn: { ...STAND_IN, from: "2026-02-21T12:00:00+00:00" },
		}),
	},
	"a stand-in where none is allowed": {
		standIns: false,
		seats: withSeat(2, { standIn: STAND_IN }),
	},
	"a minimum of none": { minimum: { ...CONTENT.minimum, approvals: 0 } },
	"a minimum without rejections": {
		minimum: { approvals: 1, comment: "none", separate: false },
	},
	"an unknown comment": { minimum: { ...CONTENT.minimum, comment: "often" } },
	"more than 32 seats": { seats: Array(33).fill(SEATS[2]) },
};

for (const [name, change] of Object.entries(MALFORMED))
	test(`a state is refused: ${name}`, async () => {
		const state = await signed({ ...CONTENT, ...change }, alice);
		await assert.rejects(read(state), refused());
	});

test("a state is refused: its signatures make no sense", async () => {
	const [own] = FIRST.signatures;
	for (const signatures of [
		[],
		[own, own],
		[{ ...own, further: 1 }],
		[{ by: own.by }],
		Array(33).fill(own),
	])
		await assert.rejects(read({ ...FIRST, signatures }), refused());
});

test("a stand-in at the limits is accepted", async () => {
	const until = "2026-03-23T12:00:00Z";
	const seats = withSeat(2, { standIn: { ...STAND_IN, until } });
	const {
		seats: [, , seat],
	} = await read(await signed({ ...CONTENT, seats }, alice));
	assert.equal(seat.standIn.until, until);
});

test("a team begins with a state of its own owners", async () => {
	await chainOf(FIRST);
	await chainOf(await signed({ ...CONTENT, changes: 2 }, alice, bob));
	await assert.rejects(
		chainOf(await signed({ ...CONTENT, changes: 2 }, alice)),
		refused("teamState"),
	);
	await assert.rejects(
		chainOf(await signed(CONTENT, carol)),
		refused("teamState"),
	);
	await assert.rejects(
		chainOf(await signed(CONTENT, spare)),
		refused("unknownDevice"),
	);
	const forged = {
		...FIRST,
		signatures: [{ ...FIRST.signatures[0], by: bob.bundle.deviceId }],
	};
	await assert.rejects(chainOf(forged), refused("statementSignature"));
	await assert.rejects(
		chainOf(await next(FIRST, {}, alice)),
		refused("teamState"),
	);
});

const NEXT = {
	"an owner removes somebody": [{ seats: SEATS.slice(0, 2) }, [alice], null],
	"an owner changes the minimum": [
		{ minimum: { ...CONTENT.minimum, approvals: 2 } },
		[bob],
		null,
	],
	"a member changes the devices on the own seat": [
		{ seats: withSeat(2, { devices: [carol.bundle.text, spare.bundle.text] }) },
		[carol],
		null,
	],
	"a member names a stand-in": [
		{ seats: withSeat(2, { standIn: STAND_IN }) },
		[carol],
		null,
	],
	"a member leaves": [{ seats: SEATS.slice(0, 2) }, [carol], null],
	"a member changes another seat": [
		{ seats: withSeat(1, { devices: [spare.bundle.text] }) },
		[carol],
		"teamState",
	],
	"a member becomes an owner": [
		{ seats: withSeat(2, { owner: true }) },
		[carol],
		"teamState",
	],
	"a member changes the name": [{ name: "refunds" }, [carol], "teamState"],
	"a member changes the own seat and the order": [
		{ seats: [SEATS[2], SEATS[0], SEATS[1]] },
		[carol],
		"teamState",
	],
	"a member adds somebody": [
		{ seats: [...SEATS, seatOf("dave", [dave])] },
		[carol],
		"teamState",
	],
	"a device that leaves, and one that comes": [
		{ seats: withSeat(2, { devices: [spare.bundle.text] }) },
		[spare],
		"unknownDevice",
	],
	"nobody in the team": [{}, [spare], "unknownDevice"],
	"an owner and a stranger": [{}, [alice, spare], "unknownDevice"],
	"another team": [{ teamId: "AAAAAAAAAAAAAAAAAAAAAA" }, [alice], "teamState"],
	"another tenant": [{ tenantId: "other" }, [alice], "teamState"],
	"a gap": [{ seq: 2 }, [alice], "teamState"],
	"another state before": [{ prev: "0".repeat(64) }, [alice], "teamFork"],
	"another state before, by a stranger": [
		{ prev: "0".repeat(64) },
		[spare],
		"unknownDevice",
	],
};

for (const [name, [change, signers, code]] of Object.entries(NEXT))
	test(`${code === null ? "follows" : "refused"}: ${name}`, async () => {
		const state = await next(FIRST, change, ...signers);
		if (code === null)
			assert.equal((await chainOf(FIRST, state)).newest.seq, 1);
		else await assert.rejects(chainOf(FIRST, state), refused(code));
	});

test("an owner does not leave alone where two sign a change", async () => {
	const first = await signed({ ...CONTENT, changes: 2 }, alice, bob);
	const seats = [...SEATS.slice(0, 2), seatOf("dave", [dave], { owner: true })];
	const both = await next(first, { seats }, alice, bob);
	await chainOf(first, both);
	await assert.rejects(
		chainOf(first, await next(first, { seats }, alice)),
		refused("teamState"),
	);
	await assert.rejects(
		chainOf(first, both, await next(both, { seats: seats.slice(1) }, alice)),
		refused("teamState"),
	);
	const own = withSeat(0, { devices: [alice.bundle.text, spare.bundle.text] });
	await chainOf(first, await next(first, { seats: own }, alice));
	const twice = await next(first, { seats: own }, alice);
	const sameOwner = await next(twice, { name: "refunds" }, alice, spare);
	await assert.rejects(chainOf(first, twice, sameOwner), refused("teamState"));
});

test("a stand-in’s devices sign nothing", async () => {
	const seats = withSeat(2, { standIn: STAND_IN });
	const named = await next(FIRST, { seats }, carol);
	await assert.rejects(
		chainOf(FIRST, named, await next(named, { seats: SEATS }, dave)),
		refused("unknownDevice"),
	);
	await chainOf(FIRST, named, await next(named, { seats: SEATS }, carol));
});

test("two states of one number are a fork, and a state that is known is none", async () => {
	const one = await next(FIRST, { name: "one" }, alice);
	const other = await next(FIRST, { name: "other" }, alice);
	const chain = await chainOf(FIRST, one);
	await chain.follow(await read(FIRST));
	await chain.follow(await read(one));
	assert.equal(chain.newest.seq, 1);
	const { cause } = await chain
		.follow(await read(other))
		.catch((error) => error);
	assert.equal(cause, canonical(other));
	assert.ok(chain.knows(chain.head));
	assert.ok(!chain.knows({ ...chain.head, seq: 2 }));
	assert.throws(
		() => chain.knows({ ...chain.head, seq: 0 }),
		refused("teamFork"),
	);
});

test("a full chain is changed by owners only", async () => {
	const chain = await chainOf(FIRST);
	chain.newest = { ...chain.newest, seq: 1023 };
	const clean = async (keys) => {
		const { random: _, ...members } = CONTENT;
		return signed(
			{
				...members,
				teamId: chain.newest.teamId,
				prev: chain.newest.digest,
				seq: 1024,
				seats: withSeat(2, { standIn: STAND_IN }),
			},
			keys,
		);
	};
	await assert.rejects(
		chain.follow(await read(await clean(carol))),
		refused("teamState"),
	);
	await chain.follow(await read(await clean(alice)));
});

test("this device changes its own seat alone", async () => {
	const chain = await chainOf(FIRST);
	const seat = { ...SEATS[2], standIn: STAND_IN };
	const text = await spellNext(chain, carol, AT, seat);
	assert.equal(canonical(JSON.parse(text)), text);
	await chain.follow(await read(JSON.parse(text)));
	assert.equal(chain.newest.seats[2].standIn.approverId, "dave");
	const back = await spellNext(chain, carol, AT, SEATS[2]);
	await chain.follow(await read(JSON.parse(back)));
	assert.equal(chain.newest.seats[2].standIn, null);
});

test("a link is read, and a consent proves it", async () => {
	const ids = [
		"AAAAAAAAAAAAAAAAAAAAAA",
		"AQAAAAAAAAAAAAAAAAAAAA",
		"AgAAAAAAAAAAAAAAAAAAAA",
	];
	const text = `https://gateway.example.org/#/team/${ids.join("/")}`;
	const link = parseTeamLink(` ${text} `);
	assert.deepEqual([link.teamId, link.inviteId, toBase64url(link.secret)], ids);
	for (const other of [
		"",
		"#/team/",
		text.slice(0, -1),
		`${text}/x`,
		text.replace("team", "pair"),
		`#/team/${ids[0]}/${ids[1]}`,
	])
		assert.throws(() => parseTeamLink(other), refused("teamLink"), other);
	const subject = { tenantId: "t", approverId: "carol" };
	const consent = await spellConsent(
		link,
		subject,
		[carol.bundle, spare.bundle],
		AT,
		carol,
	);
	assert.equal(canonical(JSON.parse(consent)), consent);
	const { proof, signature, statement } = JSON.parse(consent);
	assert.deepEqual(statement, {
		v: 1,
		statement: "team.consent",
		...subject,
		teamId: ids[0],
		inviteId: ids[1],
		devices: [carol.bundle.text, spare.bundle.text],
		at: AT,
		by: carol.bundle.deviceId,
	});
	assert.equal(
		proof,
		toBase64url(
			await proofOf(
				link.secret,
				`countersign team invitation v1${canonical(statement)}`,
			),
		),
	);
	assert.ok(
		signature.length > 80 &&
			fromBase64url("signature", signature).length === 64 &&
			utf8(proof).length === 43,
	);
});
