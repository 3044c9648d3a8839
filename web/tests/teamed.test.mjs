// Requests that ask a team, from the gateway to the signature: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { canonical, parse, spellTime } from "../core/canonical.js";
import { spellIntroduction } from "../core/introductions.js";
import { sign } from "../core/keys.js";
import { open, parseCiphertext } from "../core/seal.js";
import {
	parseTeamLink,
	receiveConsent,
	spellConsent,
} from "../core/teamconsent.js";
import { isApprovable } from "../ui/selection.js";
import { fakeDocument } from "./elements.mjs";
import { RULE } from "./rules.mjs";
import {
	AT,
	chainOf,
	contentOf,
	next,
	seatOf,
	signed,
	teamGateway,
	teamStore,
} from "./teams.mjs";

globalThis.WebSocket ??= { OPEN: 1 };

fakeDocument();
const { newDevice, request, scene } = await import("./hostile.mjs");
const { learnEnforcers } = await import("../core/introductions.js");
const { listTeams, readTeamLink } = await import("../core/teams.js");
const { changeDevices, inviteStandIn, setStandIn } = await import(
	"../core/teamseat.js"
);
const { ruleSentence } = await import("../views/rule.js");

const [owner, bob, carol] = await Promise.all(
	["owner", "bob", "carol"].map((name) => newDevice(name)),
);
const APPROVE = { verdict: "approve" };
const refused = (code) => (error) => error.code === code;
const HOUR = 60 * 60 * 1000;
const away = (from, until) => ({
	from: spellTime(Math.floor((Date.now() + from) / 1000) * 1000),
	until: spellTime(Math.floor((Date.now() + until) / 1000) * 1000),
});

/** A team of an owner, alice, whose device this is, and bob; and a gateway that serves it. */
async function teamScene({ seats, ...content } = {}) {
	const made = await scene();
	const { device, session } = made;
	const all = [
		seatOf("olga", [owner], { owner: true }),
		seatOf("alice", [device]),
		seatOf("bob", [bob]),
	];
	const first = await signed(contentOf(seats?.(all) ?? all, content), owner);
	const chain = await chainOf(first);
	const gateway = teamGateway();
	Object.assign(gateway.serves, {
		teamId: chain.newest.teamId,
		states: [first],
	});
	const store = teamStore();
	Object.assign(session.store, store, { unpaired: async () => [] });
	const { json, call } = session.client;
	Object.assign(session.client, {
		json: (it) => (gateway.isAboutTeams(it.path) ? gateway.json(it) : json(it)),
		members: gateway.members,
		call: (it) => (it.path === "/v1/decisions" ? call(it) : gateway.call(it)),
	});
	/** As after joining. */
	const pin = async ({ newest, digests } = chain) =>
		store.keepTeam({
			teamId: newest.teamId,
			state: newest.raw,
			digests,
			fork: null,
		});
	const asks = async (change = {}, ask = {}) => {
		const rule = {
			...RULE,
			asks: [{ approvals: 2, team: chain.head, ...ask }],
			...change,
		};
		const extensions = { "countersign.rule": rule };
		return made.shows(
			await request(made.enforcers.bot, device, { further: { extensions } }),
		);
	};
	return { ...made, ...gateway, first, chain, store, pin, asks };
}

/** The hints that a sent decision has, as the enforcer opens them. */
async function hintsOf({ sent, device, enforcers }) {
	const { policyHints, requestId, artifactHash } = JSON.parse(sent[0]);
	const { deviceId, encryptionKey } = device.bundle;
	const context = {
		v: 1,
		requestId,
		artifactHash,
		enforcerId: "bot",
		deviceId,
	};
	const sealed = parseCiphertext(
		"hints",
		parse("decision", canonical(policyHints.sealed)),
	);
	const opened = await open(
		sealed,
		"bot",
		enforcers.bot.pair,
		encryptionKey,
		context,
	);
	return JSON.parse(new TextDecoder().decode(opened));
}

