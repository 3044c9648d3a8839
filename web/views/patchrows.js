// A patch as rows: file headings, places, folds and lines. No DOM.

import { cuts, PIECE } from "../ui/mono.js";
import { atOnce } from "../ui/slices.js";

/** @typedef {import('../core/diff.js').Diff} Diff */
/** @typedef {import('../core/diff.js').DiffFile} DiffFile */
/** @typedef {import('../core/diff.js').DiffLine} DiffLine */

/** So many unchanged lines stay visible around a change; more in one go are folded. */
const AROUND = 4;
const WORTH_FOLDING = 12;
/** Lines that are arranged without an interruption. */
const AT_ONCE = 500;
/** Beyond this no differing part of a line is searched for. */
const LONGEST_COMPARED = 500;

/**
 * One side of a line. `from` is where this piece of it begins; `changed` is the part that differs
 * from its counterpart.
 * @typedef {object} Cell
 * @property {'context' | 'add' | 'remove'} kind
 * @property {number | null} number
 * @property {string} text
 * @property {number} from
 * @property {number} length
 * @property {[number, number] | null} changed
 */

/**
 * @typedef {{ type: 'text', file: number, text: string, of: DiffLine['kind'] | null }
 *   | { type: 'file', file: number, path: string }
 *   | { type: 'place', file: number, skipped: number, section: string }
 *   | { type: 'fold', file: number, key: string, count: number }
 *   | { type: 'note', file: number, note: 'binary' | 'noLines' | 'broken' | 'outside' }
 *   | { type: 'line', file: number, old: number | null, new: number | null, cell: Cell }
 *   | { type: 'pair', file: number, left: Cell | null, right: Cell | null }} Row
 */

/**
 * The files and parts that a person has opened and closed.
 * @typedef {{ isSplit: boolean, closed: Set<number>, unfolded: Set<string> }} Arrangement
 */

/**
 * @param {Diff} diff
 * @param {Arrangement} arrangement
 * @returns {Row[]}
 */
export function patchRows(diff, arrangement) {
	return atOnce(arrangingPatch(diff, arrangement));
}

/**
 * The same in pieces. Rows of files that did not change since are taken from `known`, and kept
 * there.
 * @param {Diff} diff
 * @param {Arrangement} arrangement
 * @param {Map<DiffFile, Row[]>} [known]
 * @returns {Generator<void, Row[], void>}
 */
export function* arrangingPatch(diff, arrangement, known = new Map()) {
	/** @type {Row[]} */
	const rows = [];
	for (const text of diff.preamble) pushText(rows, -1, text);
	for (let index = 0; index < diff.files.length; index += 1) {
		const file = diff.files[index];
		const own =
			known.get(file) ?? (yield* arrangingFile(file, index, arrangement));
		known.set(file, own);
		for (const row of own) rows.push(row);
		yield;
	}
	return rows;
}

/**
 * @param {DiffFile} file
 * @param {number} index
 * @param {Arrangement} arrangement
 * @returns {Generator<void, Row[], void>}
 */
function* arrangingFile(file, index, arrangement) {
	/** @type {Row[]} */
	const rows = [{ type: "file", file: index, path: pathOf(file) }];
	if (arrangement.closed.has(index)) return rows;
	if (file.isOdd) rows.push({ type: "note", file: index, note: "outside" });
	for (const text of unexpectedHeaders(file)) pushText(rows, index, text);
	if (file.isBinary) rows.push({ type: "note", file: index, note: "binary" });
	else if (file.hunks.length === 0 && !file.isOdd)
		rows.push({ type: "note", file: index, note: "noLines" });
	let next = 1;
	for (let at = 0; at < file.hunks.length; at += 1) {
		const hunk = file.hunks[at];
		const skipped = Math.max(hunk.oldStart - next, 0);
		// Nothing to say of the place is no row.
		if (skipped > 0 || hunk.section !== "")
			rows.push({
				type: "place",
				file: index,
				skipped,
				section: hunk.section,
			});
		yield* pushHunk(rows, index, `${index}:${at}`, hunk.lines, arrangement);
		if (hunk.isBroken) rows.push({ type: "note", file: index, note: "broken" });
		next = hunk.lines.reduce(
			(last, line) => (line.oldNumber === null ? last : line.oldNumber + 1),
			hunk.oldStart,
		);
	}
	if (file.others.length > 0 && !file.isBinary)
		rows.push({ type: "note", file: index, note: "outside" });
	for (const text of file.others) pushText(rows, index, text);
	return rows;
}

