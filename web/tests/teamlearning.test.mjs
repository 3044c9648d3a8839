// Teams that other devices of a person have joined, as a device learns of them: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { learnEnforcers, shareEnforcers } from "../core/introductions.js";
import { Problem } from "../core/problem.js";
import { parseTeamLink, spellConsent } from "../core/teamconsent.js";
import { learnTeams } from "../core/teams.js";
import {
	AT,
	chainOf,
	introductionOf,
	next,
	owner,
	read,
	recordOf,
	signed,
	teamScene,
} from "./teams.mjs";

/** The same state with the signature of a device that has signed another one. */
async function invented(state, keys) {
	const other = await signed({ ...state.statement, name: "other" }, keys);
	return { ...state, signatures: other.signatures };
}

/** An owner's team has seated alice as an owner too, who knows nothing of it. */
async function strangeTeam() {
	const made = await teamScene({
		seats: ([olga, alice]) => [olga, { ...alice, owner: true }],
	});
	made.session.enforcers = new Map([["ci", recordOf("ci")]]);
	made.serves.introductions = [
		await introductionOf(owner, "olga", made.serves.teamId, "evil"),
		await introductionOf(owner, "olga", made.serves.teamId, "ci"),
	];
	return made;
}

/** The name of the newest state. */
const newestOf = (states) =>
	states.reduce((a, b) => (b.statement.seq > a.statement.seq ? b : a)).statement
		.name;

const toTeams = ({ posted }) =>
	posted.filter(({ path }) => path.startsWith("/v1/teams/"));

test("a copy of a state with an invented signature puts nobody into a team", async () => {
	const made = await strangeTeam();
	const { session, device, first, serves } = made;
	const second = await next(first, { name: "second" }, owner);
	const third = await next(second, { name: "third" }, owner);
	const known = [...session.enforcers.keys()];
	for (const states of [
		[first, await invented(first, device)],
		[first, second, await invented(first, device), third],
		[first, second, await invented(second, device)],
		[first, second, third, await invented(second, device)],
	]) {
		serves.states = states;
		const told = await learnTeams(session);
		assert.deepEqual(
			told.map(({ code, values }) => [code, values.team]),
			[["teamNotJoined", newestOf(states)]],
		);
		assert.equal(await learnEnforcers(session), false);
		await shareEnforcers(session, async () => {});
		assert.equal(made.store.records.size, 0);
		assert.deepEqual([...session.enforcers.keys()], known);
		assert.deepEqual(toTeams(made), []);
	}
	// A chain takes over no state with such a signature.
	const both = [
		...first.signatures,
		...(await invented(first, device)).signatures,
	];
	serves.states = [{ ...first, signatures: both }];
	const [notice] = await learnTeams(session);
	assert.equal(notice.code, "teamsUnread");
	assert.equal(notice.values.problem.code, "statementSignature");
	assert.equal(made.store.records.size, 0);
});

test("a state that a device of this person has signed does", async () => {
	const made = await strangeTeam();
	const { session, device, first, serves } = made;
	serves.states.push(await next(first, { name: "second" }, device));
	assert.deepEqual(await learnTeams(session), []);
	assert.equal(made.store.records.size, 1);
	await shareEnforcers(session, async () => {});
	assert.ok(session.enforcers.has("evil"));
});

test("a state is followed once, and a copy says nothing", async () => {
	const { first, chain } = await teamScene();
	assert.equal(await chain.follow(await read(first)), false);
	const second = await next(first, { name: "second" }, owner);
	assert.equal(await chain.follow(await read(second)), true);
	assert.equal(await chain.follow(await read(second)), false);
});