test("a member approves on the own seat, and names the state that the device knows", async () => {
	const made = await teamScene();
	await made.pin();
	const item = await made.asks();
	assert.equal(item.approvalProblem, null);
	assert.ok(isApprovable(item));
	assert.deepEqual(item.content.artifact.rest, {});
	assert.equal(
		ruleSentence(item.content.artifact.rule, undefined, item.teamNames),
		"One of 2 approvals, from payments; not by erin.",
	);
	await made.model.decide(item, APPROVE);
	assert.deepEqual(await hintsOf(made), { teams: [made.chain.head] });
});

test("a team of others is not named, and asked beside one’s own", async () => {
	const made = await teamScene();
	await made.pin();
	const other = {
		teamId: "AAAAAAAAAAAAAAAAAAAAAA",
		seq: 3,
		digest: "0".repeat(64),
	};
	const steps = { escalate: [{ after: 180, team: other }] };
	const item = await made.asks({}, steps);
	assert.equal(item.approvalProblem, null);
	assert.equal(
		ruleSentence(item.content.artifact.rule, undefined, item.teamNames),
		"One of 2 approvals, from payments; after 3 minutes another team is asked too; not by erin.",
	);
	await made.model.decide(item, APPROVE);
	assert.deepEqual(await hintsOf(made), { teams: [made.chain.head] });
});

test("a newer state that the request names is read, and the decision names it", async () => {
	const made = await teamScene();
	await made.pin();
	const second = await next(made.first, { name: "refunds" }, owner);
	made.serves.states.push(second);
	const { head } = await chainOf(made.first, second);
	const item = await made.asks({}, { team: head });
	assert.equal(item.approvalProblem, null);
	assert.deepEqual(Object.values(item.teamNames), ["refunds"]);
	await made.model.decide(item, APPROVE);
	assert.deepEqual(await hintsOf(made), { teams: [head] });
	assert.equal((await made.store.team(head.teamId)).digests.length, 2);
});

test("the newest state that is known counts, and the decision names it", async () => {
	const made = await teamScene();
	const out = await next(
		made.first,
		{
			seats: made.first.statement.seats.filter(
				({ approverId }) => approverId !== "alice",
			),
		},
		owner,
	);
	await made.pin(await chainOf(made.first, out));
	const item = await made.asks();
	assert.equal(item.approvalProblem.code, "notInRule");
	await assert.rejects(
		made.model.decide(item, APPROVE),
		refused("notApprovable"),
	);
	await made.model.decide(item, { verdict: "reject" });
	assert.equal(JSON.parse(made.sent[0]).decision, "reject");
});

test("a state that the gateway withholds is waited for", async () => {
	const made = await teamScene();
	await made.pin();
	const second = await next(made.first, { name: "refunds" }, owner);
	const { head } = await chainOf(made.first, second);
	const item = await made.asks({}, { team: head });
	assert.equal(item.approvalProblem.code, "teamWithheld");
	await assert.rejects(
		made.model.decide(item, APPROVE),
		refused("notApprovable"),
	);
	made.serves.states.push(second);
	made.model.lookedAt = 0;
	await made.model.refresh();
	const now = made.model.find(item.requestId);
	assert.equal(now.approvalProblem, null);
	assert.notEqual(now.content, item.content);
});

test("a gateway that repeats states is not read for ever", async () => {
	const made = await teamScene();
	await made.pin();
	const { json } = made.session.client;
	made.session.client.json = (it) => json({ path: it.path.split("?")[0] });
	const head = { ...made.chain.head, seq: 1, digest: "0".repeat(64) };
	const item = await made.asks({}, { team: head });
	assert.equal(item.approvalProblem.code, "teamWithheld");
});

test("a head that contradicts what is known is a fork", async () => {
	const made = await teamScene();
	await made.pin();
	const item = await made.asks(
		{},
		{ team: { ...made.chain.head, digest: "0".repeat(64) } },
	);
	assert.equal(item.approvalProblem.code, "teamFork");
});

test("a second history that an owner has signed ends the team here, and is kept", async () => {
	const made = await teamScene();
	const [one, other] = await Promise.all(
		["one", "other"].map((name) => next(made.first, { name }, owner)),
	);
	await made.pin(await chainOf(made.first, one));
	const third = await next(other, {}, owner);
	made.serves.states = [made.first, other, third];
	const { head } = await chainOf(made.first, other, third);
	const item = await made.asks({}, { team: head });
	assert.equal(item.approvalProblem.code, "teamFork");
	assert.equal((await made.store.team(head.teamId)).fork, canonical(third));
	const again = await made.asks();
	assert.equal(again.approvalProblem.code, "teamFork");
});

