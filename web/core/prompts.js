// Prompts from this device to an enforcer, encrypted.

import { utf8, uuidv7 } from "./bytes.js";
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
export async function sealPrompt(
	keys,
	approverId,
	enforcer,
	{ requestId, createdAt, text, sessionId },
	random,
) {
	if (text.trim() === "") throw Problem.of("emptyPrompt", {});
	/** @type {JsonObject} */
	const plain = {
		requestId,
		artifactType: KIND,
		createdAt,
		target: "agentChat",
		promptHashAlg: "SHA-256",
	};
	if (sessionId !== null) plain.sessionId = sessionId;
	const hashed = salted({ ...plain, text: cleanText(text) }, random);
	const promptHash = await hashWithout(
		parse("answer", canonical(hashed)),
		"promptHash",
	);
	const content = utf8(canonical({ ...hashed, promptHash }));
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
		recipient,
		context,
		content,
		random,
	);
	return {
		...plain,
		promptHash,
		ciphertext: { ...ciphertext, sender: deviceId },
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
	const body = JSON.stringify(
		await sealPrompt(
			session.keys,
			session.identity.approverId,
			enforcer,
			prompt,
			RANDOM,
		),
	);
	const head = {
		recipient: { enforcerId },
		expiresAt: spellTime(Date.now() + LASTS_MS),
	};
	const envelope = session.envelope("prompt.send", requestId, body, head);
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
	};
}