test("a gateway that lists teams without end is not followed", async () => {
	const made = await teamScene();
	const ids = Array.from({ length: 1_024 }, (_, at) =>
		Buffer.from(String(at).padStart(16, "0")).toString("base64url"),
	);
	const teams = ids.map((teamId) => ({ teamId }));
	made.session.client.members = async () => ({ members: { teams } });
	const asked = new Set();
	made.session.client.json = async ({ path }) => {
		asked.add(path.split("/")[3]);
		throw Problem.of("slow", {});
	};
	const notices = await learnTeams(made.session);
	assert.deepEqual([...asked], ids.slice(0, 64));
	assert.deepEqual(
		notices.map(({ code }) => code),
		["teamsUnread"],
	);
	// Also if it answers for all that are read: there may be more that count a device.
	const { client } = made.session;
	client.json = async ({ path }) => {
		throw Problem.of("refused", {
			status: 404,
			code: "NOT_FOUND",
			message: path,
		});
	};
	const [notice] = await learnTeams(made.session);
	assert.equal(notice.code, "teamsUnread");
	// Those that are known here do not count.
	await made.pin();
	const { teamId } = made.serves;
	const listed = [{ teamId }, ...teams.slice(0, 64)];
	client.members = async () => ({ members: { teams: listed } });
	assert.deepEqual(await learnTeams(made.session), []);
});

/** Every call takes this long, as far as it may. */
function takesTime(context, client, ms) {
	let now = Date.now();
	context.mock.method(Date, "now", () => now);
	const { json } = client;
	client.json = async (it) => {
		const left = it.patienceMs ?? 15_000;
		now += Math.min(ms, left);
		if (left < ms) throw Problem.of("slow", {});
		return json(it);
	};
	return () => now;
}

/** The gateway gives one state at a time. */
async function longTeam() {
	const made = await teamScene();
	const states = [made.first];
	for (let seq = 1; seq < 20; seq += 1)
		states.push(await next(states[seq - 1], { name: `n${seq}` }, owner));
	const { serves, session } = made;
	const { json } = session.client;
	session.client.json = (it) => {
		const [path, query] = it.path.split("?");
		const at = Number(new URLSearchParams(query).get("after") ?? -1) + 1;
		if (path.endsWith("/states")) serves.states = states.slice(at, at + 1);
		return json(it);
	};
	const { head } = await chainOf(...states);
	return { ...made, head };
}

test("the search for teams ends with the time of one call", async (context) => {
	const made = await longTeam();
	const { teamId } = made.serves;
	const teams = Array.from({ length: 64 }, () => ({ teamId }));
	made.session.client.members = async () => ({ members: { teams } });
	const now = takesTime(context, made.session.client, 1_000);
	const before = now();
	const [notice] = await learnTeams(made.session);
	assert.equal(notice.values.problem.code, "slow");
	assert.ok(now() - before <= 15_000);
	assert.equal(made.store.records.size, 0);
});

test("for a rule only its team is looked for, and not for ever", async (context) => {
	const made = await longTeam();
	const { session, device, serves } = made;
	const ids = `${serves.teamId}/AAAAAAAAAAAAAAAAAAAAAA/AAAAAAAAAAAAAAAAAAAAAA`;
	const link = parseTeamLink(`#/team/${ids}`);
	const own = [device.bundle];
	const consent = await spellConsent(link, session.subject, own, AT, device);
	serves.consents = [JSON.parse(consent)];
	const { members } = session.client;
	const listed = [];
	session.client.members = async (it) => {
		listed.push(it.path);
		return members(it);
	};
	const item = await made.asks({}, { team: made.head });
	assert.equal(item.approvalProblem, null);
	assert.deepEqual(listed, []);
	assert.equal((await made.store.team(serves.teamId)).digests.length, 20);
	made.store.records.clear();
	const now = takesTime(context, session.client, 1_000);
	const before = now();
	const { judgeRule } = await import("../core/item.js");
	const { rule } = item.content.artifact;
	const { problem } = await judgeRule(session, "bot", rule);
	assert.equal(problem.code, "slow");
	assert.ok(now() - before <= 15_000);
	assert.deepEqual(listed, []);
});
