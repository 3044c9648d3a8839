// Stand-ins: who decides on a seat for a time: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { canonical, parse, spellTime } from "../core/canonical.js";
import { Problem } from "../core/problem.js";
import { readRule } from "../core/rule.js";
import {
	parseTeamLink,
	receiveConsent,
	spellConsent,
} from "../core/teamconsent.js";
import { teamRuleProblem } from "../core/teamrule.js";
import { listTeams } from "../core/teams.js";
import { inviteStandIn, setStandIn } from "../core/teamseat.js";
import { RULE } from "./rules.mjs";
import {
	APPROVE,
	AT,
	away,
	bob,
	carol,
	chainOf,
	HOUR,
	hintsOf,
	next,
	owner,
	refused,
	teamScene,
} from "./teams.mjs";

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

test("the answer of a stand-in is waited for while the gateway is away", async () => {
	const made = await teamScene();
	await made.pin();
	made.session.page = "https://page.example.org/";
	const offer = await inviteStandIn(made.session, made.serves.teamId, "carol");
	const link = parseTeamLink(offer.link);
	const invited = { tenantId: "t", approverId: "carol" };
	const own = [carol.bundle];
	const consent = await spellConsent(link, invited, own, AT, carol);
	made.serves.consents = [JSON.parse(consent)];
	const { json } = made.session.client;
	let isAway = true;
	made.session.client.json = async (it) => {
		if (!isAway) return json(it);
		isAway = false;
		throw Problem.of("unreachable", {});
	};
	const candidate = await offer.consent(new AbortController().signal);
	assert.equal(candidate.approverId, "carol");
	assert.equal(isAway, false);
});

test("a state that the gateway has lost is published again, before the next one", async () => {
	const made = await teamScene();
	const second = await next(made.first, { name: "refunds" }, owner);
	await made.pin(await chainOf(made.first, second));
	// The newest state that the gateway has is the first one.
	const stored = [0];
	const tried = new Set();
	let seconds = 0;
	made.session.timestamp = () => {
		seconds += 1;
		return spellTime(Date.parse(AT) + 1_000 * seconds);
	};
	const { call } = made.session.client;
	made.session.client.call = async (it) => {
		const { seq } = JSON.parse(it.body).statement;
		tried.add(it.body);
		if (seq > stored.at(-1) + 1)
			throw Problem.of("refused", {
				status: 409,
				code: "TEAM_STATE_TAKEN",
				message: "",
			});
		stored.push(seq);
		return call(it);
	};
	const candidate = { approverId: "carol", devices: [carol.bundle] };
	const time = { from: Date.now(), until: Date.now() + HOUR };
	await setStandIn(made.session, made.serves.teamId, candidate, time);
	assert.deepEqual(stored, [0, 1, 2]);
	// A member may have read the first try: there is no second state of its number.
	assert.equal(tried.size, 2);
	assert.deepEqual(made.posted[0].body, second);
});

test("nobody who is in the team already is invited to stand in, or named", async () => {
	const made = await teamScene({
		seats: ([olga, alice, bobs]) => [
			{
				...olga,
				standIn: {
					approverId: "carol",
					devices: [carol.bundle.text],
					...away(-HOUR, HOUR),
				},
			},
			alice,
			bobs,
		],
	});
	await made.pin();
	made.session.page = "https://page.example.org/";
	const { teamId } = made.serves;
	for (const approverId of ["olga", "alice", "bob", "carol"])
		await assert.rejects(
			inviteStandIn(made.session, teamId, approverId),
			refused("alreadyInTeam"),
			approverId,
		);
	// Since the invitation.
	const time = { from: Date.now(), until: Date.now() + HOUR };
	await assert.rejects(
		setStandIn(
			made.session,
			teamId,
			{ approverId: "bob", devices: [bob.bundle] },
			time,
		),
		refused("alreadyInTeam"),
	);
	assert.deepEqual(made.posted, []);
});

test("the own stand-in can be named anew, for another time", async () => {
	const made = await teamScene({
		seats: ([olga, alice]) => [
			olga,
			{
				...alice,
				standIn: {
					approverId: "carol",
					devices: [carol.bundle.text],
					...away(-HOUR, HOUR),
				},
			},
		],
	});
	await made.pin();
	const candidate = { approverId: "carol", devices: [carol.bundle] };
	const time = { from: Date.now(), until: Date.now() + 2 * HOUR };
	await setStandIn(made.session, made.serves.teamId, candidate, time);
	assert.equal(made.posted.length, 1);
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