const CASES = {
	"somebody else’s seat": [{ change: { seat: "bob" } }, "otherSeat"],
	"a seat of nobody": [{ change: { seat: "zoe" } }, "otherSeat"],
	"another enforcer": [{ change: { enforcerId: "prod" } }, "ruleOfOther"],
	"a person that it excludes": [
		{ change: { notBy: ["alice"] } },
		"excludedByRule",
	],
	"an operator, where somebody is excluded": [
		{ operators: ["alice"] },
		"excludedByRule",
	],
	"a rule with fewer approvals than the team’s": [
		{
			content: {
				minimum: {
					approvals: 3,
					rejections: 32,
					comment: "none",
					separate: false,
				},
			},
		},
		"belowMinimum",
	],
	"a rule that is harder to reject": [
		{
			change: { rejections: 2 },
			content: {
				minimum: {
					approvals: 1,
					rejections: 1,
					comment: "none",
					separate: false,
				},
			},
		},
		"belowMinimum",
	],
	"a rule without the team’s comment": [
		{
			change: { comment: "reject" },
			content: {
				minimum: {
					approvals: 1,
					rejections: 32,
					comment: "approve",
					separate: false,
				},
			},
		},
		"belowMinimum",
	],
	"a rule that lets an operator approve": [
		{
			operators: ["olga"],
			content: {
				minimum: {
					approvals: 1,
					rejections: 32,
					comment: "none",
					separate: true,
				},
			},
		},
		"belowMinimum",
	],
	"a rule that excludes the operator": [
		{
			operators: ["erin"],
			content: {
				minimum: {
					approvals: 1,
					rejections: 32,
					comment: "none",
					separate: true,
				},
			},
		},
		null,
	],
	"a stricter rule": [
		{
			change: { comment: "always", rejections: 1 },
			content: {
				minimum: {
					approvals: 2,
					rejections: 1,
					comment: "reject",
					separate: false,
				},
			},
		},
		null,
	],
	"a device that is not on the seat": [
		{ content: { seats: ([olga]) => [olga, seatOf("alice", [carol])] } },
		"notOnSeat",
	],
	"another device on the seat of the stand-in": [
		{
			change: { seat: "bob" },
			content: {
				seats: ([olga]) => [
					olga,
					seatOf("bob", [bob], {
						standIn: {
							approverId: "alice",
							devices: [carol.bundle.text],
							...away(-HOUR, HOUR),
						},
					}),
				],
			},
		},
		"otherSeat",
	],
};

for (const [name, [{ change, content, operators }, code]] of Object.entries(
	CASES,
))
	test(`${code === null ? "approved" : "not approved"}: ${name}`, async () => {
		const made = await teamScene(content);
		await made.pin();
		made.session.enforcers.get("bot").operators = operators;
		const item = await made.asks(change);
		assert.ok(item.content.opened);
		assert.equal(item.approvalProblem?.code ?? null, code);
		if (code === null) return;
		await assert.rejects(
			made.model.decide(item, APPROVE),
			refused("notApprovable"),
		);
		assert.deepEqual(made.sent, []);
	});

for (const [name, time, mayApprove] of [
	["within the time", away(-HOUR, HOUR), true],
	["before it", away(HOUR, 2 * HOUR), false],
	["after it", away(-2 * HOUR, -HOUR), false],
])
	test(`a stand-in decides ${name}: ${mayApprove}`, async () => {
		const made = await teamScene({
			seats: ([olga, alice, bobs]) => [
				olga,
				{
					...bobs,
					standIn: { approverId: "alice", devices: alice.devices, ...time },
				},
			],
		});
		await made.pin();
		const item = await made.asks({ seat: "bob" });
		assert.equal(
			item.approvalProblem?.code ?? null,
			mayApprove ? null : "otherSeat",
		);
		if (!mayApprove) return;
		await made.model.decide(item, APPROVE);
		assert.deepEqual(await hintsOf(made), { teams: [made.chain.head] });
		// Neither for an excluded member, nor while being excluded.
		for (const notBy of [["bob"], ["alice"]]) {
			const excluded = await teamRule(made, { seat: "bob", notBy });
			assert.equal(excluded.code, "excludedByRule");
		}
	});