/** @param {DiffFile} file */
export function pathOf(file) {
	return file.newPath ?? file.oldPath ?? "";
}

/** Ids of contents, and how alike a renamed file is: neither says what changes. */
const UNINTERESTING =
	/^(index [0-9a-f]+\.\.[0-9a-f]+( [0-7]+)?|(dis)?similarity index \d+%)$/;
/** A file that is not executable and no link. */
const PLAIN_MODE = "100644";

/**
 * The mode, if it says something: it changes, or a new file can be executed or is a link.
 * @param {DiffFile} file
 * @returns {{ from: string | null, to: string } | null}
 */
export function modeOf({ change, oldMode, newMode }) {
	if (newMode === null) return null;
	if (change === "added")
		return newMode === PLAIN_MODE ? null : { from: null, to: newMode };
	return oldMode === null || oldMode === newMode
		? null
		: { from: oldMode, to: newMode };
}

/**
 * Header lines that say more than the heading of the file does.
 * @param {DiffFile} file
 */
function unexpectedHeaders(file) {
	const [old, now] = [
		file.oldPath ?? pathOf(file),
		file.newPath ?? pathOf(file),
	];
	const expected = new Set([
		`diff --git a/${old} b/${now}`,
		`--- a/${old}`,
		`+++ b/${now}`,
		`--- ${old}`,
		`+++ ${now}`,
		"--- /dev/null",
		"+++ /dev/null",
		`rename from ${old}`,
		`rename to ${now}`,
		`copy from ${old}`,
		`copy to ${now}`,
		`old mode ${file.oldMode}`,
		`new mode ${file.newMode}`,
		`new file mode ${file.newMode}`,
		`deleted file mode ${file.oldMode}`,
	]);
	return file.header.filter(
		(line) => !expected.has(line) && !UNINTERESTING.test(line),
	);
}

/**
 * @param {Row[]} rows
 * @param {number} file
 * @param {string} text
 * @param {DiffLine['kind'] | null} [of] the kind of line that it belongs to
 */
function pushText(rows, file, text, of = null) {
	let from = 0;
	for (const end of cuts(text)) {
		rows.push({ type: "text", file, text: text.slice(from, end), of });
		from = end;
	}
}

/**
 * @param {Row[]} rows
 * @param {number} file
 * @param {string} key
 * @param {DiffLine[]} lines
 * @param {Arrangement} arrangement
 * @returns {Generator<void, void, void>}
 */
function* pushHunk(rows, file, key, lines, arrangement) {
	for (let at = 0; at < lines.length; ) {
		yield;
		const end = runEnd(lines, at);
		if (lines[at].kind === "context") {
			const fold = `${key}:${at}`;
			const folded = arrangement.unfolded.has(fold)
				? null
				: foldOf(at, end, lines.length);
			for (let index = at; index < end; index += 1) {
				if (index === folded?.from)
					rows.push({
						type: "fold",
						file,
						key: fold,
						count: folded.to - folded.from,
					});
				if (folded && index >= folded.from && index < folded.to) continue;
				if (index % AT_ONCE === 0) yield;
				const { text, oldNumber, newNumber } = lines[index];
				pushLine(
					rows,
					file,
					arrangement,
					piecesOf("context", oldNumber, text, null),
					piecesOf("context", newNumber, text, null),
				);
			}
		} else {
			yield* pushChange(rows, file, lines.slice(at, end), arrangement);
		}
		at = end;
	}
}

/**
 * Where a stretch of unchanged or changed lines ends.
 * @param {DiffLine[]} lines
 * @param {number} at
 */
function runEnd(lines, at) {
	const isContext = lines[at].kind === "context";
	let end = at;
	while (end < lines.length && (lines[end].kind === "context") === isContext)
		end += 1;
	return end;
}

/**
 * @param {number} at
 * @param {number} end
 * @param {number} length
 */
function foldOf(at, end, length) {
	const from = at === 0 ? at : at + AROUND;
	const to = end === length ? end : end - AROUND;
	return to - from >= WORTH_FOLDING ? { from, to } : null;
}

/**
 * Lines that replace others. A note such as `\ No newline at end of file` stays behind its line.
 * @param {Row[]} rows
 * @param {number} file
 * @param {DiffLine[]} lines
 * @param {Arrangement} arrangement
 * @returns {Generator<void, void, void>}
 */
