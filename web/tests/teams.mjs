// Teams for tests: their states, and a gateway that serves what a test wants.

import { Approver } from "../core/approver.js";
import {
	randomBytes,
	sha256,
	toBase64url,
	toHex,
	utf8,
} from "../core/bytes.js";
import { canonical, parse, spellTime } from "../core/canonical.js";
import { spellIntroduction } from "../core/introduction.js";
import { sign } from "../core/keys.js";
import { Problem } from "../core/problem.js";
import { extendTeam } from "../core/records.js";
import { open, parseCiphertext } from "../core/seal.js";
import { DeviceTrust } from "../core/statements.js";
import { parseState, TeamChain } from "../core/team.js";
import { newDevice, request, scene } from "./hostile.mjs";
import { RULE } from "./rules.mjs";

globalThis.WebSocket ??= { OPEN: 1 };

export const AT = "2026-01-01T00:00:00Z";
export const APPROVE = { verdict: "approve" };
export const HOUR = 60 * 60 * 1000;

export const [owner, bob, carol] = await Promise.all(
	["owner", "bob", "carol"].map((name) => newDevice(name)),
);

export const refused = (code) => (error) => error.code === code;

/** The time of a stand-in, from now on. */
export const away = (from, until) => ({
	from: spellTime(Math.floor((Date.now() + from) / 1000) * 1000),
	until: spellTime(Math.floor((Date.now() + until) / 1000) * 1000),
});

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

/** The part of a store that keeps teams. */
export function teamStore() {
	/** @type {Map<string, any>} */
	const records = new Map();
	return {
		records,
		teams: async () => [...records.values()],
		team: async (teamId) => records.get(teamId) ?? null,
		keepTeam: async (record, endsFork = false) => {
			const before = records.get(record.teamId);
			const now = extendTeam(before, record, endsFork);
			records.set(record.teamId, now);
			return now;
		},
		removeTeam: async (teamId) => void records.delete(teamId),
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
		/** Those of the own devices. */
		own: [],
		listed: true,
	};
	const posted = [];
	const answer = (path) => {
		const [name, query = ""] = path.split("?");
		if (/^\/v1\/approvers\/[^/]+\/teams$/.test(name))
			return { teams: serves.listed ? [{ teamId: serves.teamId }] : [] };
		if (name.endsWith("/alice/introductions"))
			return { introductions: serves.own };
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
		isAnswered: (path) =>
			/\/teams(\/|$)|\/introductions$/.test(path.split("?")[0]),
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

/** A team of an owner, alice, whose device this is, and bob; and a gateway that serves it. */
export async function teamScene({ seats, ...content } = {}) {
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
	Object.assign(session, {
		reload: async () => {},
		pin: async (record) =>
			void session.enforcers.set(record.enforcerId, record),
		drop: async (enforcerId) => void session.enforcers.delete(enforcerId),
	});
	const { json, call } = session.client;
	Object.assign(session.client, {
		json: (it) => (gateway.isAnswered(it.path) ? gateway.json(it) : json(it)),
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
	/** These devices of the person are in force beside this one, and others may be revoked. */
	const trusts = (...others) => {
		const devices = [device, ...others].map(({ bundle }) => bundle);
		let kept = new DeviceTrust(session.subject, devices);
		session.trust = async () => {
			const trust = new DeviceTrust(session.subject, kept.inForce);
			for (const deviceId of kept.revoked) trust.revoke(deviceId);
			return trust;
		};
		session.remember = async (trust) => {
			kept = trust;
		};
	};
	/** Then the gateway shows the team no more. */
	const leave = () => {
		gateway.serves.teamId = "";
	};
	return {
		...made,
		...gateway,
		first,
		chain,
		store,
		pin,
		asks,
		trusts,
		leave,
	};
}

export const KEY = "CQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/** An enforcer that this device knows; by default it was paired here, with this person alone. */
export const recordOf = (enforcerId, further = {}) => ({
	enforcerId,
	key: KEY,
	label: null,
	pairedAt: AT,
	routingToken: null,
	introducedBy: null,
	...further,
});

/** The introduction of an enforcer to a team, by a device of somebody; without a team, to the own devices. */
export async function introductionOf(
	keys,
	approverId,
	teamId,
	enforcerId = "ci",
	{ tenantId = "t", ...further } = {},
) {
	const text = spellIntroduction(
		{ tenantId, approverId },
		recordOf(enforcerId, further),
		keys.bundle.deviceId,
		teamId,
	);
	return { signature: await sign(keys, text), statement: JSON.parse(text) };
}

/** An approver on this device. `sent` has the calls that change something. */
export async function approverOf({ session }) {
	session.tabs = { postMessage() {}, close() {} };
	const sent = [];
	const { call } = session.client;
	session.client.call = async (it) => {
		sent.push(`${it.method} ${it.path.split("/").at(-1)}`);
		return it.path.includes("/devices/") ? {} : call(it);
	};
	return { approver: new Approver(session), sent };
}

/** The hints that a sent decision has, as the enforcer opens them. */
export async function hintsOf({ sent, device, enforcers }) {
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
