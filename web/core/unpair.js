// Ends the pairing with an enforcer.

import { textOrNull } from "./agents.js";
import { isRefusedWith } from "./gateway.js";
import { asProblem, Problem } from "./problem.js";
import { heldPairings } from "./records.js";
import { peopleOf } from "./team.js";
import { chainOf } from "./teams.js";

/** @typedef {import('./records.js').EnforcerRecord} EnforcerRecord */
/** @typedef {import('./records.js').UntoldEnd} UntoldEnd */
/** @typedef {import('./session.js').Session} Session */

/** More pairings than anyone has: a gateway that pages for ever is stopped. */
const MAX_PAGES = 100;

/**
 * The teams through which an enforcer asks this person, as far as this device knows.
 * @param {Session} session
 * @param {string} enforcerId
 * @returns {Promise<import('./types.js').PairedTeam[]>}
 */
export async function pairedTeams(session, enforcerId) {
	const record = session.enforcers.get(enforcerId);
	return record === undefined ? [] : teamsOf(session, record);
}

/**
 * @param {Session} session
 * @param {EnforcerRecord} record
 */
async function teamsOf({ identity, store }, record) {
	const held = heldPairings(record).map(({ teamId }) => teamId);
	/** @type {import('./types.js').PairedTeam[]} */
	const teams = [];
	for (const teamId of new Set([record.teamId, ...held])) {
		const known = teamId === undefined ? null : await store.team(teamId);
		if (known === null) continue;
		const { name, seats } = (await chainOf(known)).newest;
		const isOwn = (/** @type {{ approverId: string }} */ { approverId }) =>
			approverId === identity.approverId;
		if (!peopleOf({ seats }).some(isOwn)) continue;
		const isOwner = seats.some((seat) => isOwn(seat) && seat.isOwner);
		// Only the device that paired it has the token, and the gateway takes that from owners alone.
		const endsForAll = isOwner && held.includes(teamId);
		teams.push({ teamId: known.teamId, name, endsForAll });
	}
	return teams;
}

/**
 * Ends a pairing, here and at the gateway, there for all devices, and for teams as `pairedTeams`
 * says. Here it ends even if the gateway cannot be told. Then that is the problem, and a repeated
 * call or `tellUnpaired` tells it.
 * @param {Session} session
 * @param {string} enforcerId
 */
export async function unpair(session, enforcerId) {
	const { enforcers, store } = session;
	const record = enforcers.get(enforcerId);
	if (record === undefined) {
		const ended = await store.unpaired();
		const { untold } = ended.find((it) => it.enforcerId === enforcerId) ?? {};
		if (untold) await tellEnd(session, enforcerId, untold, untold.isUnread);
		return;
	}
	const teams = await teamsOf(session, record);
	const held = heldPairings(record);
	const ending = held.filter(({ teamId }) =>
		teams.some((team) => team.teamId === teamId && team.endsForAll),
	);
	const direct = held.find(({ teamId }) => teamId === undefined)?.token ?? null;
	const tokens = ending.map(({ token }) => token);
	const untold = { tokens, direct, isUnread: true };
	await session.unpin(record, untold);
	await tellEnd(session, enforcerId, untold, true);
}

/**
 * Tells the gateway of pairings that were ended here while it was away. Only tokens that are known from
 * before: the list may have that of a newer pairing.
 * @param {Session} session
 */
export async function tellUnpaired(session) {
	/** @type {Problem | null} */
	let failure = null;
	for (const { enforcerId, untold } of await session.store.unpaired()) {
		if (untold === undefined || tokensOf(untold).length === 0) continue;
		try {
			await tellEnd(session, enforcerId, untold, false);
		} catch (error) {
			failure ??= asProblem(error);
		}
	}
	if (failure !== null) throw failure;
}

/**
 * Tries all tokens, keeps those that the gateway could not be told, and throws the first problem only
 * then.
 * @param {Session} session
 * @param {string} enforcerId
 * @param {UntoldEnd} untold
 * @param {boolean} readsList whether the list is asked for another token too
 */
async function tellEnd(session, enforcerId, untold, readsList) {
	/** @type {Problem | null} */
	let failure = null;
	let { direct, isUnread } = untold;
	if (readsList)
		try {
			direct = (await tokenOf(session, enforcerId)) ?? direct;
			isUnread = false;
		} catch (error) {
			failure = asProblem(error);
		}
	/** @type {Set<string>} */
	const left = new Set();
	for (const token of tokensOf({ ...untold, direct })) {
		try {
			await revokePairing(session, token);
		} catch (error) {
			failure ??= asProblem(error);
			// Otherwise it has ended already.
			if (!isRefusedWith(error, "NOT_FOUND")) left.add(token);
		}
	}
	const isTold = left.size === 0 && !isUnread;
	const now = isTold
		? undefined
		: leftOf({ ...untold, direct, isUnread }, left);
	await session.store.keepUntold(enforcerId, now);
	if (failure !== null) throw failure;
}

/** @param {UntoldEnd} untold */
function tokensOf({ tokens, direct }) {
	return direct === null ? tokens : [direct, ...tokens];
}

/**
 * @param {UntoldEnd} untold
 * @param {Set<string>} left the tokens that the gateway could not be told
 * @returns {UntoldEnd}
 */
function leftOf({ tokens, direct, isUnread }, left) {
	return {
		tokens: tokens.filter((token) => left.has(token)),
		direct: direct !== null && left.has(direct) ? direct : null,
		isUnread,
	};
}

/**
 * The token of the pairing as it is now: another device may have paired last.
 * @param {Session} session
 * @param {string} enforcerId
 * @returns {Promise<string | null>}
 */
async function tokenOf({ client, identity }, enforcerId) {
	let cursor = "";
	for (let page = 0; page < MAX_PAGES; page += 1) {
		const from = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
		const { members } = await client.members({
			path: `/v1/pairings?limit=100${from}`,
			expect: [200],
		});
		const { items, nextCursor } = members;
		if (!Array.isArray(items))
			throw Problem.of("answer", { expected: "items" });
		const found = items.find(
			(line) =>
				line?.enforcerId === enforcerId &&
				line.approverId === identity.approverId &&
				// That of a team has none.
				textOrNull(line.routingToken) !== null,
		);
		if (found !== undefined) return textOrNull(found.routingToken);
		if (typeof nextCursor !== "string" || nextCursor === cursor) return null;
		cursor = nextCursor;
	}
	return null;
}

/**
 * @param {Session} session
 * @param {string} routingToken
 */
export async function revokePairing({ client }, routingToken) {
	const body = JSON.stringify({ routingToken });
	await client.call({
		method: "POST",
		path: "/v1/pairing/revoke",
		body,
		expect: [200],
	});
}