async function teamRule({ session, chain, device }, change) {
	const { teamRuleProblem } = await import("../core/teamrule.js");
	const { readRule } = await import("../core/rule.js");
	const rule = {
		...RULE,
		asks: [{ approvals: 2, team: chain.head }],
		...change,
	};
	const read = readRule(
		parse("artifact", canonical({ "countersign.rule": rule })),
	);
	const here = { deviceId: device.bundle.deviceId, now: Date.now() };
	const about = { approverId: session.identity.approverId, enforcerId: "bot" };
	return teamRuleProblem(
		read,
		about,
		new Map([[chain.newest.teamId, chain]]),
		here,
	);
}

test("a rule with a team has one form", async () => {
	for (const [change, ask] of [
		[{}, { from: ["alice"] }],
		[{ seat: undefined }, {}],
		[{}, { team: "payments" }],
		[{}, { team: { teamId: "AA", seq: 0, digest: "0".repeat(64) } }],
		[
			{},
			{
				team: {
					teamId: "AAAAAAAAAAAAAAAAAAAAAA",
					seq: 2048,
					digest: "0".repeat(64),
				},
			},
		],
		[{}, { team: { teamId: "AAAAAAAAAAAAAAAAAAAAAA", seq: 0, digest: "0" } }],
		[
			{},
			{
				team: {
					teamId: "AAAAAAAAAAAAAAAAAAAAAA",
					seq: 0,
					digest: "0".repeat(64),
					name: "x",
				},
			},
		],
	]) {
		const made = await teamScene();
		await made.pin();
		const item = await made.asks(
			JSON.parse(
				JSON.stringify({ ...change, seat: "seat" in change ? null : "alice" }),
			),
			ask,
		);
		assert.equal(item.content.opened, false, JSON.stringify([change, ask]));
	}
});

test("the gateway cannot put anybody into a team", async () => {
	const made = await teamScene();
	const item = await made.asks();
	assert.equal(item.approvalProblem.code, "teamUnknown");
	assert.equal(made.store.records.size, 0);
	const link = parseTeamLink(
		`#/team/${made.serves.teamId}/AAAAAAAAAAAAAAAAAAAAAA/AAAAAAAAAAAAAAAAAAAAAA`,
	);
	const consent = async (approverId, keys) =>
		JSON.parse(
			await spellConsent(
				link,
				{ tenantId: "t", approverId },
				[keys.bundle],
				AT,
				keys,
			),
		);
	const mine = await consent("alice", made.device);
	made.serves.consents = [
		await consent("alice", bob),
		await consent("bob", made.device),
		{ ...mine, statement: { ...mine.statement, at: "2026-01-02T00:00:00Z" } },
	];
	await made.model.refresh();
	assert.equal(made.store.records.size, 0);
	made.serves.consents.push(mine);
	made.model.lookedAt = 0;
	await made.model.refresh();
	assert.equal(made.model.find(item.requestId).approvalProblem, null);
});

test("a team is joined by its link: nothing before the yes", async () => {
	const made = await teamScene();
	const ids = `${made.serves.teamId}/AAAAAAAAAAAAAAAAAAAAAA/AAAAAAAAAAAAAAAAAAAAAA`;
	made.session.identity.deviceName = "device";
	const own = { deviceId: made.device.bundle.deviceId };
	const devices = {
		devices: [{ bundle: made.device.bundle.text, addedAt: AT }],
		statements: [],
	};
	const { json } = made.session.client;
	made.session.client.json = (it) =>
		it.path.endsWith("/devices")
			? parse("answer", JSON.stringify(devices))
			: json(it);
	const { team, accept } = await readTeamLink(made.session, `#/team/${ids}`);
	assert.equal(team.name, "payments");
	assert.deepEqual(made.posted, []);
	assert.equal(made.store.records.size, 0);
	await accept();
	const [{ path, body }] = made.posted;
	assert.ok(path.endsWith(`${made.serves.teamId}/consents`));
	assert.equal(body.statement.by, own.deviceId);
	assert.equal(made.store.records.size, 1);
	await assert.rejects(
		readTeamLink(
			made.session,
			`#/team/${ids.replace(made.serves.teamId, "AAAAAAAAAAAAAAAAAAAAAA")}`,
		),
		refused("noSuchInvitation"),
	);
	const [other] = [
		await signed(contentOf([seatOf("olga", [owner], { owner: true })]), owner),
	];
	made.serves.states = [other];
	made.store.records.clear();
	await assert.rejects(
		readTeamLink(made.session, `#/team/${ids}`),
		refused("teamState"),
	);
});

