// Joining a team, and leaving it: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { canonical, parse } from "../core/canonical.js";
import { sign } from "../core/keys.js";
import { Problem } from "../core/problem.js";
import { parseTeamLink, spellConsent } from "../core/teamconsent.js";
import {
	forgetTeam,
	learnTeams,
	listTeams,
	readTeamLink,
	readTeams,
} from "../core/teams.js";
import {
	AT,
	bob,
	chainOf,
	contentOf,
	next,
	owner,
	refused,
	seatOf,
	signed,
	teamScene,
} from "./teams.mjs";

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

test("a consent that is not well formed vouches for no team", async () => {
	const made = await teamScene();
	const statement = {
		v: 1,
		statement: "team.consent",
		tenantId: "t",
		teamId: made.serves.teamId,
		inviteId: "AAAAAAAAAAAAAAAAAAAAAA",
		approverId: "alice",
		devices: [made.device.bundle.text],
		at: AT,
		by: made.device.bundle.deviceId,
	};
	const consent = async (change, further = {}) => {
		const changed = JSON.parse(JSON.stringify({ ...statement, ...change }));
		const signature = await sign(made.device, canonical(changed));
		return { proof: "", signature, statement: changed, ...further };
	};
	made.serves.consents = [
		await consent({ v: 2 }),
		await consent({ further: 1 }),
		await consent({ devices: undefined }),
		await consent({ devices: [] }),
		await consent({ at: "yesterday" }),
		await consent({}, { further: 1 }),
	];
	await learnTeams(made.session);
	assert.equal(made.store.records.size, 0);
	made.serves.consents = [await consent({})];
	await learnTeams(made.session);
	assert.equal(made.store.records.size, 1);
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

test("a team that this person has left is listed as such, until it is forgotten", async () => {
	const made = await teamScene();
	await made.pin();
	const [before] = await listTeams(made.session);
	assert.deepEqual([before.isGone, before.isOnSeat], [false, true]);
	made.leave();
	made.serves.listed = false;
	const [gone] = await listTeams(made.session);
	assert.deepEqual(
		[gone.isGone, gone.isOnSeat, gone.isForked],
		[true, false, false],
	);
	assert.equal(gone.team.name, "payments");
	assert.deepEqual(await readTeams(made.session), []);
	await forgetTeam(made.session, gone.team.teamId);
	assert.deepEqual(await listTeams(made.session), []);
});

test("a team that cannot be read now is shown as it is known", async () => {
	const made = await teamScene();
	await made.pin();
	made.serves.listed = false;
	const { json } = made.session.client;
	made.session.client.json = async (it) => {
		if (it.path.includes("/states")) throw Problem.of("slow", {});
		return json(it);
	};
	const [listed] = await listTeams(made.session);
	assert.deepEqual([listed.isGone, listed.isOnSeat], [false, true]);
	assert.equal((await readTeams(made.session)).length, 1);
});

const IDS = "AAAAAAAAAAAAAAAAAAAAAA/AAAAAAAAAAAAAAAAAAAAAA";

test("an invitation shows nothing older than what is known here", async () => {
	const made = await teamScene();
	const second = await next(made.first, { name: "refunds" }, owner);
	await made.pin(await chainOf(made.first, second));
	// The gateway withholds the newer state.
	const link = `#/team/${made.serves.teamId}/${IDS}`;
	const { team, accept } = await readTeamLink(made.session, link);
	assert.equal(team.name, "refunds");
	await accept();
	const { digests, fork } = await made.store.team(made.serves.teamId);
	assert.deepEqual([digests.length, fork], [2, null]);
});

test("a yes takes nothing back that was read meanwhile", async () => {
	const made = await teamScene();
	const { teamId } = made.serves;
	const link = `#/team/${teamId}/${IDS}`;
	const { accept } = await readTeamLink(made.session, link);
	const second = await next(made.first, { name: "refunds" }, owner);
	await made.pin(await chainOf(made.first, second));
	await accept();
	assert.equal((await made.store.team(teamId)).digests.length, 2);
	// Another history than the person has said yes to is a fork.
	made.store.records.clear();
	made.serves.states.push(await next(made.first, { name: "other" }, owner));
	const again = await readTeamLink(made.session, link);
	await made.pin(await chainOf(made.first, second));
	await again.accept();
	assert.notEqual((await made.store.team(teamId)).fork, null);
});

test("after a fork the person joins anew, from the first state on", async () => {
	const made = await teamScene();
	const { teamId } = made.serves;
	const link = `#/team/${teamId}/${IDS}`;
	const [one, other] = await Promise.all(
		["one", "other"].map((name) => next(made.first, { name }, owner)),
	);
	await made.pin(await chainOf(made.first, one));
	made.serves.states.push(other);
	const head = (await chainOf(made.first, other)).newest;
	made.store.records.get(teamId).fork = head.raw;
	const { team, accept } = await readTeamLink(made.session, link);
	assert.equal(team.name, "other");
	await accept();
	const { fork, digests } = await made.store.team(teamId);
	assert.deepEqual([fork, digests.length], [null, 2]);
});
