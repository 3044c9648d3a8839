// A plan as text with headings and lists. Addresses of links are shown and lead nowhere: their text
// may be misleading.

import { parseMarkdown } from "../core/markdown.js";
import { texts } from "../texts.js";
import { el, fill } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { linesView } from "../ui/lines.js";
import { marked, markedName } from "../ui/marked.js";
import { segments } from "../ui/parts.js";

/** @typedef {import('../core/markdown.js').Block} Block */
/** @typedef {import('../core/markdown.js').Inline} Inline */
/** @typedef {import('../ui/dom.js').Child} Child */

/** Longer ones are shown as lines, which appear as they are scrolled to. */
const FORMATTED_CHARS = 200_000;
const HEADINGS = /** @type {const} */ (["h2", "h3", "h4", "h5", "h5", "h5"]);

/**
 * @param {Inline} node
 * @returns {Child[]}
 */
function inline(node) {
	switch (node.kind) {
		case "text":
			return marked(node.text);
		case "code":
			return [el("code", null, marked(node.text))];
		case "strong":
			return [el("strong", null, node.children.flatMap(inline))];
		case "emphasis":
			return [el("em", null, node.children.flatMap(inline))];
		case "struck":
			return [el("s", null, node.children.flatMap(inline))];
		case "link":
			return [
				...marked(node.text),
				" ",
				el("code", { class: "address" }, markedName(node.address)),
			];
	}
}

/**
 * @param {Block} block
 * @returns {HTMLElement}
 */
function render(block) {
	switch (block.kind) {
		case "heading":
			return el(
				HEADINGS[block.level - 1],
				null,
				block.children.flatMap(inline),
			);
		case "paragraph":
			return el("p", null, block.children.flatMap(inline));
		case "codeBlock":
			return el(
				"figure",
				null,
				block.info &&
					el("figcaption", { class: "hint mono" }, markedName(block.info)),
				el("pre", null, el("code", null, marked(block.text))),
			);
		case "quote":
			return el("blockquote", null, block.children.map(render));
		case "rule":
			return el("hr", null);
		case "list": {
			const items = block.items.map((item, at) =>
				el(
					"li",
					{
						value: block.numbers[at],
						class: typeof block.tasks?.[at] === "boolean" ? "task" : undefined,
					},
					taskBox(block.tasks?.[at] ?? null),
					item.map(render),
				),
			);
			return el(block.isOrdered ? "ol" : "ul", null, items);
		}
		case "table": {
			const cells = (
				/** @type {'th' | 'td'} */ tag,
				/** @type {Inline[][]} */ row,
			) =>
				row.map((cell, at) =>
					el(
						tag,
						{ class: block.aligns[at] ?? undefined },
						cell.flatMap(inline),
					),
				);
			return el(
				"table",
				null,
				el("thead", null, el("tr", null, cells("th", block.head))),
				el(
					"tbody",
					null,
					block.rows.map((row) => el("tr", null, cells("td", row))),
				),
			);
		}
	}
}

/**
 * It is the text's, and cannot be changed here.
 * @param {boolean | null} isDone
 */
function taskBox(isDone) {
	return (
		isDone !== null &&
		el(
			"span",
			{
				class: ["task-box", isDone && "done"],
				role: "img",
				"aria-label": texts.tasks[isDone ? "done" : "open"],
			},
			isDone && icon("check", "small"),
		)
	);
}

/** @param {string} text */
export function planView(text) {
	const isLong = text.length > FORMATTED_CHARS;
	const body = el("div", null);
	const lines = linesView(text, texts.kinds["plan.review"]);
	const showSource = () => {
		fill(body, lines.element);
		lines.start();
	};
	const showFormatted = () =>
		fill(body, el("div", { class: "plan" }, parseMarkdown(text).map(render)));
	const views = segments(
		texts.request.viewAs,
		[
			["formatted", texts.request.formatted],
			["source", texts.request.source],
		],
		"formatted",
		(chosen) => (chosen === "source" ? showSource() : showFormatted()),
	);
	const element = el(
		"section",
		{
			class: "card content",
			"aria-label": texts.request.contentOf(texts.kinds["plan.review"]),
		},
		el(
			"div",
			{ class: "plan-head" },
			isLong ? el("p", { class: "hint" }, texts.request.largePlan) : views,
		),
		body,
	);
	return {
		element,
		start: isLong ? showSource : showFormatted,
		dispose: lines.dispose,
		searchable: isLong ? lines : null,
	};
}
