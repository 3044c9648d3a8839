// Strict JSON whose values keep their source text. Not `JSON.parse`, which accepts what two parsers
// may read differently: repeated names, halves of surrogate pairs, integers beyond a double. A hash
// must cover one meaning only.

/**
 * @typedef {'utf8' | 'syntax' | 'end' | 'trailing' | 'depth' | 'values' | 'duplicate' | 'surrogate' | 'nul' | 'integer' | 'overflow'
 *   } JsonReason
 */

/**
 * @typedef {object} Node
 * @property {string} raw the source text
 * @property {null | boolean | number | string | Node[] | Map<string, Node>} value
 */

const MAX_DEPTH = 64;
const MAX_VALUES = 250_000;

const WHITE_SPACE = /[ \t\n\r]*/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
/** U+0000, or half of a surrogate pair. */
const UNFIT = /[\0\p{Cs}]/u;
const HEX = /[0-9a-fA-F]{4}/y;
/** @type {Record<string, string>} */
const ESCAPES = {
	'"': '"',
	"\\": "\\",
	"/": "/",
	b: "\b",
	f: "\f",
	n: "\n",
	r: "\r",
	t: "\t",
};
/** @type {[string, null | boolean][]} */
const WORDS = [
	["null", null],
	["true", true],
	["false", false],
];

export class JsonError extends Error {
	/**
	 * @param {JsonReason} reason
	 * @param {number} offset in UTF-16 code units
	 */
	constructor(reason, offset) {
		super(`${reason} at ${offset}`);
		this.reason = reason;
		this.offset = offset;
	}
}

/**
 * @param {string} text
 * @returns {Node}
 */
export function parseJson(text) {
	const scanner = new Scanner(text);
	scanner.skip(WHITE_SPACE);
	const node = scanner.node(0);
	scanner.skip(WHITE_SPACE);
	if (scanner.at < text.length) throw new JsonError("trailing", scanner.at);
	return node;
}

class Scanner {
	/** @param {string} text */
	constructor(text) {
		this.text = text;
		this.at = 0;
		this.values = 0;
	}

	/** @param {RegExp} pattern sticky, and matching the empty text too */
	skip(pattern) {
		pattern.lastIndex = this.at;
		pattern.test(this.text);
		this.at = Math.max(this.at, pattern.lastIndex);
	}

	/** @param {string} character */
	take(character) {
		const found = this.text[this.at] === character;
		if (found) this.at += 1;
		return found;
	}

	/** @param {string} character */
	require(character) {
		if (!this.take(character)) throw this.unexpected();
	}

	unexpected() {
		return new JsonError(
			this.at < this.text.length ? "syntax" : "end",
			this.at,
		);
	}

	/**
	 * @param {number} depth
	 * @returns {Node}
	 */
	node(depth) {
		const start = this.at;
		this.values += 1;
		if (this.values > MAX_VALUES) throw new JsonError("values", start);
		const value = this.value(depth);
		return { raw: this.text.slice(start, this.at), value };
	}

	/**
	 * @param {number} depth
	 * @returns {Node['value']}
	 */
	value(depth) {
		const first = this.text[this.at];
		if (first === '"') return this.string();
		if (first === "{" || first === "[") {
			if (depth === MAX_DEPTH) throw new JsonError("depth", this.at);
			this.at += 1;
			this.skip(WHITE_SPACE);
			return first === "{" ? this.members(depth + 1) : this.items(depth + 1);
		}
		if (
			first !== undefined &&
			(first === "-" || (first >= "0" && first <= "9"))
		)
			return this.number();
		for (const [word, value] of WORDS) {
			if (this.text.startsWith(word, this.at)) {
				this.at += word.length;
				return value;
			}
		}
		throw this.unexpected();
	}

	/** @param {number} depth */
	items(depth) {
		/** @type {Node[]} */
		const items = [];
		if (this.take("]")) return items;
		for (;;) {
			this.skip(WHITE_SPACE);
			items.push(this.node(depth));
			this.skip(WHITE_SPACE);
			if (this.take("]")) return items;
			this.require(",");
		}
	}

	/** @param {number} depth */
	members(depth) {
		/** @type {Map<string, Node>} */
		const members = new Map();
		if (this.take("}")) return members;
		for (;;) {
			this.skip(WHITE_SPACE);
			const start = this.at;
			const name = this.string();
			if (members.has(name)) throw new JsonError("duplicate", start);
			this.skip(WHITE_SPACE);
			this.require(":");
			this.skip(WHITE_SPACE);
			members.set(name, this.node(depth));
			this.skip(WHITE_SPACE);
			if (this.take("}")) return members;
			this.require(",");
		}
	}

	string() {
		const start = this.at;
		this.require('"');
		const plain = this.plain();
		if (this.take('"')) return plain;
		const quick = this.unescaped(start);
		if (quick !== null) return quick;
		let text = plain;
		while (!this.take('"')) text += this.escape() + this.plain();
		return text;
	}

	/**
	 * A string with escapes, read by the browser itself, which is faster for long ones. Null if
	 * something is wrong with it.
	 * @param {number} start
	 * @returns {string | null}
	 */
	unescaped(start) {
		let end = this.at;
		let isEscaped = true;
		while (isEscaped) {
			end = this.text.indexOf('"', end) + 1;
			if (end === 0) return null;
			let slash = end - 2;
			while (this.text[slash] === "\\") slash -= 1;
			isEscaped = (end - slash) % 2 === 1;
		}
		try {
			const text = JSON.parse(this.text.slice(start, end));
			if (UNFIT.test(text)) return null;
			this.at = end;
			return text;
		} catch {
			return null;
		}
	}

	/** The longest run without a quote, escape or control character. */
	plain() {
		const start = this.at;
		this.skip(PLAIN);
		return this.text.slice(start, this.at);
	}

	escape() {
		const start = this.at;
		this.require("\\");
		const letter = this.text[this.at] ?? "";
		if (letter !== "u") {
			const meant = ESCAPES[letter];
			if (meant === undefined) throw this.unexpected();
			this.at += 1;
			return meant;
		}
		const unit = this.codeUnit();
		if (unit === 0) throw new JsonError("nul", start);
		if (unit < 0xd800 || unit > 0xdfff) return String.fromCharCode(unit);
		if (unit > 0xdbff || !this.text.startsWith("\\u", this.at))
			throw new JsonError("surrogate", start);
		this.at += 1;
		const low = this.codeUnit();
		if (low < 0xdc00 || low > 0xdfff) throw new JsonError("surrogate", start);
		return String.fromCharCode(unit, low);
	}

	/** The letter `u` and the four hexadecimal digits behind it. */
	codeUnit() {
		this.require("u");
		HEX.lastIndex = this.at;
		const digits = HEX.exec(this.text);
		if (digits === null) throw this.unexpected();
		this.at += 4;
		return Number.parseInt(digits[0], 16);
	}

	number() {
		const start = this.at;
		NUMBER.lastIndex = start;
		const found = NUMBER.exec(this.text);
		if (found === null) {
			this.at += 1;
			throw this.unexpected();
		}
		this.at += found[0].length;
		// More digits after a leading zero, or a point at the end, are no JSON: the next token
		// fails.
		const value = Number(found[0]);
		if (!Number.isFinite(value)) throw new JsonError("overflow", start);
		const isInteger = found[1] === undefined && found[2] === undefined;
		if (isInteger && !Number.isSafeInteger(value))
			throw new JsonError("integer", start);
		return value;
	}
}
