// Orders of this device to an enforcer: end a permission, pause the agent, let it go on. And the
// permissions that this device gave, with their uses.

import { parseArtifact } from "./artifact.js";
import { toHex, utf8, uuidv7 } from "./bytes.js";
import { canonical, spellTime } from "./canonical.js";
import { describeDecision } from "./exchange.js";
import { path } from "./gateway.js";
import { sign } from "./keys.js";
import { Problem } from "./problem.js";
import { postPrompt, readPrompt, sealContent } from "./prompts.js";
import { RANDOM } from "./seal.js";

/** @typedef {import('./keys.js').DeviceKeys} DeviceKeys */
/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./store.js').DecisionRecord} DecisionRecord */
/** @typedef {import('./types.js').GivenGrant} GivenGrant */
/** @typedef {import('./types.js').GrantUses} GrantUses */
/** @typedef {import('./types.js').SentOrder} SentOrder */

/** An order that comes later has no effect. */
const LASTS_MS = 2 * 24 * 60 * 60 * 1000;
const PAUSE_SECONDS = 60 * 60;
const MAX_PAUSE_SECONDS = 24 * 60 * 60;
const MOST_DECISIONS = 500;

/**
 * @typedef {{ order: 'grant.end', requestId: string }
 *   | { order: 'agent.pause', until: string, sessionId?: string }
 *   | { order: 'agent.resume', sessionId?: string }} Order
 */

/**
 * An order with the signature of this device.
 * @param {DeviceKeys} keys
 * @param {{ tenantId: string, approverId: string, enforcerId: string, at: string }} parties
 * @param {Order} order
 */
export async function signOrder(keys, parties, order) {
	const statement = {
		v: 1,
		statement: "enforcer.control",
		...parties,
		...order,
		by: keys.bundle.deviceId,
	};
	return { statement, signature: await sign(keys, canonical(statement)) };
}

/**
 * @param {Session} session
 * @param {string} enforcerId
 * @param {Order} order
 * @returns {Promise<SentOrder>}
 */
async function sendOrder(session, enforcerId, order) {
	const enforcer = session.pinned(enforcerId);
	if (enforcer === null) throw Problem.of("notPaired", {});
	const { keys, subject } = session;
	const at = session.timestamp();
	const control = await signOrder(keys, { ...subject, enforcerId, at }, order);
	const requestId = uuidv7(Date.now());
	const { body, receipt } = await sealContent(
		keys,
		subject.approverId,
		enforcer,
		{ requestId, createdAt: at, sessionId: null },
		{ control },
		RANDOM,
	);
	const sent = await postPrompt(session, enforcerId, requestId, body, LASTS_MS);
	return { ...sent, expects: receipt };
}

/**
 * Whether the agent's machine itself says that it has obeyed. The gateway cannot know the receipt.
 * @param {SentOrder} sent
 */
export function isConfirmed({ status, receipt, expects }) {
	return status === "delivered" && receipt === expects;
}

/**
 * The state of an order.
 * @param {Session} session
 * @param {SentOrder} sent
 * @returns {Promise<SentOrder>}
 */
export async function readOrder(session, sent) {
	return { ...(await readPrompt(session, sent)), expects: sent.expects };
}

/** @typedef {Record<string, string>} Pauses the end of each pause, by the enforcer's id */

/**
 * The pauses that this device has ordered, and that are not over.
 * @param {Session} session
 * @returns {Promise<Pauses>}
 */
export async function readPauses({ store }) {
	/** @type {Pauses} */
	const pauses =
		(await store.on("profile", "readonly", (table) => table.get("pauses"))) ??
		{};
	return Object.fromEntries(
		Object.entries(pauses).filter(
			([, until]) => Date.parse(until) > Date.now(),
		),
	);
}

/**
 * @param {Session} session
 * @param {string} enforcerId
 * @param {string | null} until null: it is over
 */
async function keepPause(session, enforcerId, until) {
	const { [enforcerId]: _, ...others } = await readPauses(session);
	const pauses = until === null ? others : { ...others, [enforcerId]: until };
	await session.store.on("profile", "readwrite", (table) =>
		table.put(pauses, "pauses"),
	);
}

/**
 * Stops an agent for a while: every call that would be asked is denied at once, and permissions are
 * not used. It counts from the agent's next call on.
 * @param {Session} session
 * @param {string} enforcerId
 * @param {{ seconds?: number, sessionId?: string | null }} [options] at most 24 hours; a session of
 *   the agent, or all of them
 * @returns {Promise<SentOrder>}
 */
