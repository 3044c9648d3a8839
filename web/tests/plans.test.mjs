// Plans and headlines say what was written: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseMarkdown } from "../core/markdown.js";
import { sentenceOf } from "../core/sentence.js";

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

test("a patch is told by its files, also those that it deletes, and no others", () => {
	const told = (patch) => {
		const { name, values, more } = sentenceOf(
			{ payload: { kind: "patch", patch } },
			String,
		);
		return [name, values.path, more];
	};
	assert.deepEqual(
		told(
			"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a\n-b\n+++ README\n+c\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\ndiff --git a/run b/go\nrename from run\nrename to go\n",
		),
		["changeMore", "x", 2],
	);
	// Too long to be read for a line: it does not claim to know all of it.
	assert.deepEqual(
		told(`--- a/x\n+++ b/x\n@@ -0,0 +1,99999 @@\n${"+x\n".repeat(100_000)}`),
		["changeMore", "x", null],
	);
});

test("tables, tasks and struck text", () => {
	const [table, paragraph] = parseMarkdown(
		"| a | b |\n|:--|--:|\n| `x|y` | 1 \\| 2 |\n| only |\n| more | than | two |\n",
	);
	assert.equal(table.kind, "table");
	assert.deepEqual(table.aligns, ["left", "right"]);
	assert.deepEqual(
		table.rows.map((row) => row.map((cell) => cell.map(({ text }) => text))),
		[
			[["x|y"], ["1 | 2"]],
			[["only"], []],
		],
	);
	assert.equal(paragraph.kind, "paragraph");
	assert.equal(parseMarkdown("a | b\n--- | --- | ---\n")[0].kind, "paragraph");
	const [list] = parseMarkdown("- [x] done\n- [ ] open\n- [y] none\n- [x]\n");
	assert.deepEqual(list.tasks, [true, false, null, null]);
	assert.equal(list.items[0][0].children[0].text, "done");
	assert.equal(parseMarkdown("- a\n")[0].tasks, undefined);
	assert.equal(spans("a ~~b~~ c ~d~ ~~ e"), "a <struck> c ~d~ ~~ e");
});
