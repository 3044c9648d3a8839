// Text from elsewhere: what could mislead is shown by its name, in a frame.

import { pieces, visibleText } from "../core/visible.js";
import { el } from "./dom.js";

export { visibleText };

/** @typedef {import('./dom.js').Child} Child */

/** Most texts have nothing else, and need no closer look. */
const DOUBTLESS = /^[\t\n\x20-\x7e]*$/;
const DOUBTLESS_LINE = /^[\x20-\x7e]*$/;

/** @param {string} text */
export function hasMarks(text) {
	return (
		!DOUBTLESS.test(text) && pieces(text).some((piece) => piece.mark !== null)
	);
}

/** @param {string} text */
export function countMarks(text) {
	let count = 0;
	// Only lines with something doubtful: the text may have megabytes.
	for (const [rest] of text.matchAll(/[^\t\n\x20-\x7e][^\n]*/g))
		count += pieces(rest).filter((piece) => piece.mark !== null).length;
	return count;
}

/**
 * The characters of a command, a path or a name that may be mistaken for others.
 * @param {string} text
 * @returns {string[]}
 */
export function lookAlikes(text) {
	if (DOUBTLESS.test(text)) return [];
	return pieces(text, { strict: true }).flatMap((piece) =>
		piece.mark === "lookalike" ? [`${[...piece.text][0]} (${piece.name})`] : [],
	);
}

/**
 * @param {string} text
 * @param {{ strict?: boolean, singleLine?: boolean }} [options] strict: everything but ASCII is
 *   marked too, foreign words calmly
 * @returns {Child[]}
 */
export function marked(text, options) {
	if ((options?.singleLine ? DOUBTLESS_LINE : DOUBTLESS).test(text))
		return [text];
	return pieces(text, options).map((piece) => {
		if (piece.mark === null) return piece.text;
		if (piece.mark === "foreign")
			return el("span", { class: "foreign", title: piece.name }, piece.text);
		const name = piece.count > 1 ? `${piece.name} ×${piece.count}` : piece.name;
		if (piece.mark === "lookalike")
			return el(
				"span",
				{ class: "mark lookalike" },
				piece.text,
				el("sub", null, name),
			);
		return el("span", { class: `mark ${piece.mark}` }, name);
	});
}

/**
 * A name, a path or an address: it has one line, and everything but ASCII is marked.
 * @param {string} text
 */
export function markedName(text) {
	return marked(text, { strict: true, singleLine: true });
}
