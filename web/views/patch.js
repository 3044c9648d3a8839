// A patch: by file, unified or side by side.

import { parseDiff, parsingDiff } from "../core/diff.js";
import { texts } from "../texts.js";
import { el, fill } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { longMark } from "../ui/lines.js";
import { marked, markedName, visibleText } from "../ui/marked.js";
import { charWidth, LINE_PX, LONG_LINE, wrapped } from "../ui/mono.js";
import { note, segments } from "../ui/parts.js";
import { Rows } from "../ui/rows.js";
import { atOnce, inSlices } from "../ui/slices.js";
import { arrangingPatch, modeOf, pathOf } from "./patchrows.js";

/** @typedef {import('./patchrows.js').Row} Row */
/** @typedef {import('./patchrows.js').Cell} Cell */
/** @typedef {import('../core/diff.js').DiffFile} DiffFile */

const LAYOUT_KEY = "countersign.patch";
/** Heights as in views.css. */
const FILE_PX = 48;
const NOTE_PX = 36;
/** Narrower than this, two columns hold too little. */
const SPLIT_FROM_PX = 760;
const STICKY_PX = 44;

/** Of a long patch this much is shown first: enough for any screen, and read in no time. */
const FIRST_CHARS = 64 * 1024;

/** @param {string} text */
function beginningOf(text) {
	return text.length > 2 * FIRST_CHARS
		? text.slice(0, text.lastIndexOf("\n", FIRST_CHARS) + 1) || text
		: text;
}

