// A QR code on the screen: black on white in every theme, since not every camera reads it inverted.

import { el, svg } from "./dom.js";
import { qrCode } from "./qr.js";

/** Light modules around it, as the standard asks for. */
const QUIET = 4;

/**
 * Null if the text is too long for one.
 * @param {string} text
 * @param {string} label
 */
export function qrView(text, label) {
	const code = qrCode(text);
	if (!code) return null;
	let path = "";
	for (let row = 0; row < code.size; row += 1) {
		for (let column = 0; column < code.size; column += 1) {
			if (!code.dark[row * code.size + column]) continue;
			let end = column;
			while (end < code.size && code.dark[row * code.size + end]) end += 1;
			path += `M${column + QUIET} ${row + QUIET}h${end - column}v1h${column - end}z`;
			column = end;
		}
	}
	const side = code.size + 2 * QUIET;
	const image = svg(
		"svg",
		{
			viewBox: `0 0 ${side} ${side}`,
			role: "img",
			"aria-label": label,
			"shape-rendering": "crispEdges",
		},
		svg("rect", { width: side, height: side, class: "qr-ground" }),
		svg("path", { d: path, class: "qr-ink" }),
	);
	return el("div", { class: "qr" }, image);
}
