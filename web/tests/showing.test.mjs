// Views show everything: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDiff } from "../core/diff.js";
import { qrCode } from "../ui/qr.js";
import { atOnce, inSlices } from "../ui/slices.js";
import { arrangingPatch, modeOf, patchRows } from "../views/patchrows.js";

const PATCH = `From: somebody
diff --git a/a.txt b/a.txt
index 1111111..2222222 100644
--- a/a.txt
+++ b/a.txt
@@ -1,22 +1,23 @@ section
${Array.from({ length: 20 }, (_, line) => ` unchanged ${line}`).join("\n")}
-old one
-old two
+new one
+new two
+new ${"long ".repeat(1000)}end
\\ No newline at end of file
stray line
diff --git a/run.sh b/go.sh
old mode 100644
new mode 100755
similarity index 100%
rename from run.sh
rename to go.sh
diff --git a/logo.png b/logo.png
Binary files a/logo.png and b/logo.png differ
`;

/** The texts of all rows, in order, with pieces of long lines put together. */
function shown(rows) {
	const texts = [];
	const add = (cell) => {
		if (cell && cell.from > 0) texts[texts.length - 1] += cell.text;
		else if (cell) texts.push(cell.text);
	};
	for (const row of rows) {
		if (row.type === "line") add(row.cell);
		if (row.type === "pair") {
			if (row.left?.kind !== "context") add(row.left);
			add(row.right);
		}
		if (row.type === "text") texts.push(row.text);
	}
	return texts;
}

/** Opens every fold, as a person would. */
function unfolded(diff, isSplit) {
	const arrangement = { isSplit, closed: new Set(), unfolded: new Set() };
	for (const row of patchRows(diff, arrangement))
		if (row.type === "fold") arrangement.unfolded.add(row.key);
	return patchRows(diff, arrangement);
}

test("every line of a patch is shown, in both layouts", () => {
	const lines = PATCH.split("\n").filter((line) =>
		/unchanged|^[-+](old|new)|^\\|stray|^From|^Binary/.test(line),
	);
	const expected = lines.map((line) =>
		/^[-+ ](unchanged|old|new )/.test(line) ? line.slice(1) : line,
	);
	for (const isSplit of [false, true]) {
		const found = shown(unfolded(parseDiff(PATCH), isSplit));
		assert.deepEqual(
			[...found].sort(),
			[...expected].sort(),
			isSplit ? "side by side" : "unified",
		);
	}
});

test("only unchanged lines are folded, and the fold says how many", () => {
	const rows = patchRows(parseDiff(PATCH), {
		isSplit: false,
		closed: new Set(),
		unfolded: new Set(),
	});
	const folds = rows.filter((row) => row.type === "fold");
	const visible = shown(rows).filter((text) =>
		text.startsWith("unchanged"),
	).length;
	assert.equal(folds.length, 1);
	assert.equal(folds[0].count + visible, 20);
	assert.ok(shown(rows).includes("old one") && shown(rows).includes("new two"));
});

test("a closed file keeps its heading", () => {
	const rows = patchRows(parseDiff(PATCH), {
		isSplit: false,
		closed: new Set([0, 1, 2]),
		unfolded: new Set(),
	});
	assert.deepEqual(
		rows.filter((row) => row.type === "file").map((row) => row.path),
		["a.txt", "go.sh", "logo.png"],
	);
});

const arranged = (text, isSplit = false) =>
	patchRows(parseDiff(text), {
		isSplit,
		closed: new Set(),
		unfolded: new Set(),
	});

