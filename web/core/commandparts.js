// The parts of a shell command, for the eye: programs, options, texts, pipes, redirections. It
// decides nothing. From the first thing on that it does not know for certain, the rest is plain.
// The parts together are always the command, character by character.

/**
 * @typedef {'program' | 'option' | 'word' | 'text' | 'variable' | 'operator' | 'redirection' | 'comment' | 'space' | 'plain'} PartKind
 */
/** @typedef {{ kind: PartKind, text: string }} Part */

/** Longer ones are shown plain. */
const MOST_CHARS = 20_000;

const SPACE = /[ \t]+/y;
const LINE_END = /(?:\\\n|\n)+/y;
const OPERATOR = /(?:&&|\|\||\|&|[|;&])/y;
const REDIRECTION = /(?:[0-9]*(?:>>|>\||>&|<&|>|<)(?![<(])|&>>?)/y;
const COMMENT = /#[^\n]*/y;
/** Pieces of a word. Substitutions and patterns of the shell's own language are none. */
const PIECES = [
	/'[^']*'/y,
	/"(?:[^"\\$`]|\\[\s\S]|\$(?![({`]))*"/y,
	/\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\}|[0-9?#@*])/y,
	/\\[^\n]/y,
	/[^\s'"$`\\|&;<>(){}#!]+/y,
	/[#!{}](?=\S)/y,
	/[{}](?=\s|$)/y,
];
const ASSIGNMENT = /^[A-Za-z_][A-Za-z0-9_]*=/;
/** They begin something with a grammar of its own. */
const KEYWORDS = new Set(
	"case coproc do done elif else esac fi for function if in select then until while [[ {".split(
		" ",
	),
);

/**
 * @param {string} text
 * @returns {Part[]}
 */
export function commandParts(text) {
	return reading(text).parts;
}

/**
 * The words of each command in it, without quotes; null if any of it is not certain.
 * @param {string} text
 * @returns {string[][] | null}
 */
export function simpleCommands(text) {
	const { parts, commands } = reading(text);
	return parts.some(({ kind }) => kind === "plain") ? null : commands;
}

/** @param {string} text */
function reading(text) {
	/** @type {Part[]} */
	const parts = [];
	/** @type {string[][]} */
	const commands = [[]];
	const words = () => /** @type {string[]} */ (commands[commands.length - 1]);
	let at = 0;
	let isTarget = false;
	const take = (/** @type {RegExp} */ pattern) => {
		pattern.lastIndex = at;
		const found = pattern.exec(text)?.[0] ?? null;
		if (found !== null) at += found.length;
		return found;
	};
	const push = (/** @type {PartKind} */ kind, /** @type {string} */ part) =>
		parts.push({ kind, text: part });
	const next = () => {
		const space = take(SPACE);
		if (space !== null) return push("space", space);
		const end = take(LINE_END);
		if (end !== null) {
			if (/[^\\]\n|^\n/.test(end)) commands.push([]);
			return push("space", end);
		}
		const isWordStart =
			parts.length === 0 || parts[parts.length - 1].kind === "space";
		const comment = isWordStart ? take(COMMENT) : null;
		if (comment !== null) return push("comment", comment);
		const redirection = take(REDIRECTION);
		if (redirection !== null) {
			isTarget = true;
			return push("redirection", redirection);
		}
		const operator = take(OPERATOR);
		if (operator !== null) {
			commands.push([]);
			return push("operator", operator);
		}
		return word();
	};
	const word = () => {
		const from = at;
		let plain = "";
		let kind = /** @type {PartKind} */ ("word");
		for (let found = true; found; ) {
			found = false;
			for (const [index, pattern] of PIECES.entries()) {
				const piece = take(pattern);
				if (piece === null) continue;
				found = true;
				if (index <= 1) {
					plain += piece.slice(1, -1);
					if (from + piece.length === at) kind = "text";
				} else {
					plain += index === 3 ? piece.slice(1) : piece;
					if (index === 2 && from + piece.length === at) kind = "variable";
				}
				break;
			}
		}
		if (at === from) return false;
		const whole = text.slice(from, at);
		if (isTarget) {
			isTarget = false;
			push("redirection", whole);
		} else if (words().length === 0 && !ASSIGNMENT.test(whole)) {
			if (KEYWORDS.has(whole)) {
				at = from;
				return false;
			}
			words().push(plain);
			push("program", whole);
		} else {
			if (words().length > 0) words().push(plain);
			push(
				whole.startsWith("-") && whole !== "-"
					? "option"
					: words().length === 0
						? "variable"
						: kind,
				whole,
			);
		}
		return true;
	};
	if (text.length <= MOST_CHARS) while (at < text.length && next() !== false);
	if (at < text.length) push("plain", text.slice(at));
	return { parts, commands: commands.filter((one) => one.length > 0) };
}
