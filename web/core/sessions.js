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
	if (isWaiting) return "waiting";
	if (endedAt === null) {
		if (state === "error") return "failed";
		if (state === "idle") return "idle";
	} else if (!(Date.parse(updatedAt) > Date.parse(endedAt))) return "finished";
	// It goes on after its end, so its state is from before.
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
	const read = newest.map(async ({ sessionId, askedAt }) => {
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
				updatedAt: later(String(known.updatedAt), askedAt),
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

/**
 * The gateway takes no reports of a session after its end. That it goes on can be told by its
 * requests.
 * @param {string} reported
 * @param {string | undefined} asked
 */
function later(reported, asked) {
	return asked !== undefined && Date.parse(asked) > Date.parse(reported)
		? asked
		: reported;
}