/** @param {string} text */
export function patchView(text) {
	const beginning = beginningOf(text);
	let diff = parseDiff(beginning);
	// Some agents have formats of their own, which are shown as they are.
	const isRaw = () => diff.files.length === 0;
	const rows = new Rows(texts.patch.rows);
	rows.element.classList.add("patch");
	const arrangement = {
		isSplit:
			localStorage.getItem(LAYOUT_KEY) === "split" &&
			innerWidth >= SPLIT_FROM_PX,
		/** @type {Set<number>} */ closed: new Set(),
		/** @type {Set<string>} */ unfolded: new Set(),
	};
	/** @type {Row[]} */
	let list = [];
	/** Rows by file, until something about the file changes. @type {Map<DiffFile, Row[]>} */
	const known = new Map();
	let digits = 1;
	/** Counts what a person has changed. */
	let version = 0;
	const arrange = () => {
		version += 1;
		showRows(atOnce(arrangingPatch(diff, arrangement, known)));
	};
	const showRows = (/** @type {Row[]} */ made) => {
		list = made;
		digits = String(largestNumber(diff)).length;
		rows.element.style.setProperty("--digits", String(digits));
		rows.element.classList.toggle("split", arrangement.isSplit);
		rows.show({
			count: list.length,
			render: (index) => renderRow(list[index]),
			estimate,
		});
	};
	/** @type {(index: number, width: number) => number} */
	const estimate = (index, width) => {
		const row = list[index];
		const gutter = charWidth() * 8 + 32;
		switch (row.type) {
			case "file":
				return FILE_PX;
			case "place":
			case "fold":
			case "note":
				return NOTE_PX;
			case "text":
				return wrapped(row.text.length, width - 32) * LINE_PX;
			case "line":
				return wrapped(row.cell.text.length, width - gutter) * LINE_PX;
			case "pair": {
				const longest = Math.max(
					row.left?.text.length ?? 0,
					row.right?.text.length ?? 0,
				);
				return wrapped(longest, width / 2 - gutter) * LINE_PX;
			}
		}
	};

	const toggleFile = (/** @type {number} */ index) => {
		if (!arrangement.closed.delete(index)) arrangement.closed.add(index);
		known.delete(diff.files[index]);
		arrange();
		reveal(index);
		const heading = list.findIndex(
			(row) => row.type === "file" && row.file === index,
		);
		rows
			.elementOf(heading)
			?.querySelector("button")
			?.focus({ preventScroll: true });
	};
	const reveal = (/** @type {number} */ file) => {
		const at = list.findIndex(
			(row) => row.type === "file" && row.file === file,
		);
		if (at >= 0) rows.reveal(at, 8);
	};

	/** @type {(row: Row) => HTMLElement} */
	const renderRow = (row) => {
		switch (row.type) {
			case "file":
				return fileHeading(
					diff.files[row.file],
					arrangement.closed.has(row.file),
					() => toggleFile(row.file),
				);
			case "text":
				return el(
					"div",
					{ class: ["line", "text", isRaw() ? rawKind(row.text) : row.of] },
					marked(row.text),
				);
			case "place":
				return el(
					"div",
					{ class: "place" },
					row.skipped > 0 && el("span", null, texts.patch.skipped(row.skipped)),
					row.section && el("code", null, marked(row.section)),
				);
			case "note":
				return el(
					"div",
					{ class: "place" },
					el("span", null, texts.patch[row.note]),
				);
			case "fold":
				return el(
					"button",
					{
						class: "place fold",
						type: "button",
						on: {
							click: () => {
								arrangement.unfolded.add(row.key);
								known.delete(diff.files[row.file]);
								arrange();
							},
						},
					},
					icon("down", "small"),
					texts.patch.unchanged(row.count),
				);
			case "line":
				return unifiedLine(row, digits, colours(row.file));
			case "pair": {
				const colour = colours(row.file);
				return el(
					"div",
					{ class: "pair" },
					side(row.left, colour),
					side(row.right, colour),
				);
			}
		}
	};

	/** @type {typeof import('../core/syntax.js') | null} */
	let syntax = null;
	/** @type {(file: number) => Colour} */
	const colours = (file) => {
		const language =
			file < 0 ? null : syntax?.languageOf(pathOf(diff.files[file]));
		return language ? (line) => syntax?.tokensOf(line, language) : null;
	};
	// After the lines themselves, which do not need it.
	const loadColours = () =>
		import("../core/syntax.js").then(
			(module) => {
				syntax = module;
				if (isWanted)
					rows.refresh((index) =>
						["line", "pair"].includes(list[index]?.type ?? ""),
					);
			},
			// Without colours it says the same.
			() => {},
		);

	const current = el("button", {
		class: "patch-current",
		type: "button",
		hidden: true,
	});
	let currentFile = -1;
	const track = () => {
		const at = rows.firstVisible(STICKY_PX);
		const row = at >= 0 ? list[at] : null;
		const file = row && row.file >= 0 && row.type !== "file" ? row.file : -1;
		if (file === currentFile) return;
		currentFile = file;
		current.hidden = file < 0;
		if (file >= 0)
			fill(current, pathLabel(diff.files[file]), counts(diff.files[file]));
	};
	current.addEventListener("click", () => reveal(currentFile));
	rows.onScroll = track;

	const layout = segments(
		texts.patch.layout,
		[
			["unified", texts.patch.unified],
			["split", texts.patch.split],
		],
		arrangement.isSplit ? "split" : "unified",
		(chosen) => {
			arrangement.isSplit = chosen === "split";
			localStorage.setItem(LAYOUT_KEY, chosen);
			known.clear();
			arrange();
		},
	);
	layout.classList.add("wide-only");
	const head = el("div", null);
	const showHead = () => {
		// Only the whole of it can be counted and judged.
		fill(
			head,
			!isRaw() && el("div", { class: "patch-head" }, totals(diff), layout),
			isRaw()
				? note("info", texts.patch.raw)
				: diff.isBroken && note("warn", texts.patch.isBroken),
			diff.files.length > 1 && fileList(diff.files, reveal),
		);
	};
	const start = () => {
		arrange();
		void loadColours();
		if (beginning === text) return showHead();
		fill(head, el("div", { class: "patch-head" }, texts.loading));
		// After the first screen has been painted.
		requestAnimationFrame(() => setTimeout(readAll));
	};
	let isWanted = true;
	const readAll = async () => {
		const whole = await inSlices(parsingDiff(text), () => isWanted);
		if (whole === null) return;
		diff = whole;
		known.clear();
		const before = version;
		const made = await inSlices(
			arrangingPatch(diff, arrangement, known),
			() => isWanted,
		);
		if (made === null) return;
		// Somebody may have closed a file meanwhile, or chosen the other layout.
		if (before === version) showRows(made);
		else arrange();
		showHead();
	};
	const element = el(
		"div",
		null,
		head,
		el(
			"div",
			{ class: "patch-frame" },
			el("div", { class: "patch-sticky" }, current),
			rows.element,
		),
	);
	return {
		element,
		rows,
		start,
		dispose: () => {
			isWanted = false;
			rows.dispose();
		},
		count: () => list.length,
		unfold: () => {
			const isOpen =
				arrangement.closed.size === 0 &&
				!list.some((row) => row.type === "fold");
			if (isOpen) return;
			arrangement.closed.clear();
			// Without closed files, every fold is a row.
			for (const row of atOnce(arrangingPatch(diff, arrangement)))
				if (row.type === "fold") arrangement.unfolded.add(row.key);
			known.clear();
			arrange();
		},
		textOf: (/** @type {number} */ index) => rowText(list[index]),
	};
}

