// Single keys. They are left alone while someone types, or while a dialog is open.

import { helpDialog, isDialogOpen } from "./dialog.js";

const PLACES = /** @type {Record<string, string>} */ ({
	i: "#/inbox",
	a: "#/agents",
	h: "#/history",
	d: "#/devices",
	s: "#/settings",
});
/** A person who types must not decide because the field went away meanwhile. */
const TYPING_MS = 1000;
/** Keys that begin a combination, and are nothing by themselves. */
const MODIFIERS = ["Shift", "Control", "Alt", "AltGraph", "Meta", "CapsLock"];

/** @param {EventTarget | null} target */
function isTyping(target) {
	return (
		target instanceof Element &&
		target.closest("input, textarea, select, [contenteditable]") !== null
	);
}

/**
 * After `g` the next key names a place, and never does anything else, however late it comes.
 * @param {() => Record<string, () => void>} keysOfView
 * @param {(hash: string) => void} go
 */
export function listenToKeys(keysOfView, go) {
	let isPrefixed = false;
	let typedUntil = 0;
	document.addEventListener("keydown", (event) => {
		if (MODIFIERS.includes(event.key)) return;
		if (isTyping(event.target)) {
			isPrefixed = false;
			// Escape leaves the field on purpose.
			typedUntil = event.key === "Escape" ? 0 : event.timeStamp + TYPING_MS;
			if (event.key === "Escape" && event.target instanceof HTMLElement)
				event.target.blur();
			return;
		}
		if (
			event.ctrlKey ||
			event.metaKey ||
			event.altKey ||
			event.repeat ||
			event.isComposing
		)
			return;
		if (isDialogOpen()) {
			isPrefixed = false;
			return;
		}
		if (event.timeStamp < typedUntil) {
			typedUntil = event.timeStamp + TYPING_MS;
			return;
		}
		const wasPrefixed = isPrefixed;
		isPrefixed = event.key === "g" && !wasPrefixed;
		const place = wasPrefixed ? PLACES[event.key] : undefined;
		const act = place
			? () => go(place)
			: wasPrefixed
				? null
				: event.key === "?"
					? helpDialog
					: keysOfView()[event.key];
		if (!act) return;
		event.preventDefault();
		act();
	});
}
