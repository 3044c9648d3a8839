// Reads the TOML that profiles are written in: tables, arrays of tables, and values that are
// strings, booleans, arrays or inline tables. Anything else, and every repeated name, is refused.
// Errors name the line and never the text, which has secrets.

export type TomlValue = string | boolean | TomlValue[] | TomlTable;
export type TomlTable = Map<string, TomlValue>;

export class TomlError extends Error {
	readonly line: number;

	constructor(problem: string, line: number) {
		super(`line ${line}: ${problem}`);
		this.line = line;
	}
}

const BLANK = /[ \t]*/y;
const BLANK_LINES = /(?:[ \t]|\r?\n|#[^\n]*)*/y;
const END_OF_LINE = /[ \t]*(?:#[^\n]*)?(?:\r?\n|$)/y;
const BARE_KEY = /[A-Za-z0-9_-]+/y;
const LITERAL = /'([^'\n\r]*)'/y;
const BASIC = /"((?:[^"\\\n\r]|\\.)*)"/y;
const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))/gu;
const ESCAPED: Record<string, string> = {
	b: "\b",
	t: "\t",
	n: "\n",
	f: "\f",
	r: "\r",
	'"': '"',
	"\\": "\\",
};
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/;

export function parseToml(text: string): TomlTable {
	return new TomlReader(text).document();
}

class TomlReader {
	readonly #text: string;
	#at = 0;
	/** Tables that a header, or an inline table, has completed. */
	readonly #closed = new Set<TomlTable>();
	/** Arrays that headers with two brackets made. */
	readonly #lists = new Set<TomlValue[]>();

	constructor(text: string) {
		this.#text = text;
	}

	document(): TomlTable {
		if (CONTROL.test(this.#text)) throw this.#problem("a control character");
		const root: TomlTable = new Map();
		let table = root;
		for (;;) {
			this.#take(BLANK_LINES);
			if (this.#at >= this.#text.length) return root;
			table = this.#char("[") ? this.#header(root) : this.#entry(table);
			if (this.#take(END_OF_LINE) === null)
				throw this.#problem("more than one thing on a line");
		}
	}

	#problem(problem: string): TomlError {
		const before = this.#text.slice(0, this.#at);
		return new TomlError(problem, before.split("\n").length);
	}

	#take(pattern: RegExp): RegExpExecArray | null {
		pattern.lastIndex = this.#at;
		const found = pattern.exec(this.#text);
		if (found !== null) this.#at = pattern.lastIndex;
		return found;
	}

	#char(character: string): boolean {
		const isThere = this.#text.startsWith(character, this.#at);
		if (isThere) this.#at += character.length;
		return isThere;
	}

	#require(character: string): void {
		if (!this.#char(character)) throw this.#problem(`expected ${character}`);
	}

	#header(root: TomlTable): TomlTable {
		const isList = this.#char("[");
		const names = this.#dotted();
		this.#require(isList ? "]]" : "]");
		const last = names.pop() as string;
		let table = root;
		for (const name of names) table = this.#inner(table, name);
		if (isList) return this.#listItem(table, last);
		const found = table.get(last);
		const isTaken = found instanceof Map && this.#closed.has(found);
		if (isTaken || Array.isArray(found))
			throw this.#problem("a table that is there already");
		const inner = this.#inner(table, last);
		this.#closed.add(inner);
		return inner;
	}

	/** The table of this name, or the last one of a list of tables. */
	#inner(table: TomlTable, name: string): TomlTable {
		const found = table.get(name);
		if (found === undefined) {
			const made: TomlTable = new Map();
			table.set(name, made);
			return made;
		}
		const last =
			Array.isArray(found) && this.#lists.has(found)
				? found[found.length - 1]
				: found;
		if (!(last instanceof Map)) throw this.#problem("a name that is taken");
		return last;
	}

	#listItem(table: TomlTable, name: string): TomlTable {
		const list = table.get(name) ?? [];
		if (!Array.isArray(list)) throw this.#problem("a name that is taken");
		if (table.has(name) && !this.#lists.has(list))
			throw this.#problem("a name that is taken");
		this.#lists.add(list);
		const made: TomlTable = new Map();
		list.push(made);
		table.set(name, list);
		this.#closed.add(made);
		return made;
	}

	/** Reads `name = value`, and gives the table back. */
	#entry(table: TomlTable): TomlTable {
		const names = this.#dotted();
		const last = names.pop() as string;
		let inner = table;
		for (const name of names) {
			inner = this.#inner(inner, name);
			if (this.#closed.has(inner)) throw this.#problem("a name that is taken");
		}
		this.#require("=");
		this.#take(BLANK);
		if (inner.has(last)) throw this.#problem("a name that is there twice");
		inner.set(last, this.#value(0));
		return table;
	}

	#dotted(): string[] {
		const names: string[] = [];
		do {
			this.#take(BLANK);
			names.push(this.#key());
			this.#take(BLANK);
		} while (this.#char("."));
		return names;
	}

	#key(): string {
		const bare = this.#take(BARE_KEY);
		return bare === null ? this.#string() : bare[0];
	}

	#string(): string {
		if (
			this.#text.startsWith('"""', this.#at) ||
			this.#text.startsWith("'''", this.#at)
		)
			throw this.#problem("a string of several lines");
		const literal = this.#take(LITERAL);
		if (literal !== null) return literal[1] as string;
		const basic = this.#take(BASIC);
		if (basic === null) throw this.#problem("expected a string");
		return (basic[1] as string).replace(ESCAPE, (_, short, long, letter) => {
			const meant = ESCAPED[letter];
			if (meant !== undefined) return meant;
			const code = Number.parseInt(short ?? long ?? "", 16);
			const isScalar = code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
			if (!isScalar) throw this.#problem("an escape that means nothing");
			return String.fromCodePoint(code);
		});
	}

	#value(depth: number): TomlValue {
		if (depth > 8) throw this.#problem("nested too deep");
		if (this.#char("[")) return this.#array(depth);
		if (this.#char("{")) return this.#inlineTable(depth);
		if (this.#char("true")) return true;
		if (this.#char("false")) return false;
		return this.#string();
	}

	#array(depth: number): TomlValue[] {
		const items: TomlValue[] = [];
		for (;;) {
			this.#take(BLANK_LINES);
			if (this.#char("]")) return items;
			items.push(this.#value(depth + 1));
			this.#take(BLANK_LINES);
			if (this.#char("]")) return items;
			this.#require(",");
		}
	}

	#inlineTable(depth: number): TomlTable {
		const table: TomlTable = new Map();
		this.#closed.add(table);
		this.#take(BLANK);
		if (this.#char("}")) return table;
		for (;;) {
			this.#take(BLANK);
			const name = this.#key();
			this.#take(BLANK);
			this.#require("=");
			this.#take(BLANK);
			if (table.has(name)) throw this.#problem("a name that is there twice");
			table.set(name, this.#value(depth + 1));
			this.#take(BLANK);
			if (this.#char("}")) return table;
			this.#require(",");
		}
	}
}
