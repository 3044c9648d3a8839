// A unified diff, with or without git's headers, by file, hunk and line. The result has every line
// of the text exactly once, even malformed ones: a patch must not hide anything.

/**
 * @typedef {object} DiffLine
 * @property {'context' | 'add' | 'remove' | 'note'} kind a note: `\ No newline at end of file`
 * @property {string} text without its first character
 * @property {number | null} oldNumber
 * @property {number | null} newNumber
 */

/**
 * @typedef {object} Hunk
 * @property {string} header the whole line that begins with `@@`
 * @property {string} section what follows the second `@@`: usually the function it is in
 * @property {number} oldStart
 * @property {number} newStart
 * @property {DiffLine[]} lines
 * @property {boolean} isBroken it has fewer lines than its header says; patch programs refuse it
 */

/**
 * @typedef {object} DiffFile
 * @property {string | null} oldPath null if the file is new
 * @property {string | null} newPath null if the file is deleted
 * @property {'modified' | 'added' | 'deleted' | 'renamed' | 'copied'} change
 * @property {boolean} isBinary
 * @property {string | null} oldMode
 * @property {string | null} newMode if it differs from `oldMode`, what may be executed changes
 * @property {number} added
 * @property {number} removed
 * @property {string[]} header the lines before its first hunk, whole
 * @property {boolean} isOdd its header has lines that git does not write: programs that apply
 *   patches may find changes in them
 * @property {Hunk[]} hunks
 * @property {string[]} others lines after a hunk that belong to none, and binary content
 */

/**
 * @typedef {object} Diff
 * @property {string[]} preamble lines before the first file
 * @property {DiffFile[]} files
 * @property {number} added
 * @property {number} removed
 * @property {boolean} isBroken some of it is no unified diff
 */

const HUNK =
	/^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(.*)$/s;
/** The lines that git writes between `diff --git` and the paths. */
const HEADER =
	/^(index [0-9a-f]+\.\.[0-9a-f]+( \d{6})?|(old|new|deleted file|new file) mode \d{6}|(dis)?similarity index \d{1,3}%|(rename|copy) (from|to) .*)\r?$/s;
const BINARY = /^(Binary files .* differ|GIT binary patch)\r?$/s;
/** The lines of git's binary patches: their kind, then base85 that begins with its length. */
const BINARY_CONTENT =
	/^(GIT binary patch|(literal|delta) \d+|[A-Za-z][0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]+|)\r?$/;
/** Lines of other formats, or of indented ones, that patch programs find in any text. */
const LIKE_PATCH =
	/^\s*(\*\*\* |\*{15}|--- |\+\+\+ |@@|\d+(,\d+)?[acd](\d+(,\d+)?)?\s*$)/;
const MODES =
	/^(old mode|new mode|deleted file mode|new file mode|index [0-9a-f]+\.\.[0-9a-f]+) ?(\d{6})?/;

/** Lines that are read without an interruption. */
const AT_ONCE = 500;

/**
 * @param {string} text
 * @returns {Diff}
 */
export function parseDiff(text) {
	const work = parsingDiff(text);
	for (;;) {
		const step = work.next();
		if (step.done) return step.value;
	}
}

/**
 * The same in pieces.
 * @param {string} text
 * @returns {Generator<void, Diff, void>}
 */
export function* parsingDiff(text) {
	const parser = new DiffParser();
	const lines = text.split("\n");
	// The text ends with a line feed, not with an empty line.
	if (lines[lines.length - 1] === "") lines.pop();
	for (let place = 0; place < lines.length; place += 1) {
		parser.line(String(lines[place]), lines[place + 1]);
		if (place % AT_ONCE === 0) yield;
	}
	parser.endHunk();
	return parser.diff();
}

class DiffParser {
	constructor() {
		/** @type {string[]} */
		this.preamble = [];
		/** @type {DiffFile[]} */
		this.files = [];
		/** @type {DiffFile | null} */
		this.file = null;
		/** @type {Hunk | null} */
		this.hunk = null;
		/** Whether `---` and `+++` have named the file. */
		this.hasPaths = false;
		/** Whether the next line is the `+++` that was read with its `---`. */
		this.isPathNext = false;
		this.oldLeft = 0;
		this.newLeft = 0;
		this.oldNumber = 0;
		this.newNumber = 0;
	}

