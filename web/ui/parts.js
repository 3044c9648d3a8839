// The parts that views are made of.

import { Problem } from "../core/problem.js";
import { problemText } from "../texts/problems.js";
import { texts } from "../texts.js";
import { toast } from "./announce.js";
import { el, fill, freshId } from "./dom.js";
import { icon } from "./icons.js";

/** @typedef {import('./dom.js').Child} Child */
/** @typedef {import('./icons.js').IconName} IconName */

/**
 * @param {string} title
 * @param {{ actions?: Child[], lead?: string, back?: { href: string, text: string } | null }} head
 * @param {...(Child | Child[])} children
 */
export function page(title, head, ...children) {
	return el(
		"div",
		{ class: "page" },
		head.back &&
			el(
				"a",
				{ class: "back", href: head.back.href },
				icon("back", "small"),
				head.back.text,
			),
		el(
			"div",
			{ class: "page-head" },
			el("h1", { tabindex: "-1" }, title),
			head.actions ?? [],
		),
		head.lead && el("p", { class: "page-lead" }, prose(head.lead)),
		children.flat(),
	);
}

/**
 * @param {string} text
 * @param {{ kind?: string, icon?: IconName, on?: (event: MouseEvent) => void, type?: string, [attribute: string]: any }} [options]
 */
export function button(text, options = {}) {
	const { kind = "", icon: name, on, type = "button", ...rest } = options;
	return el(
		"button",
		{
			class: `button ${kind}`.trim(),
			type,
			on: on ? { click: on } : undefined,
			...rest,
		},
		name && icon(name),
		text,
	);
}

/**
 * A button with a symbol only.
 * @param {string} label
 * @param {IconName} name
 * @param {(event: MouseEvent) => void} on
 */
export function iconButton(label, name, on) {
	return el(
		"button",
		{
			class: "button plain small icon-only",
			type: "button",
			"aria-label": label,
			title: label,
			on: { click: on },
		},
		icon(name),
	);
}

/**
 * @param {string} text
 * @param {string} href
 * @param {string} [kind]
 * @param {IconName} [name]
 */
export function linkButton(text, href, kind = "", name) {
	return el(
		"a",
		{ class: `button ${kind}`.trim(), href },
		name && icon(name),
		text,
	);
}

/**
 * @param {'info' | 'warn' | 'bad' | 'good'} kind
 * @param {...(Child | Child[])} children
 */
export function note(kind, ...children) {
	const symbol =
		kind === "good" ? "check" : kind === "info" ? "info" : "warning";
	return el(
		"div",
		{ class: `note ${kind}`, role: kind === "bad" ? "alert" : undefined },
		icon(symbol),
		el("div", null, children.flat()),
	);
}

/**
 * Where there is nothing to show: why, and what to do next.
 * @param {IconName} name
 * @param {string} title
 * @param {string} text
 * @param {...Child} actions
 */
export function empty(name, title, text, ...actions) {
	return el(
		"div",
		{ class: "card empty" },
		el("div", { class: "sign" }, icon(name)),
		el("h2", null, title),
		el("p", null, prose(text)),
		actions,
	);
}

/**
 * The same as a whole view.
 * @param {Parameters<typeof empty>} content
 */
export function emptyPage(...content) {
	const element = empty(...content);
	element
		.querySelector("h2")
		?.replaceWith(el("h1", { tabindex: "-1" }, content[1]));
	return element;
}

/**
 * A text of ours, in which commands stand between backticks.
 * @param {string} text
 * @returns {Child[]}
 */
export function prose(text) {
	return text
		.split("`")
		.map((part, at) =>
			at % 2 === 1 ? el("code", { class: "command-name" }, part) : part,
		);
}

/**
 * Names and values.
 * @param {([string, Child | Child[]] | false | null | undefined)[]} rows
 */
export function facts(rows) {
	const kept = /** @type {[string, Child | Child[]][]} */ (
		rows.filter(Boolean)
	);
	return el(
		"dl",
		{ class: "facts" },
		kept.map(([name, value]) =>
			el("div", null, el("dt", null, name), el("dd", null, ...[value].flat())),
		),
	);
}

export function waiting() {
	return el(
		"div",
		{ class: "wait", role: "status" },
		el(
			"div",
			{ class: "row" },
			el("span", { class: "spinner" }),
			texts.loading,
		),
	);
}

/**
 * A labelled control.
 * @template {HTMLElement} T
 * @param {string} label
 * @param {T} control
 * @param {Child} [hint]
 */
export function field(label, control, hint) {
	const id = freshId();
	control.id = id;
	if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
	return el(
		"div",
		{ class: "field" },
		el("label", { for: id }, label),
		control,
		hint && el("p", { class: "hint", id: `${id}-hint` }, hint),
	);
}

/**
 * Text to copy.
 * @param {string} text
 * @param {string} label
 */
export function copyField(text, label) {
	const input = el("input", {
		class: "input mono",
		readonly: true,
		"aria-label": label,
		value: text,
	});
	input.addEventListener("focus", () => input.select());
	return el("div", { class: "copy-field" }, input, copyButton(text));
}

/**
 * @param {string} text
 * @param {string} [label]
 */
export function copyButton(text, label = texts.copy) {
	return button(label, {
		kind: "small",
		icon: "copy",
		on: () =>
			navigator.clipboard.writeText(text).then(
				() => toast(texts.copied),
				() => toast(texts.notCopied),
			),
	});
}

/**
 * A choice of a few, as buttons next to each other.
 * @template {string} T
 * @param {string} label
 * @param {[T, string][]} options
 * @param {T} chosen
 * @param {(value: T) => void} change
 */
export function segments(label, options, chosen, change) {
	const buttons = options.map(([value, text]) => {
		const one = el(
			"button",
			{ type: "button", "aria-pressed": String(value === chosen) },
			text,
		);
		one.addEventListener("click", () => {
			for (const other of buttons)
				other.setAttribute("aria-pressed", String(other === one));
			change(value);
		});
		return one;
	});
	return el(
		"div",
		{ class: "segments", role: "group", "aria-label": label },
		buttons,
	);
}

/**
 * The words for what was thrown. A defect has none of its own and is reported to the console.
 * @param {unknown} thrown
 */
export function errorText(thrown) {
	if (thrown instanceof Problem) return problemText(thrown);
	console.error(thrown);
	return texts.defect.text;
}

/** @param {unknown} thrown */
export function problemNote(thrown) {
	return note("bad", errorText(thrown));
}

/**
 * Runs what a button or form starts: disabled meanwhile, and an error shown in `place`.
 * @param {HTMLButtonElement} control
 * @param {HTMLElement} place
 * @param {() => Promise<void>} work
 * @param {string} [busyText]
 */
export async function busy(control, place, work, busyText) {
	const before = [...control.childNodes];
	control.disabled = true;
	fill(
		control,
		el("span", { class: "spinner" }),
		busyText ?? control.textContent ?? "",
	);
	fill(place);
	try {
		await work();
	} catch (thrown) {
		fill(place, problemNote(thrown));
	} finally {
		control.disabled = false;
		control.replaceChildren(...before);
	}
}
