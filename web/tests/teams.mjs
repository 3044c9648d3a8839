// Teams for tests: their states, and a gateway that serves what a test wants.

import {
	randomBytes,
	sha256,
	toBase64url,
	toHex,
	utf8,
} from "../core/bytes.js";
import { canonical, parse } from "../core/canonical.js";
import { sign } from "../core/keys.js";
import { Problem } from "../core/problem.js";
import { parseState, TeamChain } from "../core/team.js";

export const AT = "2026-01-01T00:00:00Z";

/** A seat as it is spelled, for people whose devices are named. */
export const seatOf = (approverId, devices, further = {}) => ({
	approverId,
	owner: false,
	devices: devices.map(({ bundle }) => bundle.text),
	...further,
});

/** The members of the first state. */
export const contentOf = (seats, further = {}) => ({
	v: 1,
	statement: "team.state",
	tenantId: "t",
	seq: 0,
	random: toBase64url(randomBytes(16)),
	at: AT,
	name: "payments",
	changes: 1,
	minimum: { approvals: 1, rejections: 32, comment: "none", separate: false },
	standIns: true,
	seats,
	...further,
});

/** A statement with the signatures of these devices. */
export async function signed(statement, ...signers) {
	const text = canonical(statement);
	const signatures = await Promise.all(
		signers.map(async (keys) => ({
			by: keys.bundle.deviceId,
			signature: await sign(keys, text),
		})),
	);
	return { signatures, statement };
}

export const read = (state) => parseState(parse("team", canonical(state)));

/** The state after one, with these changes. */
export async function next(before, change, ...signers) {
	const { random: _, ...members } = before.statement;
	const { teamId, digest: prev, seq } = await read(before);
	return signed(
		{ ...members, teamId, prev, seq: seq + 1, ...change },
		...signers,
	);
}

export async function chainOf(...states) {
	const [first, ...others] = states;
	const chain = await TeamChain.begin(await read(first));
	for (const state of others) await chain.follow(await read(state));
	return chain;
}

export const digestOf = async (statement) =>
	toHex(await sha256(utf8(canonical(statement))));

/** What a store keeps of teams. */
export function teamStore() {
	/** @type {Map<string, any>} */
	const records = new Map();
	return {
		records,
		teams: async () => [...records.values()],
		team: async (teamId) => records.get(teamId) ?? null,
		keepTeam: async (record) => void records.set(record.teamId, record),
	};
}

/**
 * The calls of a gateway about one team. `serves` may be changed by a test; `posted` has what came.
 */
export function teamGateway() {
	const serves = {
		teamId: "",
		states: [],
		consents: [],
		introductions: [],
		listed: true,
	};
	const posted = [];
	const answer = (path) => {
		const [name, query = ""] = path.split("?");
		if (/^\/v1\/approvers\/[^/]+\/teams$/.test(name))
			return { teams: serves.listed ? [{ teamId: serves.teamId }] : [] };
		const [, teamId, list] = /^\/v1\/teams\/([^/]+)\/(\w+)$/.exec(name) ?? [];
		if (teamId !== serves.teamId) return null;
		if (list !== "states") return { [list]: serves[list] };
		const after = new URLSearchParams(query).get("after");
		return {
			states: serves.states.filter(
				({ statement }) => after === null || statement.seq > Number(after),
			),
		};
	};
	const json = async ({ path }) => {
		const found = answer(path);
		if (found === null)
			throw Problem.of("refused", {
				status: 404,
				code: "NOT_FOUND",
				message: path,
			});
		return parse("answer", canonical(found));
	};
	return {
		serves,
		posted,
		json,
		isAboutTeams: (path) => /\/teams(\/|$)/.test(path.split("?")[0]),
		members: async (call) => ({
			status: 200,
			members: JSON.parse((await json(call)).raw),
		}),
		call: async ({ path, body }) => {
			posted.push({ path, body: JSON.parse(body) });
			return { status: 201, text: "{}" };
		},
	};
}