	/** @returns {Diff} */
	diff() {
		const sum = (/** @type {'added' | 'removed'} */ name) =>
			this.files.reduce((total, file) => total + file[name], 0);
		const isNone = this.files.length === 0 && this.preamble.length > 0;
		const isBroken =
			isNone ||
			this.files.some(isBrokenFile) ||
			this.preamble.some((line) => LIKE_PATCH.test(line));
		return {
			preamble: this.preamble,
			files: this.files,
			added: sum("added"),
			removed: sum("removed"),
			isBroken,
		};
	}

	/**
	 * @param {string} line
	 * @param {string | undefined} next
	 */
	line(line, next) {
		if (this.hunk !== null && this.hunkLine(this.hunk, line)) return;
		this.endHunk();
		if (line.startsWith("diff --git ")) {
			this.begin(line);
			this.gitPaths(line);
		} else if (line.startsWith("--- ") && next?.startsWith("+++ ")) {
			if (
				this.file === null ||
				this.file.hunks.length > 0 ||
				this.file.others.length > 0 ||
				this.hasPaths
			)
				this.begin(null);
			this.paths(line, next);
		} else if (this.file !== null && HUNK.test(line)) {
			this.beginHunk(this.file, line);
		} else {
			this.otherLine(line);
		}
	}

	/**
	 * Whether the line belongs to the hunk.
	 * @param {Hunk} hunk
	 * @param {string} line
	 */
	hunkLine(hunk, line) {
		const first = line[0];
		const isOpen = this.oldLeft > 0 || this.newLeft > 0;
		if (first === "\\") {
			hunk.lines.push({
				kind: "note",
				text: line.slice(1),
				oldNumber: null,
				newNumber: null,
			});
			return true;
		}
		// Mail programs remove the space of an empty line.
		const isContext = first === " " || line === "" || line === "\r";
		if (!isOpen || (isContext && (this.oldLeft === 0 || this.newLeft === 0)))
			return false;
		if (isContext) this.push(hunk, "context", line);
		else if (first === "-" && this.oldLeft > 0) this.push(hunk, "remove", line);
		else if (first === "+" && this.newLeft > 0) this.push(hunk, "add", line);
		else return false;
		return true;
	}

	/**
	 * @param {Hunk} hunk
	 * @param {'context' | 'add' | 'remove'} kind
	 * @param {string} line
	 */
	push(hunk, kind, line) {
		const isOld = kind !== "add";
		const isNew = kind !== "remove";
		const text = line[0] === "\r" ? line : line.slice(1);
		hunk.lines.push({
			kind,
			text,
			oldNumber: isOld ? this.oldNumber : null,
			newNumber: isNew ? this.newNumber : null,
		});
		if (isOld) {
			this.oldNumber += 1;
			this.oldLeft -= 1;
		}
		if (isNew) {
			this.newNumber += 1;
			this.newLeft -= 1;
		}
		if (this.file !== null && kind === "add") this.file.added += 1;
		if (this.file !== null && kind === "remove") this.file.removed += 1;
	}

	endHunk() {
		if (this.hunk !== null)
			this.hunk.isBroken = this.oldLeft > 0 || this.newLeft > 0;
		this.hunk = null;
	}

	/** @param {string | null} line */
	begin(line) {
		this.file = {
			oldPath: null,
			newPath: null,
			change: "modified",
			isBinary: false,
			oldMode: null,
			newMode: null,
			added: 0,
			removed: 0,
			header: line === null ? [] : [line],
			isOdd: false,
			hunks: [],
			others: [],
		};
		this.hasPaths = false;
		this.files.push(this.file);
	}

	/**
	 * @param {DiffFile} file
	 * @param {string} line
	 */
	beginHunk(file, line) {
		const [, oldStart, oldCount = "1", newStart, newCount = "1", section] =
			HUNK.exec(line) ?? [];
		[this.oldNumber, this.newNumber] = [Number(oldStart), Number(newStart)];
		[this.oldLeft, this.newLeft] = [Number(oldCount), Number(newCount)];
		this.hunk = {
			header: line,
			section: String(section).trim(),
			oldStart: this.oldNumber,
			newStart: this.newNumber,
			lines: [],
			isBroken: false,
		};
		file.hunks.push(this.hunk);
	}

	/**
	 * A line outside of hunks.
	 * @param {string} line
	 */
	otherLine(line) {
		const { file } = this;
		const isPath = this.isPathNext;
		this.isPathNext = false;
		if (file === null) this.preamble.push(line);
		else if (file.hunks.length > 0 || file.others.length > 0)
			file.others.push(line);
		else if (!this.hasPaths && !file.isOdd && BINARY.test(line)) {
			file.isBinary = true;
			file.others.push(line);
		} else {
			file.header.push(line);
			if (!this.hasPaths && HEADER.test(line)) this.headerLine(file, line);
			else if (!isPath) file.isOdd = true;
		}
	}

