// Words of a request as they stand in a sentence: short, and on one line.

/** @typedef {import('./types.js').JsonObject} JsonObject */
/** @typedef {Exclude<keyof typeof import('../texts/inbox.js').inboxTexts.sentences, 'moreFiles' | 'moreQuestions' | 'from'>} SentenceName */

/**
 * `more` is a number of further files or questions; null: there are some.
 * @typedef {object} Sentence
 * @property {SentenceName} name
 * @property {Record<string, string>} values the request's own words
 * @property {number | null} [more]
 * @property {string | null} [server] the MCP server that is called
 */

export const MOST_CHARS = 120;

/**
 * @param {string} text
 * @param {number} most
 */
export function cut(text, most) {
	const characters = [...text.slice(0, 2 * most + 2)];
	return characters.length > most
		? `${characters.slice(0, most).join("")}…`
		: text;
}

/** @param {string} text */
export const linesOf = (text) =>
	text
		.split("\n")
		.map((line) => line.trim())
		.filter(Boolean);

/**
 * The first line, and a sign if there is more.
 * @param {string} text
 */
function line(text) {
	const [first = "", ...others] = linesOf(text);
	const shown = cut(first.replace(/^#+ +/, ""), MOST_CHARS);
	return others.length > 0 && !shown.endsWith("…") ? `${shown} …` : shown;
}

/**
 * The first of these members that is a text, or a number.
 * @param {JsonObject} members
 * @param {string[]} names
 * @returns {string | null}
 */
export function firstText(members, names) {
	for (const name of names) {
		const value = Object.hasOwn(members, name) ? members[name] : null;
		const text = typeof value === "number" ? String(value) : value;
		if (typeof text === "string" && text.trim() !== "") return line(text);
	}
	return null;
}
