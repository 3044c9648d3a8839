// Keys of devices and enforcers, and bundles: public keys as they travel, base64url of canonical
// JSON. A bundle that was read is well formed, nothing more; nobody has vouched for it yet.

import {
	concat,
	fromBase64url,
	fromBase64urlOf,
	sha256,
	toBase64url,
	utf8,
} from "./bytes.js";
import { canonical, isWithin, parseCanonical, Reader } from "./canonical.js";
import { isEncryptionKey, isSigningKey, isSmallOrder } from "./points.js";
import { Problem } from "./problem.js";

/** @typedef {import('./problem.js').Thing} Thing */

const MAX_NAME_CHARS = 64;
const MAX_LABEL_CHARS = 256;
/**
 * Control characters, and whatever else takes no place on the screen or changes the direction of
 * text.
 */
const INVISIBLE =
	/[\p{Cc}\p{Cs}\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/u;

/**
 * The key pairs of this device, as they are kept: WebCrypto gives their private halves to nobody.
 * @typedef {object} KeyPairs
 * @property {CryptoKeyPair} signing
 * @property {CryptoKeyPair} decryption
 */

/**
 * @typedef {object} DeviceKeys
 * @property {CryptoKey} signing
 * @property {CryptoKey} decryption
 * @property {DeviceBundle} bundle
 */

/**
 * The public keys of a device.
 * @typedef {object} DeviceBundle
 * @property {string} deviceId
 * @property {string} name
 * @property {Bytes} signingKey
 * @property {Bytes} encryptionKey
 * @property {string} text
 */

/**
 * An enforcer's offer at pairing.
 * @typedef {object} EnforcerBundle
 * @property {string} enforcerId
 * @property {Bytes} encryptionKey
 * @property {string | null} label what people call it
 * @property {string} text
 */

/**
 * @returns {Promise<KeyPairs>}
 */
export async function generateKeyPairs() {
	try {
		const [signing, decryption] = await Promise.all([
			crypto.subtle.generateKey({ name: "Ed25519" }, false, ["sign", "verify"]),
			crypto.subtle.generateKey({ name: "X25519" }, false, ["deriveBits"]),
		]);
		return /** @type {KeyPairs} */ (
			/** @type {unknown} */ ({ signing, decryption })
		);
	} catch (error) {
		throw Problem.of("browser", {}, error);
	}
}

/**
 * @param {KeyPairs} pairs
 * @param {string} name
 * @returns {Promise<DeviceKeys>}
 */
export async function openKeys(pairs, name) {
	const [signingKey, encryptionKey] = await Promise.all([
		exportPublic(pairs.signing),
		exportPublic(pairs.decryption),
	]);
	return {
		signing: pairs.signing.privateKey,
		decryption: pairs.decryption.privateKey,
		bundle: await deviceBundle(signingKey, encryptionKey, name),
	};
}

/** @param {CryptoKeyPair} pair */
async function exportPublic(pair) {
	return new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
}

/**
 * @param {Bytes} signingKey
 * @param {Bytes} encryptionKey
 * @param {string} name
 * @returns {Promise<DeviceBundle>}
 */
async function deviceBundle(signingKey, encryptionKey, name) {
	checkDeviceName(name);
	const hash = await sha256(
		concat(utf8("countersign device v1"), signingKey, encryptionKey),
	);
	const members = deviceMembers({ signingKey, encryptionKey, name });
	return {
		deviceId: toBase64url(hash.subarray(0, 16)),
		name,
		signingKey,
		encryptionKey,
		text: toBase64url(utf8(canonical(members))),
	};
}

/** @param {{ signingKey: Bytes, encryptionKey: Bytes, name: string }} bundle */
export function deviceMembers({ signingKey, encryptionKey, name }) {
	return {
		v: 1,
		ed25519: toBase64url(signingKey),
		x25519: toBase64url(encryptionKey),
		name,
	};
}

/**
 * @param {string} text
 * @returns {Promise<DeviceBundle>}
 */
export async function parseDeviceBundle(text) {
	const what = "deviceBundle";
	const reader = new Reader(
		what,
		parseCanonical(what, fromBase64url(what, text)),
	);
	reader.version();
	const signingKey = fromBase64urlOf("key", reader.string("ed25519"), 32);
	if (!isSigningKey(signingKey)) throw Problem.of("weakKey", { what });
	const encryptionKey = readEncryptionKey(what, reader.string("x25519"));
	const bundle = await deviceBundle(
		signingKey,
		encryptionKey,
		reader.string("name"),
	);
	reader.finish();
	return bundle;
}

/**
 * @param {string} text
 * @returns {EnforcerBundle}
 */
export function parseEnforcerBundle(text) {
	const what = "enforcerBundle";
	const reader = new Reader(
		what,
		parseCanonical(what, fromBase64url(what, text)),
	);
	reader.version();
	fromBase64urlOf("random", reader.string("random"), 16);
	const encryptionKey = readEncryptionKey(what, reader.string("x25519"));
	const enforcerId = reader.id("enforcerId");
	const label = readLabel(reader);
	reader.finish();
	return { enforcerId, encryptionKey, label, text };
}

/** @param {string} text */
export function isLabel(text) {
	return (
		text.trim() !== "" &&
		isWithin(text, MAX_LABEL_CHARS) &&
		!INVISIBLE.test(text)
	);
}

/**
 * A label is shown beside what people decide about, so nothing in it is invisible.
 * @param {Reader} reader
 */
export function readLabel(reader) {
	const label = reader.optionalString("label");
	if (label !== null && !isLabel(label))
		throw reader.invalid("label", `1..${MAX_LABEL_CHARS}`);
	return label;
}

/**
 * @param {Thing} what
 * @param {string} text
 */
export function readEncryptionKey(what, text) {
	const key = fromBase64urlOf("key", text, 32);
	if (!isEncryptionKey(key)) throw Problem.of("weakKey", { what });
	return key;
}

/** @param {string} text */
export function readDeviceId(text) {
	fromBase64urlOf("deviceId", text, 16);
	return text;
}

/** @param {string} name */
export function checkDeviceName(name) {
	const isEmpty = name.trim() === "";
	if (isEmpty || !isWithin(name, MAX_NAME_CHARS) || INVISIBLE.test(name))
		throw Problem.of("deviceName", {});
}

/**
 * Whether two bundles have the same keys, whatever their names.
 * @param {DeviceBundle} one
 * @param {DeviceBundle} other
 */
export function hasSameKeys(one, other) {
	const keys = (/** @type {DeviceBundle} */ bundle) =>
		toBase64url(concat(bundle.signingKey, bundle.encryptionKey));
	return keys(one) === keys(other);
}

/**
 * @param {DeviceKeys} keys
 * @param {string} message
 * @returns {Promise<string>} in base64url
 */
export async function sign(keys, message) {
	const signature = await crypto.subtle.sign(
		{ name: "Ed25519" },
		keys.signing,
		utf8(message),
	);
	return toBase64url(new Uint8Array(signature));
}

/**
 * Strictly: WebCrypto refuses malleable signatures; keys and signatures of small order are refused
 * here.
 * @param {Pick<DeviceBundle, 'signingKey'>} bundle
 * @param {string} message
 * @param {Bytes} signature
 * @returns {Promise<boolean>}
 */
export async function verifies(bundle, message, signature) {
	if (
		signature.length !== 64 ||
		isSmallOrder(signature.subarray(0, 32)) ||
		!isSigningKey(bundle.signingKey)
	)
		return false;
	const key = await crypto.subtle.importKey(
		"raw",
		bundle.signingKey,
		{ name: "Ed25519" },
		false,
		["verify"],
	);
	return crypto.subtle.verify(
		{ name: "Ed25519" },
		key,
		signature,
		utf8(message),
	);
}