test("modes are said where they matter", () => {
	const modes = (header) =>
		parseDiff(`diff --git a/x b/x\n${header}`).files.map(modeOf)[0];
	assert.deepEqual(modes("old mode 100644\nnew mode 100755\n"), {
		from: "100644",
		to: "100755",
	});
	assert.deepEqual(modes("new file mode 100755\n"), {
		from: null,
		to: "100755",
	});
	assert.deepEqual(modes("new file mode 120000\n"), {
		from: null,
		to: "120000",
	});
	assert.equal(modes("new file mode 100644\n"), null);
	assert.equal(modes("deleted file mode 100755\n"), null);
	assert.equal(modes("index 1111111..2222222 100755\n"), null);
	// A header that contradicts what is said is shown.
	const odd = arranged(
		"diff --git a/x b/x\nold mode 100644\nnew mode 100755\nnew mode 100600\nrename from y\nrename to x\nsimilarity index 9%\n",
	);
	assert.deepEqual(
		odd.filter((row) => row.type === "text").map((row) => row.text),
		["diff --git a/x b/x", "new mode 100755"],
	);
});

test("every note behind a line is shown, beside its line", () => {
	const patch =
		"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n\\ a\n\\ b\n-old\n\\ c\n\\ d\n+new\n\\ e\n";
	for (const isSplit of [false, true]) {
		const notes = arranged(patch, isSplit)
			.filter((row) => row.type === "text")
			.map((row) => [row.text, row.of]);
		assert.deepEqual(notes, [
			["\\ a", null],
			["\\ b", null],
			["\\ c", "remove"],
			["\\ d", "remove"],
			["\\ e", "add"],
		]);
	}
});

test("a place that says nothing has no row", () => {
	const places = (text) =>
		arranged(text).filter((row) => row.type === "place").length;
	const hunk = (at, section) => `@@ -${at} +${at} @@${section}\n-a\n+b\n`;
	assert.equal(places(`--- a/x\n+++ b/x\n${hunk(1, "")}`), 0);
	assert.equal(places(`--- a/x\n+++ b/x\n${hunk(1, " fn a()")}`), 1);
	assert.equal(places(`--- a/x\n+++ b/x\n${hunk(9, "")}`), 1);
});

test("a file is arranged anew only if it changed", () => {
	const diff = parseDiff(
		"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
	);
	const known = new Map();
	const arrange = (closed) =>
		atOnce(
			arrangingPatch(
				diff,
				{ isSplit: false, closed: new Set(closed), unfolded: new Set() },
				known,
			),
		);
	const before = arrange([]);
	known.delete(diff.files[1]);
	const after = arrange([1]);
	assert.equal(after[1], before[1]);
	assert.deepEqual([before.length, after.length], [6, 4]);
});

test("work in slices ends, or is given up", async () => {
	function* counting(to) {
		let sum = 0;
		for (let at = 0; at < to; at += 1) {
			sum += 1;
			yield;
		}
		return sum;
	}
	assert.equal(await inSlices(counting(200_000), () => true), 200_000);
	assert.equal(await inSlices(counting(1e9), () => false), null);
	assert.equal(atOnce(counting(10)), 10);
});

test("a line that was changed in part says which part", () => {
	const rows = patchRows(
		parseDiff(
			"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-total(price, 0)\n+total(price * 2, 0)\n",
		),
		{ isSplit: false, closed: new Set(), unfolded: new Set() },
	);
	const cells = rows
		.filter((row) => row.type === "line")
		.map((row) => row.cell);
	assert.equal(cells[1].text.slice(...cells[1].changed), " * 2");
});

test("a QR code that readers have read", () => {
	const known = [
		"1fc857f",
		"105bb41",
		"174e15d",
		"175ac5d",
		"174515d",
		"1054e41",
		"1fd557f",
		"1500",
		"1f7d8aa",
		"9988a2",
		"2cbf2b",
		"1f1e761",
		"ccbad7",
		"169d12a",
		"13c1a7b",
		"15177f1",
		"12f89f4",
		"16b18",
		"1fd0d57",
		"1041518",
		"1757ff4",
		"17526df",
		"175820d",
		"10551b9",
		"1fd5cff",
	];
	const code = qrCode("https://example.org/#/pair");
	const rows = Array.from({ length: code.size }, (_, row) =>
		BigInt(
			`0b${code.dark.subarray(row * code.size, (row + 1) * code.size).join("")}`,
		).toString(16),
	);
	assert.deepEqual(rows, known);
	assert.equal(qrCode("x".repeat(2953)).size, 177);
	assert.equal(qrCode("x".repeat(2954)), null);
});