export async function pauseAgent(session, enforcerId, options = {}) {
	const { seconds = PAUSE_SECONDS, sessionId = null } = options;
	const lasts = Math.min(seconds, MAX_PAUSE_SECONDS);
	const until = spellTime(Date.parse(session.timestamp()) + lasts * 1000);
	const sent = await sendOrder(session, enforcerId, {
		order: "agent.pause",
		until,
		...(sessionId === null ? {} : { sessionId }),
	});
	if (sessionId === null) await keepPause(session, enforcerId, until);
	return sent;
}

/**
 * Ends the pauses of an agent that this approver ordered, on any device.
 * @param {Session} session
 * @param {string} enforcerId
 * @returns {Promise<SentOrder>}
 */
export async function resumeAgent(session, enforcerId) {
	const sent = await sendOrder(session, enforcerId, { order: "agent.resume" });
	await keepPause(session, enforcerId, null);
	return sent;
}

/**
 * Ends a permission that this device gave.
 * @param {Session} session
 * @param {GivenGrant} given
 * @returns {Promise<SentOrder>}
 */
export async function endGrant(session, { requestId, enforcerId }) {
	const sent = await sendOrder(session, enforcerId, {
		order: "grant.end",
		requestId,
	});
	await noteEnd(session, requestId, sent);
	return sent;
}

/**
 * @param {Session} session
 * @param {string} requestId
 * @param {SentOrder} sent
 */
export async function noteEnd({ store }, requestId, sent) {
	const record = await store.decision(requestId);
	if (record === null) return;
	const at = record.ended?.at ?? new Date().toISOString();
	await store.keepDecision({
		...record,
		ended: { ...sent, at, isConfirmed: isConfirmed(sent) },
	});
}

/**
 * The permissions to an agent that this device knows, and that have not ended by themselves.
 * @param {Session} session
 * @param {string} enforcerId
 * @returns {Promise<GivenGrant[]>}
 */
export async function readGrants(session, enforcerId) {
	const records = await session.store.decisions(null, MOST_DECISIONS);
	const given = await Promise.all(
		records
			.filter((record) => record.enforcerId === enforcerId)
			.map((record) => describeGrant(session, record)),
	);
	return given.flatMap((grant) => grant ?? []);
}

/**
 * @param {Session} session
 * @param {DecisionRecord} record
 * @returns {Promise<GivenGrant | null>} null if it permits nothing any more
 */
async function describeGrant(session, record) {
	const decision = describeDecision(session, record);
	const isLasting =
		decision.verdict === "approve" &&
		decision.scope !== "once" &&
		decision.isVerified &&
		Date.parse(decision.expiresAt) > Date.now();
	let { ended } = record;
	if (!isLasting || ended?.isConfirmed) return null;
	if (ended !== undefined) {
		const sent = await readOrder(session, ended).catch(() => null);
		if (sent !== null) await noteEnd(session, record.requestId, sent);
		if (sent !== null && isConfirmed(sent)) return null;
		ended = { ...ended, ...sent };
	}
	const { requestId, enforcerId, artifact } = record;
	return {
		requestId,
		enforcerId,
		artifact: artifact === null ? null : await parseArtifact(utf8(artifact)),
		decision,
		ended: ended ? { at: ended.at, isConfirmed: false } : null,
	};
}

/**
 * The session under which an enforcer reports the uses of a permission.
 * @param {string} enforcerId
 * @param {string} requestId
 */
export async function grantSession(enforcerId, requestId) {
	const names = JSON.stringify([
		"countersign session v1",
		enforcerId,
		"grant",
		requestId,
	]);
	const hash = new Uint8Array(
		await crypto.subtle.digest("SHA-256", utf8(names)),
	).slice(0, 16);
	hash[6] = (hash[6] & 0x0f) | 0x80;
	hash[8] = (hash[8] & 0x3f) | 0x80;
	return toHex(hash).replace(
		/^(.{8})(.{4})(.{4})(.{4})(.{12})$/,
		"$1-$2-$3-$4-$5",
	);
}

/**
 * @param {Session} session
 * @param {{ requestId: string, enforcerId: string }} grant
 * @returns {Promise<GrantUses>}
 */
export async function readUses({ client }, { requestId, enforcerId }) {
	const sessionId = await grantSession(enforcerId, requestId);
	const { status, members } = await client.members({
		path: path("v1", "session", sessionId),
		expect: [200, 404],
	});
	const known = status === 200 && members.enforcerId === enforcerId;
	/** @type {any[]} */
	const snapshots =
		known && Array.isArray(members.snapshots) ? members.snapshots : [];
	const uses = snapshots.filter(
		({ payload }) =>
			payload?.kind === "grant.use" &&
			payload.requestId === requestId &&
			Number.isSafeInteger(payload.uses),
	);
	return {
		count: uses[0]?.payload.uses ?? 0,
		times: uses.map(({ createdAt }) => String(createdAt)),
	};
}
