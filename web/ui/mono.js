// How much text of the fixed-width font fits, for estimates of heights.

import { el } from "./dom.js";

/** The height of a line in rows of text; the same as in views.css. */
export const LINE_PX = 20;
/**
 * A longer line is cut into pieces of this length, each a row of its own: browsers lay out huge
 * lines slowly.
 */
export const PIECE = 2000;
/** Longer ones are marked: their end is far from their beginning. */
export const LONG_LINE = 500;

/** @type {number | null} */
let charPx = null;

export function charWidth() {
	if (charPx !== null) return charPx;
	const probe = el(
		"span",
		{ class: "rows-probe", "aria-hidden": "true" },
		"x".repeat(100),
	);
	document.body.append(probe);
	charPx = probe.getBoundingClientRect().width / 100 || 8;
	probe.remove();
	return charPx;
}

/**
 * Lines that a text of this length takes at this width.
 * @param {number} length
 * @param {number} widthPx
 */
export function wrapped(length, widthPx) {
	const columns = Math.max(Math.floor(widthPx / charWidth()), 10);
	return Math.max(Math.ceil(length / columns), 1);
}

/**
 * Where a long line is cut, never inside a character.
 * @param {string} line
 */
export function cuts(line) {
	const ends = [];
	for (let at = PIECE; at < line.length; at += PIECE) {
		const code = line.charCodeAt(at);
		ends.push(code >= 0xdc00 && code < 0xe000 ? at + 1 : at);
	}
	ends.push(line.length);
	return ends;
}
