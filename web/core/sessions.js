// Sessions that an enforcer reports.

import { textOrNull } from "./agents.js";
import { path } from "./gateway.js";

/** @typedef {import('./session.js').Session} Session */

/** An agent that works says so more often. */
const QUIET_MS = 15 * 60_000;

/**
 * What a session does, as a person would say it. The gateway may be told late, or never, that a
 * request has ended: it waits for a person only while a request of it is open.
 * @param {Pick<import('./types.js').Session, 'state' | 'endedAt' | 'updatedAt'>} session
 * @param {boolean} isWaiting
 * @param {number} now
 * @returns {keyof typeof import('../texts/inbox.js').inboxTexts.sessionWords}
 */
export function sessionWord({ state, endedAt, updatedAt }, isWaiting, now) {
	if (endedAt !== null) return "finished";
	if (isWaiting) return "waiting";
	if (state === "error") return "failed";
	if (state === "idle") return "idle";
	const isQuiet = !(now - Date.parse(updatedAt) < QUIET_MS);
	return isQuiet ? "quiet" : "working";
}

/**
 * @param {Session} session
 * @param {string} enforcerId
 * @returns {Promise<import('./types.js').Session[]>}
 */
export async function readSessions({ client, store }, enforcerId) {
	const seen = (await store.sessions()).filter(
		(record) => record.enforcerId === enforcerId,
	);
	const newest = seen
		.sort((one, other) => (one.seenAt < other.seenAt ? 1 : -1))
		.slice(0, 20);
	const read = newest.map(async ({ sessionId }) => {
		const { status, members: known } = await client.members({
			path: path("v1", "session", sessionId),
			expect: [200, 404],
		});
		if (status === 404 || known.enforcerId !== enforcerId) return [];
		const text = (/** @type {string} */ name) => textOrNull(known[name]);
		return [
			{
				sessionId,
				enforcerId,
				state: String(known.state),
				agentHost: text("agentHost"),
				repoRef: text("repoRef"),
				startedAt: text("startedAt"),
				updatedAt: String(known.updatedAt),
				endedAt: text("endedAt"),
				reason: text("reason"),
				snapshots: (Array.isArray(known.snapshots) ? known.snapshots : []).map(
					(/** @type {any} */ snapshot) => ({
						snapshotId: String(snapshot?.snapshotId),
						snapshotType: String(snapshot?.snapshotType),
						createdAt: String(snapshot?.createdAt),
					}),
				),
			},
		];
	});
	return (await Promise.all(read)).flat();
}