/** @param {import('../core/diff.js').Diff} diff */
function largestNumber(diff) {
	let largest = 1;
	for (const file of diff.files) {
		for (const { lines, oldStart, newStart } of file.hunks)
			largest = Math.max(
				largest,
				oldStart + lines.length,
				newStart + lines.length,
			);
	}
	return largest;
}

/** @param {string} text */
function rawKind(text) {
	return text[0] === "+" ? "add" : text[0] === "-" ? "remove" : "";
}

/** @param {Row} row */
function rowText(row) {
	switch (row.type) {
		case "text":
			return row.text;
		case "file":
			return row.path;
		case "place":
			return row.section;
		case "line":
			return row.cell.text;
		case "pair":
			return `${row.left?.text ?? ""}\n${row.right?.text ?? ""}`;
		default:
			return "";
	}
}

/** @param {import('../core/diff.js').Diff} diff */
function totals(diff) {
	return el(
		"div",
		{ class: "row patch-total" },
		el("strong", null, texts.patch.files(diff.files.length)),
		counts(diff),
	);
}

/** @param {{ added: number, removed: number }} sum */
function counts({ added, removed }) {
	return el(
		"span",
		{ class: "counts mono" },
		el(
			"span",
			{ class: "plus", title: texts.patch.added(added) },
			`+${added}`,
			el("span", { class: "unseen" }, texts.patch.lineAdded),
		),
		el(
			"span",
			{ class: "minus", title: texts.patch.removed(removed) },
			`−${removed}`,
			el("span", { class: "unseen" }, texts.patch.lineRemoved),
		),
	);
}

/** @param {DiffFile} file */
function pathLabel(file) {
	const isMoved =
		file.oldPath !== null &&
		file.newPath !== null &&
		file.oldPath !== file.newPath;
	const path = pathOf(file) || texts.patch.unnamed;
	const cut = path.lastIndexOf("/") + 1;
	return el(
		"span",
		{ class: "path mono" },
		isMoved &&
			el("span", { class: "quiet" }, markedName(file.oldPath ?? ""), " → "),
		el("span", { class: "quiet" }, markedName(path.slice(0, cut))),
		el("span", null, markedName(path.slice(cut))),
	);
}

/**
 * @param {DiffFile} file
 * @param {boolean} isClosed
 * @param {() => void} toggle
 */
function fileHeading(file, isClosed, toggle) {
	const name = visibleText(pathOf(file));
	const status = texts.patch.change[file.change];
	const mode = modeOf(file);
	return el(
		"h2",
		{
			class: [
				"file-heading",
				isClosed && "closed",
				(status || mode) && "chipped",
			],
		},
		el(
			"button",
			{
				type: "button",
				"aria-expanded": String(!isClosed),
				"aria-label": isClosed
					? texts.patch.unfold(name)
					: texts.patch.fold(name),
				on: { click: toggle },
			},
			icon("down", "small"),
		),
		pathLabel(file),
		status && el("span", { class: "chip" }, status),
		mode &&
			el("span", { class: "chip warn" }, texts.patch.mode(mode.from, mode.to)),
		file.isBinary
			? el("span", { class: "chip" }, texts.patch.isBinary)
			: counts(file),
	);
}

