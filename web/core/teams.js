// The teams of this person: followed from what this device has pinned, and pinned again. The gateway
// can withhold states. It can neither change one nor put another in its place.

import { canonicalNode, parse, Reader } from "./canonical.js";
import { readDevices } from "./devices.js";
import { requireInForce } from "./enrol.js";
import { isRefusedWith, path } from "./gateway.js";
import { verifies } from "./keys.js";
import { Problem } from "./problem.js";
import { readSignature } from "./statements.js";
import { parseState, TeamChain } from "./team.js";
import { parseTeamLink, spellConsent } from "./teamconsent.js";

/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./store.js').TeamRecord} TeamRecord */
/** @typedef {import('./types.js').Team} Team */
/** @typedef {import('./types.js').TeamHead} TeamHead */
/** @typedef {import('./types.js').TeamSeat} TeamSeat */

/**
 * @param {string} teamId
 * @param {...string} more
 */
export function teamPath(teamId, ...more) {
	return path("v1", "teams", teamId, ...more);
}

/** @param {TeamRecord} record */
async function chainOf({ state, digests }) {
	return new TeamChain(await parseState(parse("team", state)), digests);
}

/** @param {TeamChain} chain */
export function recordOf({ newest, digests }) {
	return { teamId: newest.teamId, state: newest.raw, digests, fork: null };
}

/**
 * The gateway's states after those that are known, followed one by one.
 * @param {Session} session
 * @param {string} teamId
 * @param {TeamChain | null} known null: from the first one on
 */
async function readOn({ client, subject }, teamId, known) {
	/** Devices that have signed what was read. */
	const signers = new Set();
	for (let chain = known; ; ) {
		const before = chain?.newest.seq ?? -1;
		const after = chain === null ? "" : `?after=${before}`;
		const call = { path: teamPath(teamId, "states") + after, expect: [200] };
		const nodes = new Reader("answer", await client.json(call)).array("states");
		for (const node of nodes) {
			const state = await parseState(node);
			if (chain === null) chain = await TeamChain.begin(state);
			else await chain.follow(state);
			for (const { by } of state.signatures) signers.add(by);
		}
		const isSame =
			chain?.newest.teamId === teamId &&
			chain.newest.tenantId === subject.tenantId;
		if (chain === null || !isSame)
			throw Problem.of("teamState", { reason: "another team" });
		// A gateway that repeats itself is not followed for ever.
		if (chain.newest.seq === before) return { chain, signers };
	}
}

/**
 * Reads on in a team that is pinned. A fork is kept, and ends it here.
 * @param {Session} session
 * @param {TeamRecord} record
 */
export async function refresh(session, record) {
	const chain = await chainOf(record);
	if (record.fork !== null)
		throw Problem.of("teamFork", { team: chain.newest.name });
	try {
		await readOn(session, record.teamId, chain);
	} catch (error) {
		if (error instanceof Problem && error.code === "teamFork")
			await session.store.keepTeam({ ...record, fork: String(error.cause) });
		throw error;
	}
	await session.store.keepTeam(recordOf(chain));
	return chain;
}

/**
 * The newest state of a team that a request names. The gateway is asked only if the request knows a
 * newer one than this device.
 * @param {Session} session
 * @param {TeamHead} head
 * @returns {Promise<TeamChain | null>} null: this device takes no part in it
 */
export async function followTo(session, head) {
	const record = await session.store.team(head.teamId);
	if (record === null) return null;
	let chain = await chainOf(record);
	const team = chain.newest.name;
	if (record.fork !== null) throw Problem.of("teamFork", { team });
	if (!chain.knows(head)) chain = await refresh(session, record);
	if (!chain.knows(head)) throw Problem.of("teamWithheld", { team });
	return chain;
}

/**
 * The teams that are pinned, as they are now, or as far as they are known here. Those that have
 * forked are left out.
 * @param {Session} session
 */
export async function readTeams(session) {
	const records = await session.store.teams();
	const read = records.map(async (record) => {
		try {
			return [await refresh(session, record)];
		} catch (error) {
			if (!(error instanceof Problem)) throw error;
			return error.code === "teamFork" ? [] : [await chainOf(record)];
		}
	});
	return (await Promise.all(read)).flat();
}

/**
 * The names of the teams that are pinned, by their ids.
 * @param {Session} session
 */
export async function teamNames({ store }) {
	const chains = await Promise.all((await store.teams()).map(chainOf));
	return Object.fromEntries(
		chains.map(({ newest }) => [newest.teamId, newest.name]),
	);
}

/**
 * The teams as a person reads about them.
 * @param {Session} session
 * @returns {Promise<import('./types.js').ListedTeam[]>}
 */
