// Enforcers that this device knows, and whether they are there.

import { path } from "./gateway.js";

/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./types.js').Agent} Agent */
/** @typedef {import('./types.js').Presence} Presence */

/** @param {unknown} value */
export function textOrNull(value) {
	return typeof value === "string" && value !== "" ? value : null;
}

/**
 * The pinned enforcers, by label. With `readPresence`, the gateway is asked about them.
 * @param {Session} session
 * @param {boolean} readPresence
 * @returns {Promise<Agent[]>}
 */
export async function listAgents(session, readPresence) {
	const trust = await session.trust();
	const agents = [...session.enforcers.values()].map(
		async ({ enforcerId, label, pairedAt, introducedBy, owner }) => ({
			enforcerId,
			label,
			pairedAt,
			introducedBy:
				introducedBy === null
					? null
					: describeIntroducer(trust, introducedBy, owner),
			presence: readPresence ? await presenceOf(session, enforcerId) : null,
		}),
	);
	const name = (/** @type {Agent} */ { label, enforcerId }) =>
		label ?? enforcerId;
	return (await Promise.all(agents)).sort((one, other) =>
		name(one).localeCompare(name(other)),
	);
}

/**
 * @param {import('./statements.js').DeviceTrust} trust
 * @param {string} deviceId
 * @param {string} [owner] of a team
 */
function describeIntroducer(trust, deviceId, owner) {
	const device = trust.inForce.find((bundle) => bundle.deviceId === deviceId);
	return {
		deviceId,
		name: device?.name ?? owner ?? null,
		isRevoked: trust.revoked.has(deviceId),
	};
}

/**
 * @param {Session} session
 * @param {string} enforcerId
 * @returns {Promise<Presence | null>}
 */
async function presenceOf({ client }, enforcerId) {
	const answer = await client.members({
		path: path("v1", "presence", "enforcers", enforcerId),
		expect: [200, 404],
	});
	if (answer.status === 404) return null;
	const { status, lastSeenAt, transport, workspaceName } = answer.members;
	return {
		status: status === "online" ? "online" : "offline",
		lastSeenAt: String(lastSeenAt),
		transport:
			transport === "websocket" || transport === "sse" ? transport : "poll",
		workspaceName: textOrNull(workspaceName),
	};
}
