// Dialogs: on a phone they come from below.

import { texts } from "../texts.js";
import { el, freshId } from "./dom.js";
import { button } from "./parts.js";

/** @typedef {import('./dom.js').Child} Child */

/**
 * Opens a dialog. It is removed when it closes.
 * @param {string} title
 * @param {(dialog: HTMLDialogElement) => (Child | Child[])[]} content
 */
export function openDialog(title, content) {
	const id = freshId();
	const dialog = el("dialog", { class: "dialog", "aria-labelledby": id });
	const body = el(
		"div",
		{ class: "dialog-body" },
		el("h2", { id }, title),
		content(dialog).flat(),
	);
	dialog.append(body);
	dialog.addEventListener("close", () => dialog.remove());
	dialog.addEventListener("click", (event) => {
		if (event.target === dialog) dialog.close();
	});
	document.body.append(dialog);
	dialog.showModal();
	return dialog;
}

/** A dialog is about what stands below it. When that changes, it must not stay. */
export function closeDialogs() {
	for (const dialog of document.querySelectorAll("dialog")) {
		dialog.close();
		dialog.remove();
	}
}

/** The same in every view. */
export function isDialogOpen() {
	return document.querySelector("dialog[open]") !== null;
}

/**
 * Asks before something that cannot be undone.
 * @param {{ title: string, text: Child | Child[], action: string, kind?: string }} question
 * @param {(place: HTMLElement, control: HTMLButtonElement) => Promise<boolean>} act true: done,
 *   close it
 */
export function confirmDialog(question, act) {
	const place = el("div", null);
	const go = button(question.action, { kind: question.kind ?? "primary" });
	const dialog = openDialog(question.title, () => [
		...[question.text]
			.flat()
			.map((text) =>
				typeof text === "string" ? el("p", { class: "quiet" }, text) : text,
			),
		place,
		el(
			"div",
			{ class: "dialog-actions" },
			button(texts.cancel, { on: () => dialog.close() }),
			go,
		),
	]);
	go.addEventListener("click", async () => {
		if (await act(place, go)) dialog.close();
	});
	return dialog;
}

export function helpDialog() {
	const rows = texts.help.keys.map(([keys, text]) =>
		el(
			"li",
			{ class: "row spread" },
			el("span", null, text),
			el(
				"span",
				null,
				keys.split(" ").map((key) => el("kbd", null, key)),
			),
		),
	);
	const dialog = openDialog(texts.help.title, () => [
		el("ul", { class: "stack" }, rows),
		el(
			"div",
			{ class: "dialog-actions" },
			button(texts.close, { on: () => dialog.close() }),
		),
	]);
}