test("a stand-in is invited by a link, and only a consent that it proves counts", async () => {
	const made = await teamScene();
	await made.pin();
	made.session.page = "https://page.example.org/";
	const { teamId } = made.serves;
	const offer = await inviteStandIn(made.session, teamId, "carol");
	const [{ path, body }] = made.posted;
	assert.ok(path.endsWith("/invitations"));
	assert.equal(body.approverId, "carol");
	assert.ok(offer.link.startsWith("https://page.example.org/#/team/"));
	const link = parseTeamLink(offer.link);
	assert.deepEqual([link.teamId, link.inviteId], [teamId, body.inviteId]);
	const consent = async ({
		approverId = "carol",
		keys = carol,
		tenantId = "t",
		devices = [carol.bundle],
		...change
	} = {}) =>
		JSON.parse(
			await spellConsent(
				{ ...link, ...change },
				{ tenantId, approverId },
				devices,
				AT,
				keys,
			),
		);
	const good = await consent();
	const other = "AAAAAAAAAAAAAAAAAAAAAA";
	const forged = [
		await consent({ secret: new Uint8Array(16) }),
		await consent({ approverId: "bob" }),
		await consent({ tenantId: "other" }),
		await consent({ teamId: other }),
		await consent({ inviteId: other }),
		await consent({ keys: bob }),
		{ ...good, signature: (await consent({ keys: bob })).signature },
		{ ...good, statement: { ...good.statement, devices: [bob.bundle.text] } },
		{ ...good, further: 1 },
	];
	for (const node of forged)
		await assert.rejects(
			receiveConsent(
				link,
				{ tenantId: "t", approverId: "carol" },
				parse("answer", canonical(node)),
			),
		);
	made.serves.consents = [...forged, good];
	const candidate = await offer.consent(new AbortController().signal);
	assert.deepEqual(
		candidate.devices.map(({ deviceId }) => deviceId),
		[carol.bundle.deviceId],
	);
});

test("a stand-in is named on the own seat, on top of what others have published", async () => {
	const made = await teamScene();
	await made.pin();
	const { teamId } = made.serves;
	const candidate = { approverId: "carol", devices: [carol.bundle] };
	const time = { from: Date.now(), until: Date.now() + HOUR };
	const second = await next(made.first, { name: "refunds" }, owner);
	const { call } = made.session.client;
	let isTaken = true;
	made.session.client.call = async (it) => {
		if (!isTaken) return call(it);
		isTaken = false;
		made.serves.states.push(second);
		const { Problem } = await import("../core/problem.js");
		throw Problem.of("refused", {
			status: 409,
			code: "TEAM_STATE_TAKEN",
			message: "",
		});
	};
	await setStandIn(made.session, teamId, candidate, time);
	const [{ path, body }] = made.posted;
	assert.ok(path.endsWith("/states"));
	assert.equal(body.statement.seq, 2);
	const { newest } = await chainOf(made.first, second, body);
	assert.equal(newest.name, "refunds");
	assert.equal(newest.seats[1].standIn.approverId, "carol");
	made.serves.states.push(body);
	await setStandIn(made.session, teamId, null);
	assert.equal(made.posted[1].body.statement.seats[1].standIn, undefined);
	const { json } = made.session.client;
	made.session.client.json = (it) =>
		it.path.endsWith("/devices")
			? parse("answer", '{"devices":[],"statements":[]}')
			: json(it);
	made.serves.states.push(made.posted[1].body);
	const [listed] = await listTeams(made.session);
	assert.deepEqual(
		[listed.isOnSeat, listed.isForked, listed.missing.length],
		[true, false, 0],
	);
});