	/**
	 * @param {DiffFile} file
	 * @param {string} line
	 */
	headerLine(file, line) {
		const [, name = "", mode = null] = MODES.exec(line) ?? [];
		if (name === "old mode") file.oldMode = mode;
		if (name === "new mode") file.newMode = mode;
		if (name.startsWith("index") && mode !== null)
			file.oldMode = file.newMode = mode;
		if (name === "new file mode")
			[file.change, file.newMode, file.oldPath] = ["added", mode, null];
		if (name === "deleted file mode")
			[file.change, file.oldMode, file.newPath] = ["deleted", mode, null];
		const [, change, side, path] =
			/^(rename|copy) (from|to) (.*)$/s.exec(line) ?? [];
		if (change === undefined || path === undefined) return;
		file.change = change === "rename" ? "renamed" : "copied";
		file[side === "from" ? "oldPath" : "newPath"] = unquote(path);
	}

	/**
	 * The paths of `diff --git`. Ambiguous if they have spaces and differ; then later lines name
	 * them.
	 * @param {string} line
	 */
	gitPaths(line) {
		const rest = line.slice("diff --git ".length);
		const quoted = /^("(?:[^"\\]|\\.)*"|\S+) ("(?:[^"\\]|\\.)*"|\S+)$/.exec(
			rest,
		);
		const middle = (rest.length - 1) / 2;
		const halves =
			quoted === null
				? [rest.slice(0, middle), rest.slice(middle + 1)]
				: [quoted[1], quoted[2]];
		const [from, to] = halves.map((half) => stripSide(unquote(String(half))));
		if (this.file === null || (quoted === null && from !== to)) return;
		[this.file.oldPath, this.file.newPath] = [from ?? null, to ?? null];
	}

	/**
	 * @param {string} oldLine
	 * @param {string} newLine
	 */
	paths(oldLine, newLine) {
		const { file } = this;
		if (file === null) return;
		const isGit = file.header.length > 0;
		const read = (/** @type {string} */ line) => {
			const path = unquote(
				line.slice(4).replace(/\t.*$/s, "").replace(/\r$/, ""),
			);
			return path === "/dev/null"
				? null
				: isGit || /^[ab]\//.test(path)
					? stripSide(path)
					: path;
		};
		file.header.push(oldLine);
		[file.oldPath, file.newPath] = [read(oldLine), read(newLine)];
		if (file.oldPath === null) file.change = "added";
		else if (file.newPath === null) file.change = "deleted";
		else if (file.change === "modified" && file.oldPath !== file.newPath)
			file.change = "renamed";
		this.hasPaths = true;
		this.isPathNext = true;
	}
}

/** @param {DiffFile} file */
function isBrokenFile({ isOdd, hunks, isBinary, others }) {
	if (isOdd || hunks.some((hunk) => hunk.isBroken)) return true;
	if (!isBinary) return others.length > 0;
	const isPatch = String(others[0]).startsWith("GIT");
	return (
		hunks.length > 0 ||
		!(isPatch
			? others.every((line) => BINARY_CONTENT.test(line))
			: others.length === 1)
	);
}

/** @param {string} path */
function stripSide(path) {
	return path.replace(/^[ab]\//, "");
}

/**
 * A path as git quotes it: bytes beyond ASCII as octal numbers.
 * @param {string} path
 */
function unquote(path) {
	if (!/^".*"$/s.test(path)) return path;
	/** @type {Record<string, string>} */
	const letters = {
		n: "\n",
		t: "\t",
		r: "\r",
		a: "\x07",
		b: "\b",
		f: "\f",
		v: "\v",
	};
	const read = (/** @type {string} */ _, /** @type {string} */ escaped) =>
		escaped.length === 3
			? `%${(Number.parseInt(escaped, 8) & 0xff).toString(16).padStart(2, "0")}`
			: (letters[escaped] ?? escaped);
	const binary = path
		.slice(1, -1)
		.replaceAll("%", "%25")
		.replace(/\\([0-7]{3}|.)/gs, read);
	try {
		return binary.replace(/(?:%[0-9a-f]{2})+/g, decodeURIComponent);
	} catch {
		return path;
	}
}
