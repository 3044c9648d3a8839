// Pairing that the gateway cannot forge: by the link that the enforcer printed, or by its short
// code and digits that a person compares. The gateway chooses the nonce and carries the messages;
// it is trusted with nothing.

import {
	concat,
	equal,
	fromBase64urlOf,
	sha256,
	toBase64url,
	utf8,
} from "./bytes.js";
import { canonical } from "./canonical.js";
import { deviceMembers } from "./keys.js";
import { Problem } from "./problem.js";

/** @typedef {import('./keys.js').DeviceBundle} DeviceBundle */
/** @typedef {import('./keys.js').EnforcerBundle} EnforcerBundle */
/** @typedef {import('./types.js').JsonObject} JsonObject */

const MARK = "#/pair/";
/** Crockford's base32: no two characters look alike. */
const CODE = /^[0-9A-HJKMNP-TV-Z]{8}$/;
/** Makes each guess at a second pair of bundles with the same digits expensive. */
const ITERATIONS = 600_000;
const LIMIT = 10n ** 15n;

/**
 * @typedef {object} PairingLink
 * @property {string} code
 * @property {Bytes} secret
 * @property {Bytes} fingerprint
 */

/**
 * Reads a typed code, ignoring case and dashes, with O read as 0, I and L as 1.
 * @param {string} text
 * @returns {string | null}
 */
export function parseCode(text) {
	const code = text
		.trim()
		.replaceAll("-", "")
		.toUpperCase()
		.replaceAll("O", "0")
		.replace(/[IL]/g, "1");
	return CODE.test(code) ? `${code.slice(0, 4)}-${code.slice(4)}` : null;
}

/**
 * Reads a link, or the part of it from `#` on.
 * @param {string} text
 * @returns {PairingLink}
 */
export function parsePairingLink(text) {
	const refused = (/** @type {unknown} */ cause) =>
		Problem.of("pairingLink", {}, cause);
	const at = text.lastIndexOf(MARK);
	const parts =
		at < 0
			? []
			: text
					.slice(at + MARK.length)
					.trim()
					.split("/");
	const [code, secret, fingerprint] = parts;
	const read = code === undefined ? null : parseCode(code);
	if (
		parts.length !== 3 ||
		read === null ||
		secret === undefined ||
		fingerprint === undefined
	)
		throw refused(undefined);
	try {
		return {
			code: read,
			secret: fromBase64urlOf("key", secret, 16),
			fingerprint: fromBase64urlOf("key", fingerprint, 16),
		};
	} catch (error) {
		throw refused(error);
	}
}

/**
 * Refuses an enforcer's bundle that does not have the fingerprint of the link.
 * @param {EnforcerBundle} offer
 * @param {Bytes} fingerprint
 */
export async function checkFingerprint(offer, fingerprint) {
	const hash = await sha256(utf8(offer.text));
	if (!equal(hash.subarray(0, 16), fingerprint))
		throw Problem.of("fingerprint", {});
}

/**
 * This device's answer, and the digits that both sides must have seen alike.
 * @param {EnforcerBundle} offer
 * @param {string} nonce
 * @param {string} approverId
 * @param {DeviceBundle} bundle
 * @param {Bytes} random 16 bytes, fresh for each attempt
 * @param {string[] | null} operators null: the person did not say; enforcers of an older version
 *   refuse the member
 * @param {import('./types.js').TeamHead | null} [team] that is paired instead of this person alone
 */
export function beginAnswer(
	offer,
	nonce,
	approverId,
	bundle,
	random,
	operators,
	team = null,
) {
	/** @type {JsonObject} */
	const members = { ...deviceMembers(bundle), random: toBase64url(random) };
	if (operators !== null) members.operators = operators;
	if (team !== null) members.team = { ...team };
	const answer = spell(members);
	const transcript = canonical({
		nonce,
		approverId,
		enforcer: offer.text,
		approver: answer,
	});
	return { members, answer, transcript };
}

/** @param {JsonObject} members */
function spell(members) {
	return toBase64url(utf8(canonical(members)));
}

/**
 * From a link: the fingerprint has authenticated the enforcer, and the proof authenticates this
 * device.
 * @param {{ members: JsonObject, transcript: string }} begun
 * @param {Bytes} secret
 */
export async function proveAnswer({ members, transcript }, secret) {
	const proof = await proofOf(secret, `countersign pairing v1${transcript}`);
	return spell({ ...members, proof: toBase64url(proof) });
}

/**
 * HMAC-SHA256 with the secret of a link.
 * @param {Bytes} secret
 * @param {string} message
 */
export async function proofOf(secret, message) {
	const key = await crypto.subtle.importKey(
		"raw",
		secret,
		{ name: "HMAC", hash: "SHA-256" },
		false,
		["sign"],
	);
	return new Uint8Array(await crypto.subtle.sign("HMAC", key, utf8(message)));
}

/**
 * From a typed code: the fifteen digits that both screens show, in three groups of five.
 * @param {string} transcript
 * @param {string} nonce
 */
export async function digitsOf(transcript, nonce) {
	const password = concat(utf8("countersign digits v1"), utf8(transcript));
	const key = await crypto.subtle.importKey("raw", password, "PBKDF2", false, [
		"deriveBits",
	]);
	const algorithm = {
		name: "PBKDF2",
		hash: "SHA-256",
		salt: utf8(nonce),
		iterations: ITERATIONS,
	};
	const derived = new Uint8Array(
		await crypto.subtle.deriveBits(algorithm, key, 128),
	);
	const number =
		derived.reduce((whole, byte) => (whole << 8n) | BigInt(byte), 0n) % LIMIT;
	const digits = number.toString().padStart(15, "0");
	return `${digits.slice(0, 5)} ${digits.slice(5, 10)} ${digits.slice(10)}`;
}
