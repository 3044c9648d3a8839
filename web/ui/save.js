// Saves a text as a file.

import { el } from "./dom.js";

/**
 * @param {string} name
 * @param {string} text
 */
export function saveFile(name, text) {
	const address = URL.createObjectURL(
		new Blob([text], { type: "application/json" }),
	);
	const link = el("a", { href: address, download: name });
	link.click();
	// The browser has taken it by then.
	setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
