// Short messages on the screen, repeated for screen readers.

import { el } from "./dom.js";

const SHOWN_MS = 4000;

const live = el("div", {
	class: "unseen",
	"aria-live": "polite",
	role: "status",
});
const toasts = el("div", { class: "toasts" });

/** To be added to the page once. */
export const announcements = [live, toasts];

/** @param {string} text */
export function announce(text) {
	// Each is a node of its own: several at once are all said, and what was said before is said
	// again.
	const said = el("p", null, text);
	live.append(said);
	setTimeout(() => said.remove(), SHOWN_MS);
}

/** @param {string} text */
export function toast(text) {
	const shown = el("div", { class: "toast" }, text);
	toasts.append(shown);
	announce(text);
	setTimeout(() => shown.remove(), SHOWN_MS);
}
