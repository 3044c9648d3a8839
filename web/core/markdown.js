// A safe subset of Markdown as a tree of nodes: headings, paragraphs, lists, tasks, tables, quotes,
// code, rules, emphasis, struck text and links. There is no HTML in it: what is not understood stays text, line feeds
// included, and nothing of the text is left out but the marks that were understood. Work is
// bounded: nesting ends at a depth, and what is deeper is text.

/**
 * @typedef {{ kind: 'text', text: string }
 *   | { kind: 'code', text: string }
 *   | { kind: 'strong' | 'emphasis' | 'struck', children: Inline[] }
 *   | { kind: 'link', text: string, address: string }} Inline a link shows its address, since its text may be misleading
 */

/**
 * @typedef {{ kind: 'heading', level: number, children: Inline[] }
 *   | { kind: 'paragraph', children: Inline[] }
 *   | { kind: 'codeBlock', info: string, text: string }
 *   | { kind: 'quote', children: Block[] }
 *   | { kind: 'list', isOrdered: boolean, numbers: number[], items: Block[][], tasks?: (boolean | null)[] }
 *   | { kind: 'table', aligns: Align[], head: Inline[][], rows: Inline[][][] }
 *   | { kind: 'rule' }} Block
 */

/** @typedef {'left' | 'center' | 'right' | null} Align */

const MAX_DEPTH = 12;
/** Longer ones are shown as text: nobody writes emphasis in them. */
const MAX_INLINE_CHARS = 20_000;

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?=[ \t]|$)(.*)$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const TASK = /^\[([ xX])\](?=\s)/;
const DIVIDER =
	/^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const ITEM = /^( {0,3})(?:([-*+])|(\d{1,9})[.)])([ \t]+|$)/;

/**
 * @param {string} text
 * @returns {Block[]}
 */
export function parseMarkdown(text) {
	return blocks(text.replace(/\r\n?/g, "\n").split("\n"), 0);
}

/**
 * @param {string[]} lines
 * @param {number} depth
 * @returns {Block[]}
 */
function blocks(lines, depth) {
	/** @type {Block[]} */
	const found = [];
	let at = 0;
	/** @type {string[]} */
	let paragraph = [];
	const endParagraph = () => {
		if (paragraph.length > 0)
			found.push({
				kind: "paragraph",
				children: inlines(paragraph.join("\n")),
			});
		paragraph = [];
	};
	while (at < lines.length) {
		const line = String(lines[at]);
		const next =
			line.trim() === ""
				? { block: null, after: at + 1 }
				: blockAt(lines, at, depth);
		if (next === null) {
			paragraph.push(line);
			at += 1;
			continue;
		}
		endParagraph();
		if (next.block !== null) found.push(next.block);
		at = next.after;
	}
	endParagraph();
	return found;
}

/**
 * The block that begins here, if it is no paragraph.
 * @param {string[]} lines
 * @param {number} at
 * @param {number} depth
 * @returns {{ block: Block, after: number } | null}
 */
function blockAt(lines, at, depth) {
	const line = String(lines[at]);
	const fence = FENCE.exec(line);
	if (fence !== null)
		return codeBlock(lines, at, String(fence[1]), String(fence[2]));
	const heading = HEADING.exec(line);
	if (heading !== null) {
		const [, marks = "", content = ""] = heading;
		return {
			block: {
				kind: "heading",
				level: marks.length,
				children: inlines(content.trim()),
			},
			after: at + 1,
		};
	}
	const found = tableAt(lines, at);
	if (found !== null) return found;
	if (RULE.test(line)) return { block: { kind: "rule" }, after: at + 1 };
	if (depth >= MAX_DEPTH) return null;
	if (QUOTE.test(line)) return quote(lines, at, depth);
	return ITEM.test(line) ? list(lines, at, depth) : null;
}

/**
 * A heading of cells, a line of dashes for as many, and rows. A row with more cells than the heading
 * ends the table, so that nothing is left out.
 * @param {string[]} lines
 * @param {number} at
 * @returns {{ block: Block, after: number } | null}
 */
function tableAt(lines, at) {
	const divider = lines[at + 1];
	if (
		divider === undefined ||
		!String(lines[at]).includes("|") ||
		!DIVIDER.test(divider)
	)
		return null;
	const head = cellsOf(String(lines[at]));
	const aligns = cellsOf(divider).map(alignOf);
	if (head.length !== aligns.length) return null;
	/** @type {Inline[][][]} */
	const rows = [];
	let after = at + 2;
	for (; after < lines.length; after += 1) {
		const cells = cellsOf(String(lines[after]));
		if (!String(lines[after]).includes("|") || cells.length > head.length)
			break;
		rows.push(head.map((_, column) => inlines(cells[column] ?? "")));
	}
	return {
		block: { kind: "table", aligns, head: head.map(inlines), rows },
		after,
	};
}