/**
 * @param {DiffFile[]} files
 * @param {(file: number) => void} reveal
 */
function fileList(files, reveal) {
	const list = el("ul", { class: "file-list" });
	const details = el(
		"details",
		{ class: "file-details" },
		el("summary", null, texts.patch.fileList),
		list,
	);
	details.addEventListener("toggle", () => {
		if (!details.open || list.childElementCount > 0) return;
		list.append(
			...files.map((file, index) =>
				el(
					"li",
					null,
					el(
						"button",
						{ type: "button", on: { click: () => reveal(index) } },
						pathLabel(file),
						texts.patch.change[file.change] &&
							el(
								"span",
								{ class: "quiet fine" },
								texts.patch.change[file.change],
							),
						file.isBinary
							? el("span", { class: "quiet fine" }, texts.patch.isBinary)
							: counts(file),
					),
				),
			),
		);
	});
	return details;
}

/**
 * The tokens of a line, if its language is known.
 * @typedef {((line: string) => import('../core/syntax.js').Token[] | undefined) | null} Colour
 */

/**
 * A line is one element, with its numbers and its sign as attributes: hundreds of them are laid out
 * while somebody scrolls.
 * @param {Extract<Row, { type: 'line' }>} row
 * @param {number} digits
 * @param {Colour} colour
 */
function unifiedLine(row, digits, colour) {
	const [old, now] = [row.old ?? "", row.new ?? ""].map((number) =>
		String(number).padStart(digits),
	);
	return line(row.cell, colour, {
		"data-n": row.cell.kind === "remove" ? old : now,
		"data-both": `${old} ${now}`,
	});
}

/**
 * @param {Cell | null} cell
 * @param {Colour} colour
 */
function side(cell, colour) {
	return cell
		? line(cell, colour, { "data-n": cell.from === 0 ? cell.number : "" })
		: el("div", { class: "line void" });
}

/**
 * The text from one place to another, its tokens in their colours.
 * @param {import('../core/syntax.js').Token[]} tokens
 * @param {number} from
 * @param {number} to
 */
function stretch(tokens, from, to) {
	/** @type {import('../ui/dom.js').Child[]} */
	const found = [];
	let at = 0;
	for (const { kind, text } of tokens) {
		const part = text.slice(Math.max(from - at, 0), Math.max(to - at, 0));
		at += text.length;
		if (part === "") continue;
		if (kind === null) found.push(...marked(part));
		else found.push(el("span", { class: `token-${kind}` }, marked(part)));
	}
	return found;
}

/**
 * @param {Cell} cell
 * @param {Colour} colour
 * @param {Record<string, unknown>} numbers
 */
function line(cell, colour, numbers) {
	const spoken =
		cell.kind === "add"
			? texts.patch.lineAdded
			: cell.kind === "remove"
				? texts.patch.lineRemoved
				: "";
	const changed =
		cell.changed && cell.changed[1] > cell.changed[0] ? cell.changed : null;
	const isWhole = cell.text.length === cell.length;
	const tokens = (isWhole ? colour?.(cell.text) : undefined) ?? [
		{ kind: null, text: cell.text },
	];
	const { length } = cell.text;
	const content = changed
		? [
				...stretch(tokens, 0, changed[0]),
				el("span", { class: "word" }, stretch(tokens, changed[0], changed[1])),
				...stretch(tokens, changed[1], length),
			]
		: stretch(tokens, 0, length);
	return el(
		"div",
		{ class: `line ${cell.kind}`, ...numbers },
		spoken && el("span", { class: "unseen" }, `${spoken} `),
		cell.from === 0 && cell.length > LONG_LINE && longMark(cell.length),
		content,
	);
}
