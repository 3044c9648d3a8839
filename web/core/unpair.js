// Ends the pairing with an enforcer.

import { textOrNull } from "./agents.js";
import { isRefusedWith } from "./gateway.js";
import { asProblem, Problem } from "./problem.js";
import { peopleOf } from "./team.js";
import { chainOf } from "./teams.js";

/** @typedef {import('./session.js').Session} Session */

/** More pairings than anyone has: a gateway that pages for ever is stopped. */
const MAX_PAGES = 100;

/**
 * The team through which an enforcer asks this person, as far as this device knows.
 * @param {Session} session
 * @param {string} enforcerId
 * @returns {Promise<import('./types.js').PairedTeam | null>}
 */
export async function pairedTeam({ enforcers, identity, store }, enforcerId) {
	const { teamId, introducedBy } = enforcers.get(enforcerId) ?? {};
	const record = teamId === undefined ? null : await store.team(teamId);
	if (record === null) return null;
	const { name, seats } = (await chainOf(record)).newest;
	const isOwn = (/** @type {{ approverId: string }} */ { approverId }) =>
		approverId === identity.approverId;
	if (!peopleOf({ seats }).some(isOwn)) return null;
	const isOwner = seats.some((seat) => isOwn(seat) && seat.isOwner);
	// Only the device that paired it has the token, and the gateway takes that from owners alone.
	return { name, endsForAll: introducedBy === null && isOwner };
}

/**
 * Ends a pairing, here and at the gateway, there for all devices, and for a team as `pairedTeam`
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
	const team = await pairedTeam(session, enforcerId);
	const { teamId, routingToken } = record;
	const isOwn = teamId === undefined || team?.endsForAll;
	const tokens = isOwn && routingToken !== null ? [routingToken] : [];
	const untold = { tokens, isOfTeam: teamId !== undefined, isUnread: true };
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
		if (untold === undefined || untold.tokens.length === 0) continue;
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
 * @param {import('./records.js').UntoldEnd} untold
 * @param {boolean} readsList whether the list is asked for another token too
 */
async function tellEnd(session, enforcerId, untold, readsList) {
	/** @type {Problem | null} */
	let failure = null;
	let { tokens, isUnread } = untold;
	const { isOfTeam } = untold;
	if (readsList)
		try {
			const direct = await tokenOf(session, enforcerId);
			// Another device may have paired last.
			if (direct !== null) tokens = [direct, ...(isOfTeam ? tokens : [])];
			isUnread = false;
		} catch (error) {
			failure = asProblem(error);
		}
	/** @type {string[]} */
	const left = [];
	for (const token of new Set(tokens)) {
		try {
			await revokePairing(session, token);
		} catch (error) {
			failure ??= asProblem(error);
			// Otherwise it has ended already.
			if (!isRefusedWith(error, "NOT_FOUND")) left.push(token);
		}
	}
	const isTold = left.length === 0 && !isUnread;
	const now = isTold ? undefined : { tokens: left, isOfTeam, isUnread };
	await session.store.keepUntold(enforcerId, now);
	if (failure !== null) throw failure;
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