/**
 * Cells stand between bars; an escaped bar, or one within code, is text.
 * @param {string} line
 */
function cellsOf(line) {
	const inner = line
		.trim()
		.replace(/^\|/, "")
		.replace(/(?<!\\)\|$/, "");
	/** @type {string[]} */
	const cells = [""];
	for (const [part] of inner.matchAll(/\\\||\||`[^`]*`|[^|\\`]+|[\\`]/g)) {
		if (part === "|") cells.push("");
		else cells[cells.length - 1] += part === "\\|" ? "|" : part;
	}
	return cells.map((cell) => cell.trim());
}

/**
 * @param {string} cell
 * @returns {Align}
 */
function alignOf(cell) {
	const [left, right] = [cell.startsWith(":"), cell.endsWith(":")];
	return left && right ? "center" : right ? "right" : left ? "left" : null;
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {string} fence
 * @param {string} info
 * @returns {{ block: Block, after: number }}
 */
function codeBlock(lines, at, fence, info) {
	const isEnd = (/** @type {string} */ line) => {
		const end = line.trim();
		return (
			end.length >= fence.length &&
			end === String(fence[0]).repeat(end.length) &&
			/^ {0,3}\S/.test(line)
		);
	};
	let after = at + 1;
	while (after < lines.length && !isEnd(String(lines[after]))) after += 1;
	return {
		block: {
			kind: "codeBlock",
			info: info.trim(),
			text: lines.slice(at + 1, after).join("\n"),
		},
		after: Math.min(after + 1, lines.length),
	};
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {number} depth
 * @returns {{ block: Block, after: number }}
 */
function quote(lines, at, depth) {
	let after = at;
	/** @type {string[]} */
	const inside = [];
	while (after < lines.length && QUOTE.test(String(lines[after]))) {
		inside.push(String(lines[after]).replace(QUOTE, ""));
		after += 1;
	}
	return {
		block: { kind: "quote", children: blocks(inside, depth + 1) },
		after,
	};
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {number} depth
 * @returns {{ block: Block, after: number }}
 */
function list(lines, at, depth) {
	const first = ITEM.exec(String(lines[at])) ?? [];
	const isOrdered = first[3] !== undefined;
	/** @type {Block[][]} */
	const items = [];
	/** As they were written: they need not follow each other. @type {number[]} */
	const numbers = [];
	/** Whether a task is done; null: the item is none. @type {(boolean | null)[]} */
	const tasks = [];
	let after = at;
	for (;;) {
		const mark = after < lines.length ? ITEM.exec(String(lines[after])) : null;
		if (
			mark === null ||
			(mark[3] !== undefined) !== isOrdered ||
			RULE.test(String(lines[after]))
		)
			break;
		const indent = Math.min(
			mark[0].length,
			String(mark[0]).trimEnd().length + 4,
		);
		const content = String(lines[after]).slice(mark[0].length);
		const task = TASK.exec(content);
		tasks.push(task === null ? null : task[1] !== " ");
		const inside = [
			task === null ? content : content.slice(task[0].length + 1),
		];
		after += 1;
		while (after < lines.length && belongs(lines, after, indent)) {
			inside.push(stripIndent(String(lines[after]), indent));
			after += 1;
		}
		items.push(blocks(inside, depth + 1));
		if (isOrdered) numbers.push(Number(mark[3]));
	}
	const isTasks = tasks.some((task) => task !== null);
	return {
		block: {
			kind: "list",
			isOrdered,
			numbers,
			items,
			...(isTasks ? { tasks } : {}),
		},
		after,
	};
}

/**
 * Whether a line belongs to the item above it: it is indented, or continues its paragraph, or is an
 * empty line before such a line.
 * @param {string[]} lines
 * @param {number} at
 * @param {number} indent
 */
function belongs(lines, at, indent) {
	const line = String(lines[at]);
	const isIndented = (/** @type {string} */ text) =>
		text.length - text.trimStart().length >= Math.min(indent, 2);
	if (line.trim() === "") {
		const next = lines[at + 1];
		return next !== undefined && next.trim() !== "" && isIndented(next);
	}
	const isBlock =
		ITEM.test(line) ||
		QUOTE.test(line) ||
		HEADING.test(line) ||
		FENCE.test(line) ||
		RULE.test(line);
	return isIndented(line) || (!isBlock && String(lines[at - 1]).trim() !== "");
}

/**
 * @param {string} line
 * @param {number} indent
 */
function stripIndent(line, indent) {
	const own = line.length - line.trimStart().length;
	return line.slice(Math.min(own, indent));
}

/**
 * Emphasis begins before a word and ends after one, as people write it: the asterisks of paths and
 * patterns stay.
 */
const OPENS = {
	before: /[\s([{"'“‘«*_~—–]/,
	after: /[\p{L}\p{N}`*_~[("'“‘«]/u,
};
const CLOSES = {
	before: /[\p{L}\p{N}`*_~.,;:!?)\]}"'”’»%…]/u,
	after: /[\s.,;:!?)\]}"'”’»*_~—–-]/,
};

/** Code, a link, an escaped mark, or a run of marks of emphasis. */
const INLINE =
	/(`+)(?!`)|\[([^[\]\n]{1,1000})\]\(([^()\s]{1,2000})\)|\\([!-/:-@[-`{-~])|(\*{1,2}|_{1,2}|~~)/g;

/**
 * @param {string} text
 * @returns {Inline[]}
 */
function inlines(text) {
	if (text.length > MAX_INLINE_CHARS) return [{ kind: "text", text }];
	const builder = new InlineBuilder();
	let at = 0;
	INLINE.lastIndex = 0;
	for (
		let match = INLINE.exec(text);
		match !== null;
		match = INLINE.exec(text)
	) {
		const [whole, ticks, label, address, escaped, mark] = match;
		builder.text(text.slice(at, match.index));
		at = match.index + whole.length;
		if (ticks !== undefined) {
			const end = closingTicks(text, at, ticks);
			if (end === null) builder.text(ticks);
			else {
				builder.add({ kind: "code", text: text.slice(at, end) });
				at = end + ticks.length;
			}
		} else if (label !== undefined && address !== undefined)
			builder.add({ kind: "link", text: label, address });
		else if (escaped !== undefined) builder.text(escaped);
		else if (mark !== undefined)
			builder.mark(mark, text[match.index - 1] ?? " ", text[at] ?? " ");
		INLINE.lastIndex = at;
	}
	builder.text(text.slice(at));
	return builder.finish();
}

/**
 * Where a run of exactly as many ticks begins.
 * @param {string} text
 * @param {number} from
 * @param {string} ticks
 */
function closingTicks(text, from, ticks) {
	for (
		let at = text.indexOf(ticks, from);
		at >= 0;
		at = text.indexOf(ticks, at)
	) {
		let end = at;
		while (text[end] === "`") end += 1;
		if (end - at === ticks.length) return at;
		at = end;
	}
	return null;
}

/** @type {Record<string, 'strong' | 'struck'>} */
const KINDS = { "**": "strong", __: "strong", "~~": "struck" };

class InlineBuilder {
	constructor() {
		/** @type {{ mark: string, children: Inline[] }[]} */
		this.open = [{ mark: "", children: [] }];
	}

	get innermost() {
		return /** @type {{ mark: string, children: Inline[] }} */ (
			this.open[this.open.length - 1]
		);
	}

	/** @param {Inline} node */
	add(node) {
		this.innermost.children.push(node);
	}

	/** @param {string} text */
	text(text) {
		if (text === "") return;
		const { children } = this.innermost;
		const last = children[children.length - 1];
		if (last?.kind === "text") last.text += text;
		else children.push({ kind: "text", text });
	}

	/**
	 * Begins or ends emphasis, or is text.
	 * @param {string} mark
	 * @param {string} before
	 * @param {string} after
	 */
	mark(mark, before, after) {
		const fits = (/** @type {{ before: RegExp, after: RegExp }} */ sides) =>
			sides.before.test(before) && sides.after.test(after);
		if (this.innermost.mark === mark && fits(CLOSES)) {
			const { children } = this.innermost;
			this.open.pop();
			this.add({ kind: KINDS[mark] ?? "emphasis", children });
		} else if (fits(OPENS) && this.open.length <= MAX_DEPTH) {
			this.open.push({ mark, children: [] });
		} else {
			this.text(mark);
		}
	}

	/** Marks that nothing closed are text. */
	finish() {
		while (this.open.length > 1) {
			const { mark, children } = this.innermost;
			this.open.pop();
			this.text(mark);
			for (const child of children) {
				if (child.kind === "text") this.text(child.text);
				else this.add(child);
			}
		}
		return this.innermost.children;
	}
}
