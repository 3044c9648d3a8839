// Teams as people see them: an invitation, the members, a stand-in: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../core/problem.js";
import { problemText } from "../texts/problems.js";
import {
	buttonsOf,
	dialogOf,
	fakeDocument,
	settled,
	shown,
} from "./elements.mjs";

const document = fakeDocument();
globalThis.history = { replaceState: () => {} };
const { view: teamView } = await import("../views/team.js");
const { view: teamsView } = await import("../views/teams.js");
const { view: pairView } = await import("../views/pair.js");

const device = (name) => ({ deviceId: name, name, text: name });
const seat = (approverId, further = {}) => ({
	approverId,
	isOwner: false,
	devices: [device(`${approverId} phone`)],
	standIn: null,
	...further,
});
const TEAM = {
	teamId: "AAAAAAAAAAAAAAAAAAAAAA",
	name: "payments",
	changes: 2,
	minimum: { approvals: 2, rejections: 1, comment: "approve", separate: true },
	standIns: true,
	seats: [seat("olga", { isOwner: true }), seat("alice")],
};
const LISTED = {
	team: TEAM,
	isForked: false,
	isGone: false,
	isOnSeat: true,
	missing: [],
	revoked: [],
};

const STANDS_IN = Problem.of("standsInRevoked", {
	member: "bob",
	team: "payments",
});
const STANDS_IN_TEXT =
	"You stand in for bob in the team payments with a device";

/** An approver whose teams are what a test wants; `calls` has what it asked for. */
function approverOf(core) {
	const calls = [];
	const noted =
		(name) =>
		async (_, ...args) =>
			void calls.push([name, ...args]);
	const teams = {
		setStandIn: noted("setStandIn"),
		forgetTeam: noted("forgetTeam"),
		addToSeats: async (_, devices) => {
			calls.push(["addToSeats", devices]);
			return [];
		},
		clearSeats: async (_, revoked) => {
			calls.push(["clearSeats", revoked]);
			return [STANDS_IN];
		},
		...core,
	};
	return {
		calls,
		identity: { approverId: "alice" },
		teams: (act) => act(teams, {}),
		seats: (act) => act(teams, {}),
	};
}

test("an invitation says whose team it is and what it demands, and a yes joins", async () => {
	const accepted = [];
	const asked = [];
	const approver = approverOf({
		readTeamLink: async (_, link) => {
			asked.push(link);
			return { team: TEAM, accept: async () => void accepted.push(link) };
		},
	});
	const element = await shown(teamView, approver, ["a", "b", "c"]);
	assert.deepEqual(asked, ["#/team/a/b/c"]);
	const text = element.textContent;
	for (const words of [
		"payments",
		"Ownersolga",
		"at least 2 approvals; at most 1 rejection to deny it; a comment is required to approve; nobody who works with the agent approves",
		TEAM.teamId,
	])
		assert.ok(text.includes(words), `${words} in ${text}`);
	assert.deepEqual(accepted, []);
	await buttonsOf(element).get("Join").click();
	assert.equal(accepted.length, 1);
	assert.ok(
		element.textContent.includes(
			"once the person who invited you has confirmed it",
		),
	);
});

test("an invitation that does not verify has no button", async () => {
	const approver = approverOf({
		readTeamLink: async () => {
			throw Problem.of("teamState", { reason: "signers" });
		},
	});
	const element = await shown(teamView, approver, ["a", "b", "c"]);
	assert.equal(buttonsOf(element).size, 0);
	assert.ok(element.textContent.includes("Someone may be interfering"));
});

test("a team shows its members, and a stand-in is named and ended", async () => {
	let listed = LISTED;
	let agree;
	const consent = () => new Promise((resolve) => (agree = resolve));
	const approver = approverOf({
		listTeams: async () => [listed],
		inviteStandIn: async (_, ...args) => {
			approver.calls.push(["inviteStandIn", ...args]);
			return { link: "https://page/#/team/x", consent };
		},
	});
	const element = await shown(teamsView, approver);
	assert.ok(element.textContent.includes("olga phone"));
	assert.deepEqual([...buttonsOf(element).keys()], ["Name a stand-in"]);
	buttonsOf(element).get("Name a stand-in").click();
	const dialog = document.body.childNodes.at(-1);
	const [form] = dialog.all(({ tag }) => tag === "form");
	const [who] = dialog.all(({ tag }) => tag === "input");
	const [days] = dialog.all(({ tag }) => tag === "select");
	who.value = " carol ";
	days.value = "7";
	await form.fire("submit");
	await settled();
	const [link] = dialog.all(({ tag }) => tag === "input");
	assert.equal(link.getAttribute("value"), "https://page/#/team/x");
	assert.deepEqual(approver.calls, [["inviteStandIn", TEAM.teamId, "carol"]]);
	agree({ approverId: "carol", devices: [device("carol phone")] });
	await settled();
	assert.ok(dialog.textContent.includes("carol phone"));
	const standIn = {
		approverId: "carol",
		devices: [],
		from: "2026-01-01T00:00:00Z",
		until: "2026-01-08T00:00:00Z",
	};
	const seats = [TEAM.seats[0], seat("alice", { standIn })];
	listed = { ...LISTED, team: { ...TEAM, seats } };
	await buttonsOf(dialog).get("Yes, this person stands in").click();
	await settled();
	const [, [name, teamId, candidate, { from, until }]] = approver.calls;
	assert.deepEqual(
		[name, teamId, candidate.approverId],
		["setStandIn", TEAM.teamId, "carol"],
	);
	assert.equal(until - from, 7 * 24 * 60 * 60 * 1000);
	assert.ok(element.textContent.includes("carolstands in from"));
	await buttonsOf(element).get("End standing in").click();
	assert.equal(approver.calls.length, 2);
	const question = dialogOf("End standing in by carol?");
	await buttonsOf(question).get("End standing in").click();
	assert.deepEqual(approver.calls[2], ["setStandIn", TEAM.teamId, null]);
});

