// Any JSON value as a tree that folds. All of it, as rows; texts of several lines keep their lines.

import { texts } from "../texts.js";
import { el } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { longMark } from "../ui/lines.js";
import { marked } from "../ui/marked.js";
import { cuts, LINE_PX, LONG_LINE, wrapped } from "../ui/mono.js";
import { Rows } from "../ui/rows.js";

/** @typedef {import('../core/types.js').JsonValue} JsonValue */

/**
 * `name` is that of a member, or null. A text of several lines has a row for each, of which only
 * the first has the name.
 * @typedef {object} Row
 * @property {number} depth
 * @property {string | null} name
 * @property {'text' | 'number' | 'word' | 'open' | 'close' | 'rest'} kind
 * @property {string} text
 * @property {number} length of the whole line
 * @property {boolean} [isEnd] of a text
 * @property {object | null} node what folds
 */

const STEP_PX = 18;

/** A value up to here is shown in one row, whatever is in it. */
const SHORT_CHARS = 80;

/**
 * @param {JsonValue} value
 * @param {Set<object>} closed
 * @param {boolean} isFlat the members of an object are rows, without the object around them
 * @returns {Row[]}
 */
function treeRows(value, closed, isFlat) {
	/** @type {Row[]} */
	const rows = [];
	/** @type {(name: string | null, value: JsonValue, depth: number) => void} */
	const visit = (name, node, depth) => {
		if (typeof node === "string") return pushText(rows, depth, name, node);
		if (node === null || typeof node !== "object") {
			rows.push({
				depth,
				name,
				kind: typeof node === "number" ? "number" : "word",
				text: String(node),
				length: 0,
				node: null,
			});
			return;
		}
		const members = Array.isArray(node)
			? node.map((one) => /** @type {[null, JsonValue]} */ ([null, one]))
			: Object.entries(node);
		const [open, close] = Array.isArray(node) ? ["[", "]"] : ["{", "}"];
		const isClosed = closed.has(node);
		const short = isFlat ? shortText(node) : null;
		if (short !== null) {
			rows.push({
				depth,
				name,
				kind: "word",
				text: short,
				length: 0,
				node: null,
			});
			return;
		}
		const size = Array.isArray(node)
			? texts.tree.items(members.length)
			: texts.tree.members(members.length);
		const text =
			members.length === 0
				? open + close
				: isClosed
					? `${open} … ${close}  ${size}`
					: open;
		rows.push({
			depth,
			name,
			kind: "open",
			text,
			length: 0,
			node: members.length === 0 ? null : node,
		});
		if (isClosed || members.length === 0) return;
		for (const [member, one] of members) visit(member, one, depth + 1);
		rows.push({
			depth,
			name: null,
			kind: "close",
			text: close,
			length: 0,
			node: null,
		});
	};
	// At most 64 levels: deeper ones are refused before they get here.
	if (isFlat && isObject(value))
		for (const [name, member] of Object.entries(value)) visit(name, member, 0);
	else visit(null, value, 0);
	return rows;
}

/**
 * @param {JsonValue} value
 * @returns {value is import('../core/types.js').JsonObject}
 */
function isObject(value) {
	return value !== null && typeof value === "object" && !Array.isArray(value);
}

/**
 * How many characters are left of a budget behind a value; it ends early, since values may be large.
 * @param {JsonValue} value
 * @param {number} budget
 * @returns {number}
 */
function leftOf(value, budget) {
	if (budget < 0) return budget;
	if (value === null || typeof value !== "object")
		return budget - String(value).length;
	let left = budget - 2;
	for (const [name, member] of Object.entries(value)) {
		left = leftOf(member, left - (Array.isArray(value) ? 1 : name.length));
		if (left < 0) break;
	}
	return left;
}

/** @param {JsonValue} node */
function shortText(node) {
	if (leftOf(node, SHORT_CHARS) < 0) return null;
	const text = JSON.stringify(node);
	return text.length <= SHORT_CHARS ? text : null;
}

/**
 * @param {Row[]} rows
 * @param {number} depth
 * @param {string | null} name
 * @param {string} text
 */
function pushText(rows, depth, name, text) {
	let isFirst = true;
	for (const line of text.split("\n")) {
		let from = 0;
		for (const end of cuts(line)) {
			rows.push({
				depth,
				name: isFirst ? name : null,
				kind: isFirst ? "text" : "rest",
				text: line.slice(from, end),
				length: from === 0 ? line.length : 0,
				node: null,
			});
			isFirst = false;
			from = end;
		}
	}
	rows[rows.length - 1].isEnd = true;
}

/**
 * @param {JsonValue} value
 * @param {string} label
 * @param {{ isFlat?: boolean }} [options] flat: a row for each member, and nested ones folded
 */
export function treeView(value, label, options) {
	const isFlat = options?.isFlat ?? false;
	const rows = new Rows(label);
	rows.element.classList.add("tree");
	if (isFlat) rows.element.classList.add("flat");
	/** @type {Set<object>} */
	const closed = new Set();
	if (isFlat && isObject(value))
		for (const member of Object.values(value))
			if (member !== null && typeof member === "object") closed.add(member);
	/** @type {Row[]} */
	let list = [];
	const start = () => {
		list = treeRows(value, closed, isFlat);
		rows.show({
			count: list.length,
			render: (index) => renderRow(list[index], index),
			estimate,
		});
	};
	/** @type {(index: number, width: number) => number} */
	const estimate = (index, width) => {
		const row = list[index];
		return (
			wrapped(
				row.text.length + (row.name?.length ?? 0) + 4,
				width - row.depth * STEP_PX - 40,
			) * LINE_PX
		);
	};
	/** @type {(row: Row, index: number) => HTMLElement} */
	const renderRow = (row, index) => {
		const { node } = row;
		const line = el(
			"div",
			{ class: ["line", row.kind, row.isEnd && "end"] },
			node
				? el(
						"button",
						{
							class: ["twist", closed.has(node) && "closed"],
							type: "button",
							"aria-expanded": String(!closed.has(node)),
							"aria-label":
								`${closed.has(node) ? texts.tree.unfold : texts.tree.fold} ${row.name ?? ""}`.trim(),
							on: {
								click: () => {
									if (!closed.delete(node)) closed.add(node);
									start();
									rows
										.elementOf(index)
										?.querySelector("button")
										?.focus({ preventScroll: true });
								},
							},
						},
						icon("down", "small"),
					)
				: el("span", { class: "twist" }),
			el(
				"span",
				{ class: "code" },
				row.name !== null &&
					el(
						"span",
						{ class: "member" },
						marked(row.name, { singleLine: true }),
						": ",
					),
				row.length > LONG_LINE && longMark(row.length),
				el("span", { class: "value" }, marked(row.text)),
			),
		);
		line.style.setProperty("--depth", String(row.depth));
		return line;
	};
	return {
		element: rows.element,
		rows,
		start,
		dispose: () => rows.dispose(),
		count: () => list.length,
		unfold: () => {
			if (closed.size === 0) return;
			closed.clear();
			start();
		},
		textOf: (/** @type {number} */ index) =>
			`${list[index].name ?? ""} ${list[index].text}`,
	};
}
