// The teams of this person: followed from what this device has pinned, and pinned again. The gateway
// can withhold states. It can neither change one nor put another in its place.

import { parse, Reader } from "./canonical.js";
import { readDevices } from "./devices.js";
import { requireInForce } from "./enrol.js";
import { callDeadline, isRefusedWith, path, patienceUntil } from "./gateway.js";
import { verifies } from "./keys.js";
import { asProblem, Problem } from "./problem.js";
import { parseState, peopleOf, TeamChain } from "./team.js";
import { parseConsent, parseTeamLink, spellConsent } from "./teamconsent.js";

/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./store.js').TeamRecord} TeamRecord */
/** @typedef {import('./types.js').TeamState} TeamState */
/** @typedef {import('./types.js').TeamHead} TeamHead */
/** @typedef {import('./types.js').TeamSeat} TeamSeat */

/** Of the unknown teams that the gateway lists. A gateway that lists more is not followed. */
const MAX_LEARNED = 64;

/**
 * @param {string} teamId
 * @param {...string} more
 */
export function teamPath(teamId, ...more) {
	return path("v1", "teams", teamId, ...more);
}

/** @param {TeamRecord} record */
export async function chainOf({ state, digests }) {
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
 * @param {number} [deadline] of all calls together
 */
async function readOn({ client, subject }, teamId, known, deadline) {
	/**
	 * Devices that have signed the states which the chain took over.
	 * @type {Set<string>}
	 */
	const signers = new Set();
	for (let chain = known; ; ) {
		const before = chain?.newest.seq ?? -1;
		const after = chain === null ? "" : `?after=${before}`;
		const call = { path: teamPath(teamId, "states") + after, expect: [200] };
		const answer = await client.json(within(deadline, call));
		for (const node of new Reader("answer", answer).array("states")) {
			// Verifying takes time too.
			if (deadline !== undefined) patienceUntil(deadline);
			const state = await parseState(node);
			const isFirst = chain === null;
			chain ??= await TeamChain.begin(state);
			if (isFirst || (await chain.follow(state)))
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
 * The call, with no more time than is left.
 * @param {number | undefined} deadline
 * @param {import('./gateway.js').Call} call
 */
export function within(deadline, call) {
	return deadline === undefined
		? call
		: { ...call, patienceMs: patienceUntil(deadline) };
}

/**
 * Pins a chain. Another tab may have read more of it, or another history.
 * @param {Session} session
 * @param {TeamChain} chain
 * @returns {Promise<TeamChain>} as it is known now
 */
async function keep({ store }, chain) {
	const kept = await store.keepTeam(recordOf(chain));
	if (kept.fork !== null)
		throw Problem.of("teamFork", { team: chain.newest.name });
	return kept.digests.length > chain.digests.length ? chainOf(kept) : chain;
}

/**
 * Reads on in a team that is pinned. A fork is kept, and ends it here.
 * @param {Session} session
 * @param {TeamRecord} record
 * @param {number} [deadline] of all calls together
 */
export async function refresh(session, record, deadline) {
	const chain = await chainOf(record);
	if (record.fork !== null)
		throw Problem.of("teamFork", { team: chain.newest.name });
	try {
		await readOn(session, record.teamId, chain, deadline);
	} catch (error) {
		if (error instanceof Problem && error.code === "teamFork")
			await session.store.keepTeam({ ...record, fork: String(error.cause) });
		throw error;
	}
	return keep(session, chain);
}

/**
 * The newest state of a team that a request names. The gateway is asked only if the request knows a
 * newer one than this device, or another device of this person may have joined.
 * @param {Session} session
 * @param {TeamHead} head
 * @param {number} deadline of the search for a team that is not known here
 * @returns {Promise<TeamChain | null>} null: this device takes no part in it
 */
export async function followTo(session, head, deadline) {
	const { teamId } = head;
	const record = await session.store.team(teamId);
	try {
		const chain =
			record === null
				? await adoptAsked(session, teamId, deadline)
				: await readUpTo(session, record, head);
		if (chain === null || chain.knows(head)) return chain;
		throw Problem.of("teamWithheld", { team: chain.newest.name });
	} catch (error) {
		// A team that this person has left, or has not been admitted to, is one of others. An
		// approval that does not name its head does not count for it.
		if (isRefusedWith(error, "NOT_FOUND")) return null;
		throw error;
	}
}

/**
 * @param {Session} session
 * @param {string} teamId
 * @param {number} deadline
 */
async function adoptAsked(session, teamId, deadline) {
	const { chain, isJoined } = await adopt(session, teamId, deadline);
	return isJoined ? chain : null;
}

/**
 * @param {Session} session
 * @param {TeamRecord} record
 * @param {TeamHead} head
 */
async function readUpTo(session, record, head) {
	const chain = await chainOf(record);
	if (record.fork !== null)
		throw Problem.of("teamFork", { team: chain.newest.name });
	return chain.knows(head) ? chain : refresh(session, record);
}

/**
 * The teams that are pinned, by their newest states. One that cannot be read now is not among them.
 * @param {Session} session
 * @param {number} [deadline] of all calls together
 */
export async function renewTeams(session, deadline) {
	const records = await session.store.teams();
	const read = records.map(async (record) => {
		try {
			return [await refresh(session, record, deadline)];
		} catch (error) {
			asProblem(error);
			return [];
		}
	});
	return (await Promise.all(read)).flat();
}

/**
 * The teams that are pinned, as they are now, or as far as they are known here.
 * @param {Session} session
 */
async function readPinned(session) {
	const records = await session.store.teams();
	const read = records.map(async (record) => {
		try {
			const chain = await refresh(session, record);
			return { chain, isForked: false, isGone: false };
		} catch (error) {
			// A forked team is not gone: once it is forgotten, the gateway could show it as if it were whole.
			const isForked = asProblem(error).code === "teamFork";
			const isGone = isRefusedWith(error, "NOT_FOUND");
			return { chain: await chainOf(record), isForked, isGone };
		}
	});
	return Promise.all(read);
}

/**
 * The same, without those that have forked or that this person has left.
 * @param {Session} session
 */
export async function readTeams(session) {
	return (await readPinned(session)).flatMap(({ chain, isForked, isGone }) =>
		isForked || isGone ? [] : [chain],
	);
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
	const pinned = await readPinned(session);
	const { trust } = await readDevices(session);
	return pinned.map(({ chain, isForked, isGone }) => {
		const team = chain.newest;
		const own = isGone ? null : ownSeat(session, team);
		const { approverId } = session.identity;
		const seat = team.seats.find((it) => it.approverId === approverId);
		return {
			team,
			isForked,
			isGone,
			isOnSeat: own !== null,
			missing: trust.inForce.filter(
				({ deviceId }) => own && !hasDevice(own, deviceId),
			),
			revoked: (seat?.devices ?? []).filter(({ deviceId }) =>
				trust.revoked.has(deviceId),
			),
		};
	});
}

/**
 * Forgets a team on this browser. A new invitation brings it back.
 * @param {Session} session
 * @param {string} teamId
 */
export async function forgetTeam({ store }, teamId) {
	await store.removeTeam(teamId);
}

/**
 * Takes part in the teams that other devices of this person have joined, as far as they can be read
 * in the time of one call: others can seat this person in teams of theirs.
 * @param {Session} session
 * @returns {Promise<Problem[]>} why a listed team may count a device of this person unnoticed
 */
export async function learnTeams(session) {
	const { client, identity, store } = session;
	const deadline = callDeadline();
	const call = {
		path: path("v1", "approvers", identity.approverId, "teams"),
		// An older gateway knows no teams.
		expect: [200, 404],
	};
	const { members } = await client.members(within(deadline, call));
	const listed = Array.isArray(members.teams) ? members.teams : [];
	const known = new Set((await store.teams()).map(({ teamId }) => teamId));
	const ids = listed.map((/** @type {any} */ team) => String(team?.teamId));
	const unknown = ids.filter((/** @type {string} */ id) => !known.has(id));
	/** @type {Problem[]} */
	const notices = [];
	/** @type {Problem | null} */
	let problem =
		unknown.length > MAX_LEARNED
			? Problem.of("answer", { expected: "teams" })
			: null;
	for (const teamId of unknown.slice(0, MAX_LEARNED)) {
		try {
			const { chain, isJoined } = await adopt(session, teamId, deadline);
			const { name, seats } = chain.newest;
			const isIn = peopleOf({ seats }).some(
				({ approverId }) => approverId === identity.approverId,
			);
			if (!isJoined && isIn)
				notices.push(Problem.of("teamNotJoined", { team: name }));
		} catch (error) {
			if (!isRefusedWith(error, "NOT_FOUND")) problem ??= asProblem(error);
		}
	}
	if (problem !== null) notices.push(Problem.of("teamsUnread", { problem }));
	return notices;
}

/**
 * Pins a team if a device that this one trusts has signed a state of it, or a consent: the gateway
 * cannot put anybody into a team of its own.
 * @param {Session} session
 * @param {string} teamId
 * @param {number} deadline of all calls together
 * @returns {Promise<{ chain: TeamChain, isJoined: boolean }>} not joined: no device of this person has
 *   agreed to be in it
 */
async function adopt(session, teamId, deadline) {
	const { chain, signers } = await readOn(session, teamId, null, deadline);
	const trust = await session.trust();
	const isVouched =
		trust.inForce.some(({ deviceId }) => signers.has(deviceId)) ||
		(await hasConsent(session, teamId, trust, deadline));
	return isVouched
		? { chain: await keep(session, chain), isJoined: true }
		: { chain, isJoined: false };
}

/**
 * Whether a device of this person has signed that the person joins a team.
 * @param {Session} session
 * @param {string} teamId
 * @param {import('./statements.js').DeviceTrust} trust
 * @param {number} deadline
 */
async function hasConsent({ client, subject }, teamId, trust, deadline) {
	const call = { path: teamPath(teamId, "consents"), expect: [200] };
	const answer = await client.json(within(deadline, call));
	const nodes = new Reader("answer", answer).array("consents");
	const checks = nodes.map(async (node) => {
		const consent = await parseConsent(node);
		const isAbout =
			consent.teamId === teamId &&
			consent.approverId === subject.approverId &&
			consent.tenantId === subject.tenantId;
		const device = trust.device(consent.by);
		return isAbout && verifies(device, consent.text, consent.signature);
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
	const endsFork = known !== null && known.fork !== null;
	const reading =
		known === null || endsFork
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
			await session.store.keepTeam(recordOf(chain), endsFork);
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
 * @param {TeamState} team
 */
export function ownSeat({ identity }, { seats }) {
	const seat = seats.find((it) => it.approverId === identity.approverId);
	return seat && hasDevice(seat, identity.deviceId) ? seat : null;
}
