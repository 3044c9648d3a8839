// Colours for code, line by line: comments, texts, numbers and keywords of a few languages. A line
// is judged by itself, so the inside of a comment or text of several lines is left plain. The tokens
// together are always the line, character by character.

/** @typedef {'comment' | 'text' | 'number' | 'keyword'} TokenKind */
/** @typedef {{ kind: TokenKind | null, text: string }} Token */
/** @typedef {{ pattern: RegExp, keywords: Set<string>, ignoresCase: boolean }} Language */

/** Nobody reads longer ones by their colours. */
const MOST_CHARS = 500;

const QUOTED = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/;
/** In Rust a quote may begin a lifetime. */
const DOUBLE_QUOTED = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)'/;
const TEMPLATE = /`(?:[^`\\]|\\.)*`/;
const SLASHES = /\/\/.*|\/\*.*?\*\//;
const HASH = /(?<![\w$])#.*/;
const DASHES = /--.*|\/\*.*?\*\//;
const NUMBER = /\b(?:0[xob][\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?)\b/;
const WORD = /[A-Za-z_$][\w$]*/;

/**
 * @param {RegExp[]} comments
 * @param {RegExp[]} quotes
 * @param {string} keywords
 * @param {boolean} [ignoresCase]
 * @returns {Language}
 */
function language(comments, quotes, keywords, ignoresCase = false) {
	const any = (/** @type {RegExp[]} */ list) =>
		list.map(({ source }) => source).join("|");
	return {
		pattern: new RegExp(
			`(${any(quotes)})|(${any(comments)})|(${NUMBER.source})|(${WORD.source})`,
			"g",
		),
		keywords: new Set(keywords.split(" ")),
		ignoresCase,
	};
}

const C_WORDS =
	"auto bool break case catch char class const continue default delete do double else enum extern false final float for goto if inline int long namespace new null nullptr operator override private protected public return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while";

const LANGUAGES = {
	rust: language(
		[SLASHES],
		[DOUBLE_QUOTED],
		"as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
	),
	script: language(
		[SLASHES],
		[QUOTED, TEMPLATE],
		"abstract any as async await boolean break case catch class const continue debugger default delete do else enum export extends false finally for from function get if implements import in instanceof interface let new null number of private protected public readonly return set static string super switch this throw true try type typeof undefined var void while with yield",
	),
	python: language(
		[HASH],
		[QUOTED],
		"and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return self True try while with yield",
	),
	go: language(
		[SLASHES],
		[QUOTED, TEMPLATE],
		"break case chan const continue default defer else fallthrough false for func go goto if import interface map nil package range return select struct switch true type var",
	),
	c: language([SLASHES], [QUOTED], C_WORDS),
	java: language(
		[SLASHES],
		[QUOTED],
		`${C_WORDS} abstract boolean byte extends finally fun implements import instanceof interface package super synchronized throws val var when`,
	),
	ruby: language(
		[HASH],
		[QUOTED],
		"and begin break case class def do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield",
	),
	shell: language(
		[HASH],
		[QUOTED],
		"case do done elif else esac exit export fi for function if in local readonly return set shift then unset until while",
	),
	sql: language(
		[DASHES],
		[QUOTED],
		"add alter and as asc begin between by cascade case check column commit constraint create default delete desc distinct drop else end exists false foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then true union unique update using values view when where with",
		true,
	),
	data: language([HASH], [QUOTED], "true false null yes no on off"),
};

/** @type {Record<string, keyof typeof LANGUAGES>} */
const ENDINGS = {
	rs: "rust",
	js: "script",
	mjs: "script",
	cjs: "script",
	jsx: "script",
	ts: "script",
	tsx: "script",
	py: "python",
	pyi: "python",
	go: "go",
	c: "c",
	h: "c",
	cc: "c",
	cpp: "c",
	hpp: "c",
	cs: "java",
	java: "java",
	kt: "java",
	kts: "java",
	scala: "java",
	swift: "java",
	rb: "ruby",
	sh: "shell",
	bash: "shell",
	zsh: "shell",
	sql: "sql",
	json: "data",
	toml: "data",
	yaml: "data",
	yml: "data",
	tf: "data",
};

/**
 * @param {string} path
 * @returns {Language | null}
 */
export function languageOf(path) {
	const ending = /\.([A-Za-z]+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
	return Object.hasOwn(ENDINGS, ending) ? LANGUAGES[ENDINGS[ending]] : null;
}

const KINDS = /** @type {const} */ (["text", "comment", "number"]);

/**
 * @param {string} line
 * @param {Language} language
 * @returns {Token[]}
 */
export function tokensOf(line, { pattern, keywords, ignoresCase }) {
	if (line.length > MOST_CHARS) return [{ kind: null, text: line }];
	/** @type {Token[]} */
	const tokens = [];
	const push = (
		/** @type {TokenKind | null} */ kind,
		/** @type {string} */ text,
	) => {
		const last = tokens[tokens.length - 1];
		if (text === "") return;
		if (last && last.kind === kind) last.text += text;
		else tokens.push({ kind, text });
	};
	let at = 0;
	for (const match of line.matchAll(pattern)) {
		const from = match.index ?? at;
		push(null, line.slice(at, from));
		const [text, quoted, comment, number] = match;
		const found = [quoted, comment, number].findIndex(
			(group) => group !== undefined,
		);
		const isKeyword = keywords.has(ignoresCase ? text.toLowerCase() : text);
		push(found >= 0 ? KINDS[found] : isKeyword ? "keyword" : null, text);
		at = from + text.length;
	}
	push(null, line.slice(at));
	return tokens;
}
