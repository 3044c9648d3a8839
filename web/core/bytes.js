// Bytes and their texts, each with one spelling only.

import { Problem } from "./problem.js";

/** @typedef {import('./problem.js').Thing} Thing */

const ALPHABET =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const VALUES = new Uint8Array(128).fill(255);
for (let value = 0; value < ALPHABET.length; value += 1)
	VALUES[ALPHABET.charCodeAt(value)] = value;

/** Few enough to be passed as arguments of one call. */
const CHUNK = 0x4000;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** @param {string} text */
export function utf8(text) {
	return encoder.encode(text);
}

/**
 * @param {Bytes} bytes
 * @returns {string | null} null if they are not UTF-8
 */
export function fromUtf8(bytes) {
	try {
		return decoder.decode(bytes);
	} catch {
		return null;
	}
}

/** @param {...Bytes} parts */
export function concat(...parts) {
	const whole = new Uint8Array(
		parts.reduce((length, part) => length + part.length, 0),
	);
	let at = 0;
	for (const part of parts) {
		whole.set(part, at);
		at += part.length;
	}
	return whole;
}

/**
 * Base64url without padding.
 * @param {Bytes} bytes
 */
export function toBase64url(bytes) {
	let binary = "";
	for (let at = 0; at < bytes.length; at += CHUNK) {
		binary += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
	}
	return btoa(binary)
		.replace(/\+/g, "-")
		.replace(/\//g, "_")
		.replace(/=+$/, "");
}

/**
 * Without padding, and with unused bits zero. Not by `atob`, which accepts other spellings of the
 * same bytes.
 * @param {Thing} what
 * @param {string} text
 */
export function fromBase64url(what, text) {
	const refused = () => Problem.of("base64", { what });
	if (text.length % 4 === 1) throw refused();
	const bytes = new Uint8Array(Math.floor((text.length * 3) / 4));
	let bits = 0;
	let count = 0;
	let at = 0;
	for (let place = 0; place < text.length; place += 1) {
		const unit = text.charCodeAt(place);
		const value = unit < 128 ? Number(VALUES[unit]) : 255;
		if (value === 255) throw refused();
		bits = ((bits << 6) | value) & 0xffff;
		count += 6;
		if (count >= 8) {
			count -= 8;
			bytes[at] = (bits >> count) & 0xff;
			at += 1;
		}
	}
	if ((bits & ((1 << count) - 1)) !== 0) throw refused();
	return bytes;
}

/**
 * @param {Thing} what
 * @param {string} text
 * @param {number} expected
 */
export function fromBase64urlOf(what, text, expected) {
	const bytes = fromBase64url(what, text);
	if (bytes.length !== expected) throw Problem.of("length", { what, expected });
	return bytes;
}

/** @param {Bytes} bytes */
export async function sha256(bytes) {
	return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

/** @param {Bytes} bytes */
export function toHex(bytes) {
	return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(
		"",
	);
}

/**
 * Whether two are equal, in a time that does not depend on where they differ.
 * @param {Bytes} one
 * @param {Bytes} other
 */
export function equal(one, other) {
	if (one.length !== other.length) return false;
	let difference = 0;
	for (let at = 0; at < one.length; at += 1)
		difference |= Number(one[at]) ^ Number(other[at]);
	return difference === 0;
}

/** @param {number} length */
export function randomBytes(length) {
	return crypto.getRandomValues(new Uint8Array(length));
}

/**
 * A UUID of version 7: ids that begin with the time are cheaper for a database.
 * @param {number} milliseconds
 */
export function uuidv7(milliseconds) {
	const time = milliseconds.toString(16).padStart(12, "0");
	const random = toHex(randomBytes(10));
	const variant = (
		(Number.parseInt(random.slice(3, 5), 16) & 0x3f) |
		0x80
	).toString(16);
	return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(5, 7)}-${random.slice(7, 19)}`;
}
