// A text as numbered lines, complete, with what could mislead made visible.

import { texts } from "../texts.js";
import { el } from "./dom.js";
import { marked } from "./marked.js";
import { cuts, LINE_PX, LONG_LINE, PIECE, wrapped } from "./mono.js";
import { Rows } from "./rows.js";

/**
 * One row: a line, or a piece of a long one.
 * @typedef {{ line: number, text: string, from: number, length: number }} Piece
 */

/**
 * @param {string[]} lines
 * @returns {Piece[]}
 */
function pieces(lines) {
	const rows = [];
	for (let line = 0; line < lines.length; line += 1) {
		const text = lines[line];
		if (text.length <= PIECE) {
			rows.push({ line, text, from: 0, length: text.length });
			continue;
		}
		let from = 0;
		for (const end of cuts(text)) {
			rows.push({
				line,
				text: text.slice(from, end),
				from,
				length: text.length,
			});
			from = end;
		}
	}
	return rows;
}

/**
 * The note beside a very long line.
 * @param {number} length
 */
export function longMark(length) {
	return el(
		"span",
		{ class: "chip warn long-mark" },
		texts.request.longLineMark(length),
	);
}

/** @param {{ kind: string, text: string }[]} parts */
function partsByLine(parts) {
	/** @type {{ kind: string, text: string }[][]} */
	const lines = [[]];
	for (const { kind, text } of parts)
		for (const [at, piece] of text.split("\n").entries()) {
			if (at > 0) lines.push([]);
			if (piece !== "") lines[lines.length - 1].push({ kind, text: piece });
		}
	return lines;
}

/**
 * @param {string} text
 * @param {string} label
 * @param {{ strict?: boolean, parts?: { kind: string, text: string }[] }} [options] parts: the text
 *   in pieces that are set apart
 */
export function linesView(text, label, options) {
	const rows = new Rows(label);
	// Not a final line feed as a line of its own; but a carriage return is part of its line.
	const source = pieces(
		(text.endsWith("\n") ? text.slice(0, -1) : text).split("\n"),
	);
	const digits = String(
		source.length ? source[source.length - 1].line + 1 : 1,
	).length;
	rows.element.style.setProperty("--digits", String(digits));
	rows.element.classList.add("lines");
	const partsOf = options?.parts && partsByLine(options.parts);
	const render = (/** @type {number} */ index) => {
		const { line, text: piece, from, length } = source[index];
		return el(
			"div",
			{ class: "line" },
			el("span", { class: "number", "data-n": from === 0 ? line + 1 : "" }),
			el(
				"span",
				{ class: "code" },
				from === 0 && length > LONG_LINE && longMark(length),
				partsOf && length === piece.length
					? (partsOf[line] ?? []).map((part) =>
							el(
								"span",
								{ class: `part-${part.kind}` },
								marked(part.text, options),
							),
						)
					: marked(piece, options),
			),
		);
	};
	/** @type {(index: number, width: number) => number} */
	const estimate = (index, width) =>
		wrapped(source[index].text.length, width - 40) * LINE_PX;
	return {
		element: rows.element,
		rows,
		start: () => rows.show({ count: source.length, render, estimate }),
		dispose: () => rows.dispose(),
		textOf: (/** @type {number} */ index) => source[index].text,
		count: () => source.length,
	};
}