test("without a seat, or after a fork, nothing is offered", async () => {
	const buttons = async (change) => {
		const approver = approverOf({
			listTeams: async () => [{ ...LISTED, ...change }],
		});
		const element = await shown(teamsView, approver);
		return { text: element.textContent, names: [...buttonsOf(element).keys()] };
	};
	const forked = await buttons({ isForked: true });
	assert.deepEqual(forked.names, []);
	assert.ok(forked.text.includes("contradict each other"));
	const other = await buttons({ isOnSeat: false });
	assert.deepEqual(other.names, []);
	assert.ok(other.text.includes("This device isn’t in the team"));
	const out = await buttons({
		isOnSeat: false,
		team: { ...TEAM, seats: [TEAM.seats[0]] },
	});
	assert.ok(out.text.includes("You have no seat"));
	assert.deepEqual(out.names, []);
	assert.deepEqual(
		(await buttons({ team: { ...TEAM, standIns: false } })).names,
		[],
	);
});

test("a team that this person has left says so, and can be forgotten", async () => {
	let listed = [{ ...LISTED, isGone: true, isOnSeat: false }];
	const approver = approverOf({ listTeams: async () => listed });
	const element = await shown(teamsView, approver);
	assert.ok(element.textContent.includes("You have no seat in this team now."));
	assert.ok(!element.textContent.includes("olga"));
	assert.deepEqual([...buttonsOf(element).keys()], ["Forget this team"]);
	buttonsOf(element).get("Forget this team").click();
	assert.deepEqual(approver.calls, []);
	listed = [];
	const question = dialogOf("Forget the team payments?");
	await buttonsOf(question).get("Forget this team").click();
	await settled();
	assert.deepEqual(approver.calls, [["forgetTeam", TEAM.teamId]]);
	assert.ok(element.textContent.includes("You’re not in a team"));
});

test("devices that the team does not know of are told to it", async () => {
	const laptop = device("laptop");
	let revoked = [device("old phone")];
	const approver = approverOf({
		listTeams: async () => [{ ...LISTED, missing: [laptop], revoked }],
	});
	const element = await shown(teamsView, approver);
	assert.ok(
		element.textContent.includes(
			"Not in the team yet: laptop. Revoked, but still in the team: old phone.",
		),
	);
	await buttonsOf(element).get("Update the team").click();
	assert.deepEqual(approver.calls, [["clearSeats", new Set(["old phone"])]]);
	await settled();
	assert.ok(element.textContent.includes(STANDS_IN_TEXT));
	revoked = [];
	const other = await shown(teamsView, approver);
	await buttonsOf(other).get("Update the team").click();
	assert.deepEqual(approver.calls.slice(1), [["addToSeats", [laptop]]]);
});

test("what a person reads about a broken team has no internal reason", () => {
	const text = problemText(Problem.of("teamState", { reason: "person twice" }));
	assert.ok(!text.includes("person twice"), text);
	assert.equal(
		problemText(Problem.of("alreadyInTeam", { approverId: "bob" })),
		"bob is already in this team. Choose someone who isn’t.",
	);
});

test("an owner chooses the team of an agent, and others are not asked", async () => {
	for (const [teams, chosen, wanted] of [
		[[TEAM], TEAM.teamId, TEAM],
		[[TEAM], "", null],
		[[], null, null],
	]) {
		const accepted = [];
		const offer = {
			enforcerId: "ci",
			label: null,
			standing: "new",
			teams,
			accept: async (...args) => {
				accepted.push(args);
				return { enforcerId: "ci", label: null };
			},
		};
		const approver = { readPairingLink: async () => offer };
		const element = await shown(pairView, approver, ["a", "b", "c"]);
		const [select] = element.all(({ tag }) => tag === "select");
		assert.equal(select === undefined, chosen === null);
		if (select) select.value = chosen;
		await buttonsOf(element).get("Pair").click();
		assert.deepEqual(accepted, [[undefined, null, wanted]]);
	}
});
