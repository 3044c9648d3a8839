// Shared by the tests of the core, which run in a browser and in node.

import { concat, toBase64url } from "../core/bytes.js";
import { openKeys } from "../core/keys.js";
import { Problem } from "../core/problem.js";

const PKCS8 = {
	Ed25519: fromHex("302e020100300506032b657004220420"),
	X25519: fromHex("302e020100300506032b656e04220420"),
};

/** @typedef {Record<string, (vectors: any) => Promise<void> | void>} Tests */

/** @param {string} text */
export function fromHex(text) {
	return Uint8Array.from(text.match(/../g) ?? [], (pair) =>
		Number.parseInt(pair, 16),
	);
}

/**
 * @param {boolean} holds
 * @param {string} what
 */
export function assert(holds, what) {
	if (!holds) throw new Error(`not so: ${what}`);
}

/**
 * @param {unknown} found
 * @param {unknown} expected
 * @param {string} [what]
 */
export function assertEqual(found, expected, what = "") {
	const [one, other] = [JSON.stringify(found), JSON.stringify(expected)];
	if (one !== other)
		throw new Error(`${what}: found ${one}, expected ${other}`);
}

/**
 * Asserts that something is refused with a problem of one of these codes.
 * @param {() => unknown} action
 * @param {...string} codes
 */
export async function assertRefused(action, ...codes) {
	try {
		await action();
	} catch (error) {
		if (
			error instanceof Problem &&
			(codes.length === 0 || codes.includes(error.code))
		)
			return;
		throw error;
	}
	throw new Error(`not refused: ${action}`);
}

/**
 * @param {'Ed25519' | 'X25519'} name
 * @param {string} privateKey in hexadecimal
 * @param {string} publicKey in hexadecimal
 * @returns {Promise<CryptoKeyPair>}
 */
export async function importPair(name, privateKey, publicKey) {
	const isSigning = name === "Ed25519";
	const pkcs8 = concat(PKCS8[name], fromHex(privateKey));
	return {
		privateKey: await crypto.subtle.importKey(
			"pkcs8",
			pkcs8,
			{ name },
			false,
			isSigning ? ["sign"] : ["deriveBits"],
		),
		publicKey: await crypto.subtle.importKey(
			"raw",
			fromHex(publicKey),
			{ name },
			true,
			isSigning ? ["verify"] : [],
		),
	};
}

/**
 * A device of the vectors.
 * @param {any} vectors
 * @param {'phone' | 'laptop'} which
 */
export async function deviceOf(vectors, which) {
	const keys = vectors.keys[which];
	const pairs = {
		signing: await importPair("Ed25519", keys.ed25519Seed, keys.ed25519Public),
		decryption: await importPair(
			"X25519",
			keys.x25519Private,
			keys.x25519Public,
		),
	};
	return openKeys(pairs, which);
}

/**
 * The enforcer of the vectors: as a device knows it, and its own key pair.
 * @param {any} vectors
 */
export async function enforcerOf(vectors) {
	const { enforcerId, x25519Private, x25519Public } = vectors.keys.enforcer;
	const pair = await importPair("X25519", x25519Private, x25519Public);
	const encryptionKey = fromHex(x25519Public);
	return {
		pinned: { enforcerId, encryptionKey },
		pair: { privateKey: pair.privateKey, publicKey: encryptionKey },
	};
}

/**
 * Randomness that repeats what the vectors drew.
 * @param {string[]} draws in hexadecimal
 * @param {{ skE: string, encapsulated: Bytes } | null} ephemeral
 * @returns {import('../core/seal.js').Random}
 */
export function scripted(draws, ephemeral) {
	const left = [...draws];
	return {
		bytes(length) {
			const bytes = fromHex(left.shift() ?? "");
			assertEqual(bytes.length, length, "bytes drawn");
			return bytes;
		},
		async ephemeral() {
			if (ephemeral === null) throw new Error("no ephemeral key was expected");
			const publicKey = ephemeral.encapsulated;
			const hex = Array.from(publicKey, (byte) =>
				byte.toString(16).padStart(2, "0"),
			).join("");
			const pair = await importPair("X25519", ephemeral.skE, hex);
			return { privateKey: pair.privateKey, publicKey };
		},
	};
}

/**
 * Every spelling of base64url that differs from this one in one bit of its bytes.
 * @param {Bytes} bytes
 */
export function* withOneBitChanged(bytes) {
	for (let bit = 0; bit < bytes.length * 8; bit += 1) {
		const changed = Uint8Array.from(bytes);
		changed[bit >> 3] = Number(changed[bit >> 3]) ^ (1 << (bit & 7));
		yield toBase64url(changed);
	}
}
