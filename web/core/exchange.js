// Reads the gateway's word about the state of a request, and verifies who decided.

import { canonicalNode, parse, Reader } from "./canonical.js";
import { readDecision, verifyDecision } from "./decision.js";
import { readDevices } from "./devices.js";
import { isRefusedWith, path } from "./gateway.js";
import { readMessage } from "./item.js";
import { Problem } from "./problem.js";

/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./store.js').DecisionRecord} DecisionRecord */
/** @typedef {import('./types.js').Item} Item */
/** @typedef {import('./types.js').ItemDecision} ItemDecision */

const STATES = /** @type {const} */ ([
	"pendingApproval",
	"decided",
	"delivered",
	"expired",
	"withdrawn",
	"cancelled",
]);

/** @param {Item} item */
export function subjectOf({
	requestId,
	enforcerId,
	label,
	artifactType,
	content,
}) {
	return {
		requestId,
		enforcerId: enforcerId ?? "",
		label,
		artifactType: artifactType ?? "",
		artifact: content.opened ? content.artifact.text : null,
		decidedAt: new Date().toISOString(),
	};
}

/**
 * The state of a request, as the gateway says.
 * @param {Session} session
 * @param {string} requestId
 * @returns {Promise<{ state: Item['state'], decision: string | null }>}
 */
export async function readState({ client }, requestId) {
	try {
		const { body } = readMessage(
			await client.json({
				path: path("v1", "exchanges", requestId),
				expect: [200],
			}),
		);
		const reader = new Reader("answer", body);
		const state = reader.oneOf("state", STATES);
		return {
			state: state === "pendingApproval" ? "pending" : state,
			decision: reader.optionalObject("decision")?.raw ?? null,
		};
	} catch (error) {
		if (isRefusedWith(error, "NOT_FOUND"))
			return { state: "withdrawn", decision: null };
		throw error;
	}
}

/**
 * Waits until one of these requests is no longer pending. Resolves with those that have ended; none
 * if the time is over.
 * @param {Session} session
 * @param {string[]} requestIds
 * @param {number} seconds
 * @param {number} answerMs how long the answer may take beyond that
 * @param {AbortSignal} signal
 * @returns {Promise<string[]>}
 */
export async function waitForAny(
	{ client },
	requestIds,
	seconds,
	answerMs,
	signal,
) {
	const { status, text } = await client.call({
		method: "POST",
		path: `/v1/waits?timeout=${seconds}`,
		body: JSON.stringify({ requestIds }),
		expect: [200, 204],
		once: true,
		patienceMs: seconds * 1000 + answerMs,
		signal,
	});
	if (status === 204) return [];
	const ended = new Reader("answer", parse("answer", text))
		.array("requestIds")
		.map(({ value }) => value);
	return requestIds.filter((requestId) => ended.includes(requestId));
}

/**
 * A decision that the gateway shows, made on another device: who made it is believed if a device
 * that this one trusts has signed it.
 * @param {Session} session
 * @param {Item} item
 * @param {string} body
 * @param {'decided' | 'delivered'} state
 * @returns {Promise<DecisionRecord>}
 */
export async function recordForeign(session, item, body, state) {
	const decision = readDecision(parse("decision", body));
	let device = "";
	try {
		const { trust } = await readDevices(session);
		const bundle = trust.device(decision.signer);
		const { requestId, artifactHash, content } = item;
		const repoRef = content.opened
			? content.artifact.repoRef
			: decision.repoRef;
		await verifyDecision(
			decision,
			{ requestId, hash: artifactHash ?? "", repoRef },
			bundle,
		);
		device = bundle.text;
	} catch (error) {
		if (!(error instanceof Problem)) throw error;
	}
	const unknown = { reason: null, actionId: null, grant: null };
	return {
		...subjectOf(item),
		body,
		device,
		isVerified: device !== "",
		state,
		...unknown,
	};
}

/**
 * Whether two texts are the same decision with the same signature, however they are spelled.
 * @param {string} one
 * @param {string} other
 */
export function isSameDecision(one, other) {
	return (
		canonicalNode(parse("decision", one)) ===
		canonicalNode(parse("decision", other))
	);
}

/**
 * @param {DecisionRecord} record
 * @param {string | null} artifactHash
 */
export function isDecisionAbout({ body }, artifactHash) {
	return readDecision(parse("decision", body)).artifactHash === artifactHash;
}

/**
 * @param {Session} session
 * @param {DecisionRecord} record
 * @returns {ItemDecision}
 */
export function describeDecision(
	{ identity },
	{ body, isVerified, reason, actionId, grant, outcome = null },
) {
	const { verdict, scope, expiresAt, signer } = readDecision(
		parse("decision", body),
	);
	// The signer is known only if the signature was verified.
	const isOwn = isVerified && signer === identity.deviceId;
	return {
		verdict,
		scope,
		expiresAt,
		deviceId: signer,
		isOwn,
		isVerified,
		reason,
		actionId,
		grant,
		outcome,
	};
}
