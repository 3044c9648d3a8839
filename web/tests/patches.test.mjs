// Patches that programs apply, although they are no regular ones, are not shown as harmless:
// `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDiff } from "../core/diff.js";
import { patchRows } from "../views/patchrows.js";

const rowsOf = (diff) =>
	patchRows(diff, { isSplit: false, closed: new Set(), unfolded: new Set() });
const notesOf = (diff) =>
	rowsOf(diff)
		.filter((row) => row.type === "note")
		.map((row) => row.note);
const CONTEXT =
	"*** a/prod.sh\n--- b/prod.sh\n***************\n*** 1 ****\n! old\n--- 1 ----\n! EVIL\n";
const REGULAR = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";

test("lines between the header and the first hunk are shown as such, and the patch as irregular", () => {
	const patches = [
		"--- a/x\n+++ b/x\n@@ -1,1 +1,2 @\n a\n+EVIL\n",
		`diff --git a/README b/README\nindex 1..2 100644\n${CONTEXT}`,
		`diff --git a/README b/README\nnote\nindex 1..2 100644\n${REGULAR}`,
		"--- a/x\n+++ b/x\n+EVIL\n@@ -1 +1 @@\n-a\n+b\n",
		"diff --git a/x b/x\n1c\nEVIL\n.\n",
		"--- a/x\n+++ b/x\nindex 1..2 100644\n@@ -1 +1 @@\n-a\n+b\n",
	];
	for (const patch of patches) {
		const diff = parseDiff(patch);
		assert.ok(diff.isBroken, patch);
		assert.ok(notesOf(diff).includes("outside"), patch);
		assert.ok(!notesOf(diff).includes("noLines"), patch);
		const texts = new Set(
			rowsOf(diff).map((row) => row.text ?? row.cell?.text),
		);
		for (const line of patch.split("\n").filter((one) => one.includes("EVIL")))
			assert.ok(texts.has(line) || texts.has(line.slice(1)), line);
	}
});

test("no lines change only where the header is nothing but what git writes", () => {
	const diff = parseDiff(
		"diff --git a/run.sh b/go.sh\nold mode 100644\nnew mode 100755\nsimilarity index 100%\nrename from run.sh\nrename to go.sh\n",
	);
	assert.deepEqual([diff.isBroken, notesOf(diff)], [false, ["noLines"]]);
	assert.deepEqual(
		notesOf(
			parseDiff(
				"diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n",
			),
		),
		["noLines"],
	);
	assert.deepEqual(notesOf(parseDiff("--- a/x\n+++ b/x\n")), ["noLines"]);
});

test("what follows a binary file must be binary", () => {
	const whole =
		"diff --git a/l b/l\nindex 1..2 100644\nGIT binary patch\nliteral 3\nKcmZ>Z;9vj%0{{R3\n\nliteral 0\nHcmV?d00001\n\n";
	assert.deepEqual(
		[parseDiff(whole).isBroken, parseDiff(whole).files[0].isBinary],
		[false, true],
	);
	assert.ok(
		!parseDiff("diff --git a/l b/l\nBinary files a/l and b/l differ\n")
			.isBroken,
	);
	for (const start of [
		whole,
		"diff --git a/l b/l\nBinary files a/l and b/l differ\n",
	]) {
		assert.ok(parseDiff(start + CONTEXT).isBroken);
		assert.ok(parseDiff(`${start}@@ -1 +1 @@\n-a\n+EVIL\n`).isBroken);
	}
});

test("a patch in the text before the first file is irregular", () => {
	assert.ok(
		!parseDiff(
			`From: somebody\nSubject: [PATCH] x\n\n---\n x | 2 +-\n\n${REGULAR}`,
		).isBroken,
	);
	const indented = REGULAR.replace(/^/gm, "  ");
	for (const before of [
		CONTEXT,
		indented,
		"Index: prod.sh\n1c1\n< a\n> EVIL\n",
	])
		assert.ok(parseDiff(before + REGULAR).isBroken, before);
});
