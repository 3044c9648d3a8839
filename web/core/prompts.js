// Prompts from this device to an enforcer, encrypted: a text for its agent, or an order to itself.

import { toHex, utf8, uuidv7 } from "./bytes.js";
import {
	canonical,
	cleanText,
	hashWithout,
	parse,
	spellTime,
} from "./canonical.js";
import { path } from "./gateway.js";
import { Problem } from "./problem.js";
import { RANDOM, salted, seal } from "./seal.js";

/** @typedef {import('./keys.js').DeviceKeys} DeviceKeys */
/** @typedef {import('./artifact.js').PinnedEnforcer} PinnedEnforcer */
/** @typedef {import('./seal.js').Random} Random */
/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./types.js').JsonObject} JsonObject */

const KIND = "prompt.send";
const STATUSES = ["queued", "delivered", "rejected", "error", "expired"];
/** The gateway's limit is on the ciphertext in base64. */
const MAX_BYTES = 180 * 1024;
/** Enforcers take no older prompts, so the gateway need not keep them. */
const LASTS_MS = 7 * 24 * 60 * 60 * 1000;

/**
 * The body of `prompt.send`: what the gateway needs to route it, and the whole prompt encrypted.
 * @param {DeviceKeys} keys
 * @param {string} approverId
 * @param {PinnedEnforcer} enforcer
 * @param {{ requestId: string, createdAt: string, text: string, sessionId: string | null }} prompt
 * @param {Random} random
 * @returns {Promise<JsonObject>}
 */
export async function sealPrompt(keys, approverId, enforcer, prompt, random) {
	const { text, ...head } = prompt;
	if (text.trim() === "") throw Problem.of("emptyPrompt", {});
	const content = { text: cleanText(text) };
	return (await sealContent(keys, approverId, enforcer, head, content, random))
		.body;
}

/**
 * @param {DeviceKeys} keys
 * @param {string} approverId
 * @param {PinnedEnforcer} enforcer
 * @param {{ requestId: string, createdAt: string, sessionId: string | null }} head
 * @param {JsonObject} sealed the members that only the enforcer reads
 * @param {Random} random
 * @returns {Promise<{ body: JsonObject, receipt: string }>} with what only those know who have read
 *   it
 */
export async function sealContent(
	keys,
	approverId,
	enforcer,
	{ requestId, createdAt, sessionId },
	sealed,
	random,
) {
	/** @type {JsonObject} */
	const plain = {
		requestId,
		artifactType: KIND,
		createdAt,
		target: "agentChat",
		promptHashAlg: "SHA-256",
	};
	if (sessionId !== null) plain.sessionId = sessionId;
	const hashed = salted({ ...plain, ...sealed }, random);
	const promptHash = await hashWithout(
		parse("answer", canonical(hashed)),
		"promptHash",
	);
	const spelled = canonical({ ...hashed, promptHash });
	const content = utf8(spelled);
	if (content.length > MAX_BYTES)
		throw Problem.of("longPrompt", { limit: MAX_BYTES });
	const { deviceId, encryptionKey } = keys.bundle;
	const { enforcerId } = enforcer;
	const context = {
		v: 1,
		requestId,
		artifactType: KIND,
		promptHash,
		approverId,
		enforcerId,
		deviceId,
	};
	const sender = { privateKey: keys.decryption, publicKey: encryptionKey };
	const recipient = { name: enforcerId, key: enforcer.encryptionKey };
	const ciphertext = await seal(
		"prompt",
		sender,
		[recipient],
		context,
		content,
		random,
	);
	const known = utf8(`countersign receipt v1\n${spelled}`);
	return {
		body: {
			...plain,
			promptHash,
			ciphertext: { ...ciphertext, sender: deviceId },
		},
		receipt: toHex(
			new Uint8Array(await crypto.subtle.digest("SHA-256", known)),
		),
	};
}

/**
 * @param {Session} session
 * @param {string} enforcerId
 * @param {string} text
 * @param {string | null} sessionId
 * @returns {Promise<import('./types.js').SentPrompt>}
 */
export async function sendPrompt(session, enforcerId, text, sessionId) {
	const enforcer = session.pinned(enforcerId);
	if (enforcer === null) throw Problem.of("notPaired", {});
	const requestId = uuidv7(Date.now());
	const prompt = { requestId, createdAt: session.timestamp(), text, sessionId };
	const { keys, identity } = session;
	const body = await sealPrompt(
		keys,
		identity.approverId,
		enforcer,
		prompt,
		RANDOM,
	);
	return postPrompt(session, enforcerId, requestId, body, LASTS_MS);
}

/**
 * @param {Session} session
 * @param {string} enforcerId
 * @param {string} requestId
 * @param {JsonObject} body
 * @param {number} lastsMs
 * @returns {Promise<import('./types.js').SentPrompt>}
 */
export async function postPrompt(
	session,
	enforcerId,
	requestId,
	body,
	lastsMs,
) {
	const head = {
		recipient: { enforcerId },
		expiresAt: spellTime(Date.now() + lastsMs),
	};
	const text = JSON.stringify(body);
	const envelope = session.envelope("prompt.send", requestId, text, head);
	const { members } = await session.client.members({
		method: "POST",
		path: "/v1/prompt",
		body: envelope,
		expect: [202],
	});
	return readAck(requestId, enforcerId, members);
}

/**
 * @param {Session} session
 * @param {import('./types.js').SentPrompt} sent
 * @returns {Promise<import('./types.js').SentPrompt>}
 */
export async function readPrompt({ client }, sent) {
	const { members } = await client.members({
		path: path("v1", "prompt", sent.requestId),
		expect: [200],
	});
	return readAck(sent.requestId, sent.enforcerId, members);
}

/**
 * @param {string} requestId
 * @param {string} enforcerId
 * @param {any} ack a `prompt.ack`
 * @returns {import('./types.js').SentPrompt}
 */
function readAck(requestId, enforcerId, ack) {
	const { requestId: about, status, details } = ack;
	if (about !== requestId || !STATUSES.includes(status))
		throw Problem.of("answer", { expected: "prompt.ack" });
	return {
		requestId,
		enforcerId,
		status,
		reason: typeof details?.reason === "string" ? details.reason : null,
		receipt: typeof details?.receipt === "string" ? details.receipt : null,
	};
}
