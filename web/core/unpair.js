// Ends the pairing with an enforcer.

import { textOrNull } from "./agents.js";
import { Problem } from "./problem.js";

/** @typedef {import('./session.js').Session} Session */

/** More pairings than anyone has: a gateway that pages for ever is stopped. */
const MAX_PAGES = 100;

/**
 * Ends a pairing, here and at the gateway, there for all devices. Here it ends even if the gateway
 * cannot be told.
 * @param {Session} session
 * @param {string} enforcerId
 */
export async function unpair(session, enforcerId) {
	const record = session.enforcers.get(enforcerId);
	if (record === undefined) return;
	await session.unpin(record);
	const token = (await tokenOf(session, enforcerId)) ?? record.routingToken;
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
