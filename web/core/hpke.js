// HPKE (RFC 9180), single-shot, auth mode, with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and
// AES-256-GCM, over WebCrypto. Auth mode shows a recipient that the sender has the private half of
// a key that it knows.

import { concat, utf8 } from "./bytes.js";

const VERSION = utf8("HPKE-v1");
/** "KEM", and the number of DHKEM(X25519, HKDF-SHA256). */
const KEM_SUITE = concat(utf8("KEM"), Uint8Array.of(0, 32));
/** "HPKE", and the numbers of the KEM, HKDF-SHA256 and AES-256-GCM. */
const SUITE = concat(utf8("HPKE"), Uint8Array.of(0, 32, 0, 1, 0, 2));
const AUTH_MODE = Uint8Array.of(2);
const NOTHING = new Uint8Array();
/** HMAC pads a key with zeros, and WebCrypto imports no empty one. */
const NO_SALT = new Uint8Array(32);

/**
 * A key pair of a sender or recipient.
 * @typedef {object} KeyPair
 * @property {CryptoKey} privateKey
 * @property {Bytes} publicKey
 */

/**
 * @param {Bytes} key
 * @param {Bytes} message
 */
async function hmac(key, message) {
	const imported = await crypto.subtle.importKey(
		"raw",
		key,
		{ name: "HMAC", hash: "SHA-256" },
		false,
		["sign"],
	);
	return new Uint8Array(await crypto.subtle.sign("HMAC", imported, message));
}

/**
 * @param {Bytes} suite
 * @param {Bytes} salt
 * @param {string} label
 * @param {Bytes} secret
 */
function labeledExtract(suite, salt, label, secret) {
	return hmac(salt, concat(VERSION, suite, utf8(label), secret));
}

/**
 * At most 32 bytes, which is one block of HKDF-Expand.
 * @param {Bytes} suite
 * @param {Bytes} key
 * @param {string} label
 * @param {Bytes} info
 * @param {number} length
 */
async function labeledExpand(suite, key, label, info, length) {
	const labeled = concat(
		Uint8Array.of(0, length),
		VERSION,
		suite,
		utf8(label),
		info,
	);
	return (await hmac(key, concat(labeled, Uint8Array.of(1)))).subarray(
		0,
		length,
	);
}

/**
 * It fails if the result is zero, that is, for a key of small order.
 * @param {CryptoKey} privateKey
 * @param {Bytes} publicKey
 */
async function diffieHellman(privateKey, publicKey) {
	const imported = await crypto.subtle.importKey(
		"raw",
		publicKey,
		{ name: "X25519" },
		false,
		[],
	);
	const algorithm = /** @type {EcdhKeyDeriveParams} */ ({
		name: "X25519",
		public: imported,
	});
	return new Uint8Array(
		await crypto.subtle.deriveBits(algorithm, privateKey, 256),
	);
}

/**
 * @param {Bytes[]} secrets
 * @param {Bytes[]} publicKeys encapsulated, recipient's, sender's
 */
async function sharedSecret(secrets, publicKeys) {
	const extracted = await labeledExtract(
		KEM_SUITE,
		NO_SALT,
		"eae_prk",
		concat(...secrets),
	);
	return labeledExpand(
		KEM_SUITE,
		extracted,
		"shared_secret",
		concat(...publicKeys),
		32,
	);
}

/**
 * The key and nonce of the only message.
 * @param {Bytes} shared
 * @param {Bytes} info
 */
export async function keySchedule(shared, info) {
	const pskId = await labeledExtract(SUITE, NO_SALT, "psk_id_hash", NOTHING);
	const infoHash = await labeledExtract(SUITE, NO_SALT, "info_hash", info);
	const context = concat(AUTH_MODE, pskId, infoHash);
	const secret = await labeledExtract(SUITE, shared, "secret", NOTHING);
	return {
		key: await labeledExpand(SUITE, secret, "key", context, 32),
		nonce: await labeledExpand(SUITE, secret, "base_nonce", context, 12),
	};
}

/**
 * @param {KeyPair} ephemeral
 * @param {Bytes} recipient
 * @param {KeyPair} sender
 */
export async function encapsulate(ephemeral, recipient, sender) {
	const secrets = [
		await diffieHellman(ephemeral.privateKey, recipient),
		await diffieHellman(sender.privateKey, recipient),
	];
	return sharedSecret(secrets, [
		ephemeral.publicKey,
		recipient,
		sender.publicKey,
	]);
}

/**
 * @param {Bytes} encapsulated
 * @param {KeyPair} recipient
 * @param {Bytes} sender
 */
export async function decapsulate(encapsulated, recipient, sender) {
	const secrets = [
		await diffieHellman(recipient.privateKey, encapsulated),
		await diffieHellman(recipient.privateKey, sender),
	];
	return sharedSecret(secrets, [encapsulated, recipient.publicKey, sender]);
}

/**
 * @param {'encrypt' | 'decrypt'} direction
 * @param {Bytes} key
 * @param {Bytes} nonce
 * @param {Bytes} text
 * @param {Bytes} associated
 */
export async function aesGcm(direction, key, nonce, text, associated) {
	const imported = await crypto.subtle.importKey(
		"raw",
		key,
		{ name: "AES-GCM" },
		false,
		[direction],
	);
	const algorithm = {
		name: "AES-GCM",
		iv: nonce,
		additionalData: associated,
		tagLength: 128,
	};
	return new Uint8Array(
		await crypto.subtle[direction](algorithm, imported, text),
	);
}

/**
 * @param {KeyPair} ephemeral fresh for each message
 * @param {Bytes} recipient
 * @param {KeyPair} sender
 * @param {{ info: Bytes, text: Bytes, associated: Bytes }} message
 */
export async function hpkeSeal(
	ephemeral,
	recipient,
	sender,
	{ info, text, associated },
) {
	const { key, nonce } = await keySchedule(
		await encapsulate(ephemeral, recipient, sender),
		info,
	);
	return aesGcm("encrypt", key, nonce, text, associated);
}

/**
 * @param {Bytes} encapsulated
 * @param {KeyPair} recipient
 * @param {Bytes} sender
 * @param {{ info: Bytes, text: Bytes, associated: Bytes }} message
 */
export async function hpkeOpen(
	encapsulated,
	recipient,
	sender,
	{ info, text, associated },
) {
	const { key, nonce } = await keySchedule(
		await decapsulate(encapsulated, recipient, sender),
		info,
	);
	return aesGcm("decrypt", key, nonce, text, associated);
}