function* pushChange(rows, file, lines, arrangement) {
	const removed = lines.filter((line) => line.kind === "remove");
	const added = lines.filter((line) => line.kind === "add");
	const notes = notesOf(lines);
	const isPaired = removed.length === added.length;
	/** @type {(line: DiffLine | undefined, at: number) => Cell[]} */
	const cells = (line, at) => {
		if (!line) return [];
		const isAdded = line.kind === "add";
		const changed = isPaired
			? differing(removed[at].text, added[at].text)
			: null;
		return piecesOf(
			isAdded ? "add" : "remove",
			line.oldNumber ?? line.newNumber,
			line.text,
			changed?.[isAdded ? "right" : "left"] ?? null,
		);
	};
	const pushNotes = (/** @type {DiffLine | undefined} */ line) => {
		for (const note of notes.get(line) ?? [])
			pushText(rows, file, note, line?.kind);
	};
	pushNotes(undefined);
	if (arrangement.isSplit) {
		for (let at = 0; at < Math.max(removed.length, added.length); at += 1) {
			if (at % AT_ONCE === 0) yield;
			pushLine(
				rows,
				file,
				arrangement,
				cells(removed[at], at),
				cells(added[at], at),
			);
			if (removed[at]) pushNotes(removed[at]);
			if (added[at]) pushNotes(added[at]);
		}
		return;
	}
	for (const side of [removed, added]) {
		for (let at = 0; at < side.length; at += 1) {
			if (at % AT_ONCE === 0) yield;
			const own = cells(side[at], at);
			pushLine(
				rows,
				file,
				arrangement,
				side === removed ? own : [],
				side === added ? own : [],
			);
			pushNotes(side[at]);
		}
	}
}

/**
 * The notes behind each line; behind none if they follow unchanged lines.
 * @param {DiffLine[]} lines
 */
function notesOf(lines) {
	/** @type {Map<DiffLine | undefined, string[]>} */
	const notes = new Map();
	/** @type {DiffLine | undefined} */
	let before;
	for (const line of lines) {
		if (line.kind === "note")
			notes.set(before, [...(notes.get(before) ?? []), `\\${line.text}`]);
		else before = line;
	}
	return notes;
}

/**
 * @param {Row[]} rows
 * @param {number} file
 * @param {Arrangement} arrangement
 * @param {Cell[]} left
 * @param {Cell[]} right
 */
function pushLine(rows, file, arrangement, left, right) {
	if (arrangement.isSplit) {
		for (let at = 0; at < Math.max(left.length, right.length); at += 1) {
			rows.push({
				type: "pair",
				file,
				left: left[at] ?? null,
				right: right[at] ?? null,
			});
		}
		return;
	}
	const cells = left.length > 0 ? left : right;
	for (const [at, cell] of cells.entries())
		rows.push({
			type: "line",
			file,
			cell,
			old: at === 0 ? (left[0]?.number ?? null) : null,
			new: at === 0 ? (right[0]?.number ?? null) : null,
		});
}

/**
 * @param {Cell['kind']} kind
 * @param {number | null} number
 * @param {string} text
 * @param {[number, number] | null} changed
 * @returns {Cell[]}
 */
function piecesOf(kind, number, text, changed) {
	if (text.length <= PIECE)
		return [{ kind, number, text, from: 0, length: text.length, changed }];
	let from = 0;
	return cuts(text).map((end) => {
		const piece = {
			kind,
			number,
			text: text.slice(from, end),
			from,
			length: text.length,
			changed: null,
		};
		from = end;
		return piece;
	});
}

/**
 * The part between the common beginning and the common end, if that helps.
 * @param {string} left
 * @param {string} right
 * @returns {{ left: [number, number], right: [number, number] } | null}
 */
function differing(left, right) {
	if (Math.max(left.length, right.length) > LONGEST_COMPARED) return null;
	const shorter = Math.min(left.length, right.length);
	let head = 0;
	while (head < shorter && left[head] === right[head]) head += 1;
	let tail = 0;
	while (
		tail < shorter - head &&
		left[left.length - 1 - tail] === right[right.length - 1 - tail]
	)
		tail += 1;
	// Not inside a character of two code units.
	if (head > 0 && isLow(left.charCodeAt(head))) head -= 1;
	if (tail > 0 && isLow(left.charCodeAt(left.length - tail))) tail -= 1;
	if ((head + tail) * 3 < shorter) return null;
	return {
		left: [head, left.length - tail],
		right: [head, right.length - tail],
	};
}

/** @param {number} code */
function isLow(code) {
	return code >= 0xdc00 && code < 0xe000;
}
