// Finding text in rows of which most do not exist in the page, so that the browser's own search
// cannot.

import { texts } from "../texts.js";
import { el } from "./dom.js";
import { iconButton } from "./parts.js";

/**
 * Rows that can be searched.
 * @typedef {object} Searchable
 * @property {import('./rows.js').Rows} rows
 * @property {() => number} count
 * @property {(index: number) => string} textOf
 * @property {() => void} [unfold] shows what is folded: it could not be found otherwise
 */

/** @param {() => Searchable | null} where */
export function finder(where) {
	const input = el("input", {
		class: "input",
		type: "search",
		placeholder: texts.request.find,
		"aria-label": texts.request.find,
	});
	const status = el("span", { class: "fine quiet nowrap", role: "status" });
	/** @type {number[]} */
	let found = [];
	let at = -1;
	let searched = -1;

	const search = () => {
		const source = where();
		const wanted = input.value.toLowerCase();
		found = [];
		at = -1;
		clear();
		if (!source || !wanted) {
			status.textContent = "";
			return;
		}
		source.unfold?.();
		searched = source.count();
		for (let index = 0; index < searched; index += 1) {
			if (source.textOf(index).toLowerCase().includes(wanted))
				found.push(index);
		}
		step(1);
	};
	const clear = () => {
		for (const line of document.querySelectorAll(".rows .found"))
			line.classList.remove("found");
	};
	const step = (/** @type {number} */ by) => {
		const source = where();
		// Folding and unfolding arrange the rows anew.
		if (source && source.count() !== searched) return search();
		if (source && found.length > 0) {
			at = (at + by + found.length) % found.length;
			source.rows.reveal(found[at], innerHeight / 3);
			clear();
			source.rows.elementOf(found[at])?.classList.add("found");
		}
		status.textContent = texts.request.found(at + 1, found.length);
	};
	input.addEventListener("input", search);
	input.addEventListener("keydown", (event) => {
		if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
		if (event.key === "Escape") {
			clear();
			element.hidden = true;
		}
	});
	const element = el(
		"div",
		{ class: "finder", role: "search", hidden: true },
		input,
		status,
		iconButton(texts.request.findPrevious, "up", () => step(-1)),
		iconButton(texts.request.findNext, "down", () => step(1)),
		iconButton(texts.close, "cross", () => {
			clear();
			element.hidden = true;
		}),
	);
	return {
		element,
		open: () => {
			element.hidden = false;
			input.focus();
			input.select();
		},
	};
}
