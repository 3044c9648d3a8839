// The canonical form (RFC 8785) of strict JSON, and reading the members of objects. So each value
// that is hashed, signed or compared has one spelling.

import { fromUtf8, sha256, toHex, utf8 } from "./bytes.js";
import { JsonError, parseJson } from "./json.js";
import { Problem } from "./problem.js";

/** @typedef {import('./json.js').Node} Node */
/** @typedef {import('./problem.js').Thing} Thing */
/** @typedef {import('./types.js').JsonValue} JsonValue */

const TIME =
	/^(\d{4})-(\d\d)-(\d\d)[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/;
const HASH = /^[0-9a-f]{64}$/;
const CONTROL = /\p{Cc}/u;
const UUID_OR_ULID =
	/^(?:[0-9a-zA-Z]{26}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$/;
const MAX_ID_CHARS = 128;

/**
 * @param {Thing} what
 * @param {string} text
 * @returns {Node}
 */
export function parse(what, text) {
	try {
		return parseJson(text);
	} catch (error) {
		if (error instanceof JsonError)
			throw Problem.of("json", {
				what,
				reason: error.reason,
				offset: error.offset,
			});
		throw error;
	}
}

/**
 * Bytes that must be strict JSON in canonical form already.
 * @param {Thing} what
 * @param {Bytes} bytes
 */
export function parseCanonical(what, bytes) {
	const text = fromUtf8(bytes);
	if (text === null)
		throw Problem.of("json", { what, reason: "utf8", offset: 0 });
	const node = parse(what, text);
	if (canonicalNode(node) !== text) throw Problem.of("notCanonical", { what });
	return node;
}

/**
 * @param {Node} node
 * @param {string} [without] a member of the outermost object to leave out
 * @returns {string}
 */
export function canonicalNode(node, without) {
	const { value } = node;
	if (Array.isArray(value))
		return `[${value.map((item) => canonicalNode(item)).join(",")}]`;
	if (value instanceof Map) {
		const names = [...value.keys()].filter((name) => name !== without).sort();
		const spell = (/** @type {string} */ name) => {
			const member = /** @type {Node} */ (value.get(name));
			return `${JSON.stringify(name)}:${canonicalNode(member)}`;
		};
		return `{${names.map(spell).join(",")}}`;
	}
	return JSON.stringify(value);
}

/**
 * The canonical text of a value that this page built.
 * @param {JsonValue} value
 * @returns {string}
 */
export function canonical(value) {
	if (Array.isArray(value))
		return `[${value.map((item) => canonical(item)).join(",")}]`;
	if (value !== null && typeof value === "object") {
		const members = Object.entries(value).sort(([one], [other]) =>
			one < other ? -1 : 1,
		);
		return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(",")}}`;
	}
	return JSON.stringify(value);
}

/**
 * The hash of an object without the member that is to hold it, in hexadecimal.
 * @param {Node} node
 * @param {string} without
 */
export async function hashWithout(node, without) {
	return toHex(await sha256(utf8(canonicalNode(node, without))));
}

/**
 * An RFC 3339 time in milliseconds, or null.
 * @param {string} text
 */
export function readTime(text) {
	const parts = TIME.exec(text);
	if (parts === null) return null;
	const [year, month, day] = [
		Number(parts[1]),
		Number(parts[2]),
		Number(parts[3]),
	];
	// `Date` would take the 31st of April for the 1st of May.
	const days = new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate();
	if (
		year < 1 ||
		year > 9998 ||
		month < 1 ||
		month > 12 ||
		day < 1 ||
		day > days
	)
		return null;
	return Date.parse(text.toUpperCase());
}

/**
 * Spelled as the gateway and the terminal client do, without zeros at the end of a fraction: both
 * read a time and spell it again before they verify a signature over it.
 * @param {number} milliseconds
 */
export function spellTime(milliseconds) {
	return new Date(milliseconds).toISOString().replace(/\.?0*Z$/, "Z");
}

/** @param {string} text */
export function isId(text) {
	return (
		text !== "" &&
		!CONTROL.test(text) &&
		[...text.slice(0, 2 * MAX_ID_CHARS + 2)].length <= MAX_ID_CHARS
	);
}

/** @param {string} text */
export function isUuidOrUlid(text) {
	return UUID_OR_ULID.test(text);
}

/**
 * Whether a text has at most `limit` characters.
 * @param {string} text
 * @param {number} limit
 */
export function isWithin(text, limit) {
	return (
		text.length <= limit ||
		(text.length <= 2 * limit && [...text].length <= limit)
	);
}

/**
 * A typed text without what strict JSON cannot have: U+0000 and halves of surrogate pairs.
 * @param {string} text
 */
export function cleanText(text) {
	return text.replace(/[\0\p{Cs}]/gu, "\ufffd");
}

/** Reads the members of an object one by one, and refuses those that were not asked for. */
export class Reader {
	/**
	 * @param {Thing} what
	 * @param {Node} node
	 * @param {string} [pointer]
	 */
	constructor(what, node, pointer = "") {
		this.what = what;
		this.pointer = pointer;
		/** @type {Set<string>} */
		this.known = new Set();
		if (!(node.value instanceof Map))
			throw Problem.of("member", { what, pointer, expected: "object" });
		this.members = node.value;
	}

	/**
	 * @param {string} name
	 * @param {string} expected
	 */
	invalid(name, expected) {
		return Problem.of("member", {
			what: this.what,
			pointer: `${this.pointer}/${name}`,
			expected,
		});
	}

	/**
	 * Before anything else, so that a later version is refused as such and not for what is new in
	 * it.
	 */
	version() {
		if (this.required("v", "1").value !== 1)
			throw Problem.of("version", { what: this.what });
	}

	/** @param {string} name */
	optional(name) {
		this.known.add(name);
		return this.members.get(name);
	}

	/**
	 * @param {string} name
	 * @param {string} expected
	 */
	required(name, expected) {
		const node = this.optional(name);
		if (node === undefined) throw this.invalid(name, expected);
		return node;
	}

	/**
	 * @param {string} name
	 * @returns {string | null}
	 */
	optionalString(name) {
		const node = this.optional(name);
		if (node === undefined) return null;
		if (typeof node.value !== "string") throw this.invalid(name, "string");
		return node.value;
	}

	/**
	 * @param {string} name
	 * @returns {string}
	 */
	string(name) {
		const { value } = this.required(name, "string");
		if (typeof value !== "string") throw this.invalid(name, "string");
		return value;
	}

	/**
	 * @template {string} T
	 * @param {string} name
	 * @param {readonly T[]} words
	 * @returns {T}
	 */
	oneOf(name, words) {
		const text = this.string(name);
		const word = words.find((known) => known === text);
		if (word === undefined) throw this.invalid(name, words.join(" | "));
		return word;
	}

	/** @param {string} name */
	object(name) {
		const node = this.required(name, "object");
		if (!(node.value instanceof Map)) throw this.invalid(name, "object");
		return node;
	}

	/** @param {string} name */
	optionalObject(name) {
		return this.members.has(name)
			? this.object(name)
			: void this.known.add(name);
	}

	/**
	 * @param {string} name
	 * @returns {Node[]}
	 */
	array(name) {
		const { value } = this.required(name, "array");
		if (!Array.isArray(value)) throw this.invalid(name, "array");
		return value;
	}

	/** @param {string} name */
	id(name) {
		const text = this.string(name);
		if (!isId(text)) throw this.invalid(name, "id");
		return text;
	}

	/** @param {string} name */
	time(name) {
		const text = this.string(name);
		if (readTime(text) === null) throw this.invalid(name, "RFC 3339");
		return text;
	}

	/**
	 * @param {string} name
	 * @param {number} least
	 * @param {number} most
	 */
	count(name, least, most) {
		const expected = `${least}..${most}`;
		const { value } = this.required(name, expected);
		const isCount = typeof value === "number" && Number.isInteger(value);
		if (!isCount || value < least || value > most)
			throw this.invalid(name, expected);
		return value;
	}

	/** @param {string} name */
	flag(name) {
		const { value } = this.required(name, "boolean");
		if (typeof value !== "boolean") throw this.invalid(name, "boolean");
		return value;
	}

	/** @param {string} name */
	hash(name) {
		const text = this.string(name);
		if (!HASH.test(text)) throw this.invalid(name, "SHA-256");
		return text;
	}

	/** Refuses members that were not asked for. */
	finish() {
		for (const name of this.members.keys()) {
			if (!this.known.has(name)) throw this.invalid(name, "no such member");
		}
	}
}