export async function listTeams(session) {
	await learnTeams(session);
	const current = await readTeams(session);
	const { trust } = await readDevices(session);
	const listed = (await session.store.teams()).map(async (record) => {
		const chain = current.find(({ newest }) => newest.teamId === record.teamId);
		const team = (chain ?? (await chainOf(record))).newest;
		const own = ownSeat(session, team);
		const { approverId } = session.identity;
		const seat = team.seats.find((it) => it.approverId === approverId);
		return {
			team,
			isForked: chain === undefined,
			isOnSeat: own !== null,
			missing: trust.inForce.filter(
				({ deviceId }) => own && !hasDevice(own, deviceId),
			),
			revoked: (seat?.devices ?? []).filter(({ deviceId }) =>
				trust.revoked.has(deviceId),
			),
		};
	});
	return Promise.all(listed);
}

/**
 * Pins the teams that the gateway lists for this person, if a device that this one trusts has
 * signed a state of it, or a consent: the gateway cannot put anybody into a team of its own.
 * @param {Session} session
 */
export async function learnTeams(session) {
	const { client, identity, store } = session;
	const call = {
		path: path("v1", "approvers", identity.approverId, "teams"),
		// An older gateway knows no teams.
		expect: [200, 404],
	};
	const { members } = await client.members(call);
	const ids = Array.isArray(members.teams)
		? members.teams.map((/** @type {any} */ team) => String(team?.teamId))
		: [];
	const trust = await session.trust();
	for (const teamId of ids) {
		if ((await store.team(teamId)) !== null) continue;
		try {
			const { chain, signers } = await readOn(session, teamId, null);
			const isVouched =
				trust.inForce.some(({ deviceId }) => signers.has(deviceId)) ||
				(await hasConsent(session, teamId, trust));
			if (isVouched) await store.keepTeam(recordOf(chain));
		} catch (error) {
			if (!(error instanceof Problem)) throw error;
		}
	}
}

/**
 * Whether a device of this person has signed that the person joins a team.
 * @param {Session} session
 * @param {string} teamId
 * @param {import('./statements.js').DeviceTrust} trust
 */
async function hasConsent({ client, subject }, teamId, trust) {
	const call = { path: teamPath(teamId, "consents"), expect: [200] };
	const nodes = new Reader("answer", await client.json(call)).array("consents");
	const checks = nodes.map(async (node) => {
		const signed = new Reader("team", node);
		const inner = signed.object("statement");
		const consent = new Reader("team", inner, "/statement");
		const isAbout =
			consent.string("statement") === "team.consent" &&
			consent.string("teamId") === teamId &&
			consent.string("approverId") === subject.approverId &&
			consent.string("tenantId") === subject.tenantId;
		const device = trust.device(consent.string("by"));
		const signature = readSignature(signed.string("signature"));
		return isAbout && verifies(device, canonicalNode(inner), signature);
	});
	const results = await Promise.allSettled(checks);
	return results.some((it) => it.status === "fulfilled" && it.value);
}

/**
 * Reads an invitation, and verifies the team that it is to. Nothing is signed before `accept`.
 * @param {Session} session
 * @param {string} text
 */
export async function readTeamLink(session, text) {
	const link = parseTeamLink(text);
	await requireInForce(session);
	const known = await session.store.team(link.teamId);
	// A fork ends with a new invitation. Otherwise nothing older than what is known here is shown.
	const isNew = known === null || known.fork !== null;
	const reading = isNew
		? readOn(session, link.teamId, null).then((read) => read.chain)
		: refresh(session, known);
	const chain = await reading.catch((error) => {
		throw isRefusedWith(error, "NOT_FOUND")
			? Problem.of("noSuchInvitation", {}, error)
			: error;
	});
	return {
		team: chain.newest,
		accept: async () => {
			const { inForce } = (await readDevices(session)).trust;
			const { subject, keys } = session;
			const at = session.timestamp();
			await session.client.call({
				method: "POST",
				path: teamPath(link.teamId, "consents"),
				body: await spellConsent(link, subject, inForce, at, keys),
				expect: [200, 201],
			});
			await session.store.keepTeam(recordOf(chain), isNew);
		},
	};
}

/**
 * @param {Pick<TeamSeat, 'devices'>} seat
 * @param {string} deviceId
 */
export function hasDevice({ devices }, deviceId) {
	return devices.some((device) => device.deviceId === deviceId);
}

/**
 * The seat of this person, if this device is on it.
 * @param {Session} session
 * @param {Team} team
 */
export function ownSeat({ identity }, { seats }) {
	const seat = seats.find((it) => it.approverId === identity.approverId);
	return seat && hasDevice(seat, identity.deviceId) ? seat : null;
}
