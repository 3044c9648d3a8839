// Ends the pairing with an enforcer.

import { textOrNull } from "./agents.js";
import { Problem } from "./problem.js";
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
 * says. Here it ends even if the gateway cannot be told.
 * @param {Session} session
 * @param {string} enforcerId
 */
export async function unpair(session, enforcerId) {
	const record = session.enforcers.get(enforcerId);
	if (record === undefined) return;
	const team = await pairedTeam(session, enforcerId);
	await session.unpin(record);
	const direct = await tokenOf(session, enforcerId);
	const { teamId, routingToken } = record;
	const tokens =
		teamId === undefined
			? [direct ?? routingToken]
			: [direct, team?.endsForAll ? routingToken : null];
	for (const token of tokens)
		if (token !== null) await revokePairing(session, token);
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
