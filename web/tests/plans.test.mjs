// Plans and headlines say what was written: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseMarkdown } from "../core/markdown.js";

globalThis.document ??= {
	createElement: () => ({ setAttribute() {}, append() {} }),
};
const { patchedFiles } = await import("../ui/summary.js");

const spans = (text) =>
	parseMarkdown(text)[0]
		.children.map((node) =>
			node.kind === "text" ? node.text : `<${node.kind}>`,
		)
		.join("");

test("asterisks of paths and patterns are not taken for emphasis", () => {
	for (const text of [
		"rm /tmp/*.log /home/*",
		"cp *.a *.b",
		"rm *a /home/*",
		"a*b*c",
		"rm **/x **/y",
		"2 * 3 * 4",
		"a_b_c",
		"x *",
		"ls _*.js *_",
	])
		assert.equal(spans(text), text);
});

test("emphasis around words is", () => {
	const known = [
		["a *b* c", "a <emphasis> c"],
		["**b**", "<strong>"],
		["(*b*).", "(<emphasis>)."],
		["_b c_!", "<emphasis>!"],
		["**`x`**", "<strong>"],
	];
	for (const [text, expected] of known)
		assert.equal(spans(text), expected, text);
});

test("numbers of a list are those that were written", () => {
	const [list] = parseMarkdown("3. a\n7. b\n1. c\n");
	assert.deepEqual([list.numbers, list.items.length], [[3, 7, 1], 3]);
	assert.deepEqual(parseMarkdown("- a\n- b\n")[0].numbers, []);
});

test("the headline of a patch has its files, also those that it deletes, and no others", () => {
	const patch =
		"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a\n-b\n+++ README\n+c\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\ndiff --git a/run b/go\nrename from run\nrename to go\n";
	assert.deepEqual(patchedFiles(patch), ["x", "gone", "go"]);
	const many = Array.from(
		{ length: 9 },
		(_, at) => `--- a/f${at}\n+++ b/f${at}\n@@ -1 +1 @@\n-a\n+b\n`,
	).join("");
	assert.deepEqual(patchedFiles(many).slice(-2), ["f7", "…"]);
	assert.equal(
		patchedFiles(
			`--- a/x\n+++ b/x\n@@ -0,0 +1,99999 @@\n${"+x\n".repeat(40_000)}`,
		).at(-1),
		"…",
	);
});