test("devices are added to the own seat and removed from it, the last one excepted", async () => {
	const made = await teamScene();
	await made.pin();
	await changeDevices(made.session, { adds: [carol.bundle] });
	const added = made.posted[0].body;
	assert.deepEqual(added.statement.seats[1].devices, [
		made.device.bundle.text,
		carol.bundle.text,
	]);
	made.serves.states.push(added);
	await changeDevices(made.session, { adds: [carol.bundle] });
	assert.equal(made.posted.length, 1);
	await changeDevices(made.session, {
		drops: new Set([carol.bundle.deviceId]),
	});
	assert.deepEqual(made.posted[1].body.statement.seats[1].devices, [
		made.device.bundle.text,
	]);
	made.serves.states.push(made.posted[1].body);
	await changeDevices(made.session, {
		drops: new Set([made.device.bundle.deviceId]),
	});
	assert.equal(made.posted.length, 2);
});

test("a team that cannot be told does not keep others from it, and one that was left says nothing", async () => {
	const made = await teamScene();
	const gone = { ...(await made.pin()), teamId: "AAAAAAAAAAAAAAAAAAAAAA" };
	const { newest, digests } = made.chain;
	for (const teamId of ["AAAAAAAAAAAAAAAAAAAAAA", "AQAAAAAAAAAAAAAAAAAAAA"])
		made.store.records.set(teamId, {
			...gone,
			teamId,
			state: newest.raw,
			digests,
			fork: null,
		});
	const own = made.store.records.get(newest.teamId);
	made.store.records.delete(newest.teamId);
	made.store.records.set(newest.teamId, own);
	const { json } = made.session.client;
	const { Problem } = await import("../core/problem.js");
	made.session.client.json = async (it) => {
		if (it.path.includes("/AQAAA")) throw Problem.of("slow", {});
		return json(it);
	};
	await assert.rejects(
		changeDevices(made.session, { adds: [carol.bundle] }),
		refused("slow"),
	);
	assert.equal(made.posted.length, 1);
	made.store.records.delete("AQAAAAAAAAAAAAAAAAAAAA");
	await changeDevices(made.session, { adds: [carol.bundle] });
});

test("members’ devices take over the introductions of owners, and of nobody else", async () => {
	const made = await teamScene();
	await made.pin();
	const pinned = [];
	made.session.pin = async (record) => void pinned.push(record);
	const { teamId } = made.serves;
	const introduce = async (
		keys,
		approverId,
		{ team = teamId, tenantId = "t", ...further } = {},
	) => {
		const enforcer = {
			enforcerId: "ci",
			key: "CQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
			label: null,
			pairedAt: AT,
			operators: ["dave"],
			...further,
		};
		const text = spellIntroduction(
			{ tenantId, approverId },
			enforcer,
			keys.bundle.deviceId,
			team,
		);
		return { signature: await sign(keys, text), statement: JSON.parse(text) };
	};
	const { json } = made.session.client;
	made.session.client.json = (it) =>
		it.path.endsWith("/alice/introductions")
			? parse("answer", '{"introductions":[]}')
			: json(it);
	const good = await introduce(owner, "olga");
	made.serves.introductions = [
		await introduce(bob, "bob"),
		await introduce(bob, "olga"),
		await introduce(owner, "bob"),
		await introduce(owner, "olga", { team: "AAAAAAAAAAAAAAAAAAAAAA" }),
		await introduce(owner, "olga", { tenantId: "other" }),
		{ ...good, statement: { ...good.statement, operators: ["erin"] } },
	];
	await learnEnforcers(made.session);
	assert.deepEqual(pinned, []);
	made.serves.introductions.push(good);
	assert.equal(await learnEnforcers(made.session), true);
	assert.equal(pinned[0].enforcerId, "ci");
	assert.deepEqual(pinned[0].operators, ["dave"]);
	assert.equal(pinned[0].owner, "olga");
	// An introduction for a team is none for the own devices.
	pinned.length = 0;
	made.serves.introductions = [];
	const own = await introduce(made.device, "alice");
	made.session.client.json = (it) =>
		it.path.endsWith("/alice/introductions")
			? parse("answer", JSON.stringify({ introductions: [own] }))
			: json(it);
	made.session.identity.deviceId = "x";
	await learnEnforcers(made.session);
	assert.deepEqual(pinned, []);
});
