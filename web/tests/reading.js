// Showing what enforcers send: marked characters, diffs and Markdown. Nothing may be lost, and
// nothing may take long.

import { parseDiff } from "../core/diff.js";
import { parseMarkdown } from "../core/markdown.js";
import { marksOf, pieces, visibleText } from "../core/visible.js";
import { assert, assertEqual } from "./support.js";

const PATCH = `From: somebody
diff --git a/src/a.rs b/src/a.rs
index 1111111..2222222 100644
--- a/src/a.rs
+++ b/src/a.rs
@@ -1,4 +1,5 @@ fn main()
 one
-two
--- three
+2
+++ 3
+four
 five
\\ No newline at end of file
diff --git a/old name b/new name
similarity index 100%
rename from old name
rename to new name
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
diff --git "a/\\303\\244 100%" "b/\\303\\244 100%"
new file mode 100644
--- /dev/null
+++ "b/\\303\\244 100%"
@@ -0,0 +1 @@
+x
diff --git a/logo.png b/logo.png
Binary files a/logo.png and b/logo.png differ
--- plain.txt\t2026-01-01
+++ plain.txt\t2026-01-02
@@ -1 +1 @@
-a
+b
--- gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-a
`;

/**
 * Everything that a diff holds, in order.
 * @param {import('../core/diff.js').Diff} diff
 */
function spell(diff) {
	const signs = { context: " ", add: "+", remove: "-", note: "\\" };
	const lines = diff.files.flatMap((file) => [
		...file.header,
		...file.hunks.flatMap((hunk) => [
			hunk.header,
			...hunk.lines.map(({ kind, text }) => signs[kind] + text),
		]),
		...file.others,
	]);
	return [...diff.preamble, ...lines].join("\n");
}

/**
 * All text of a tree.
 * @param {any} node
 * @returns {string}
 */
function textOf(node) {
	if (Array.isArray(node)) return node.map(textOf).join(" ");
	const {
		text = "",
		address = "",
		info = "",
		children = [],
		items = [],
		head = [],
		rows = [],
	} = node;
	const parts = [children, head, ...items, ...rows];
	return [text, address, info, ...parts.map(textOf)].join(" ");
}

/** @type {import('./support.js').Tests} */
export const tests = {
	"characters that deceive"() {
		assertEqual(pieces("plain text\n\twith ä 日本 😀"), [
			{ text: "plain text\n\twith ä 日本 😀", mark: null },
		]);
		assertEqual(pieces(""), []);
		assertEqual(pieces("a\u202eb"), [
			{ text: "a", mark: null },
			{ text: "\u202e", mark: "bidi", name: "U+202E", count: 1 },
			{ text: "b", mark: null },
		]);
		/** @type {[string, string][]} */
		const known = [
			["\u0007", "control"],
			["\u001b", "control"],
			["\r", "control"],
			["\u0085", "control"],
			["\u2066", "bidi"],
			["\u061c", "bidi"],
			["\u200b", "invisible"],
			["\ufeff", "invisible"],
			["\u00ad", "invisible"],
			["\u3164", "invisible"],
			["\u{e0041}", "invisible"],
			["\ufe0f", "invisible"],
			["\ud800", "invisible"],
			["\u2028", "invisible"],
			["\u00a0", "space"],
			["\u3000", "space"],
		];
		for (const [text, mark] of known) {
			for (const strict of [false, true])
				assertEqual(
					[...marksOf(`a${text}b`, { strict })],
					[mark],
					visibleText(text),
				);
		}
		for (const text of [
			"\u0456",
			"\u03bf",
			"\uff0d",
			"\u2013",
			"\u2215",
			"\u201d",
			"\u{1d5ba}",
			"\u0131",
			"\u0660",
		]) {
			assertEqual(
				[...marksOf(text, { strict: true })],
				["lookalike"],
				visibleText(text),
			);
			assertEqual([...marksOf(text)], [], visibleText(text));
		}
		assertEqual([...marksOf("\n\t", { singleLine: true })], ["control"]);
		assertEqual(visibleText("a\nb\u202e"), "a\\u{a}b\\u{202e}");
		let ascii = "";
		for (let code = 0x20; code < 0x7f; code += 1)
			ascii += String.fromCharCode(code);
		assertEqual(pieces(ascii, { strict: true }).length, 1);
		const text = "x\u200b\u200b\u200by\u0456\u0007";
		assertEqual(
			pieces(text, { strict: true })
				.map((piece) => piece.text)
				.join(""),
			text,
		);
		assertEqual(
			pieces("\u200b".repeat(700_000)).length,
			1,
			"a million invisible characters are one piece",
		);
	},

	"a diff by file, with nothing lost"() {
		const diff = parseDiff(PATCH);
		assertEqual(`${spell(diff)}\n`, PATCH);
		const told = diff.files.map(
			({ oldPath, newPath, change, added, removed }) => [
				oldPath,
				newPath,
				change,
				added,
				removed,
			],
		);
		assertEqual(told, [
			["src/a.rs", "src/a.rs", "modified", 3, 2],
			["old name", "new name", "renamed", 0, 0],
			["run.sh", "run.sh", "modified", 0, 0],
			[null, "ä 100%", "added", 1, 0],
			["logo.png", "logo.png", "modified", 0, 0],
			["plain.txt", "plain.txt", "modified", 1, 1],
			["gone.txt", null, "deleted", 0, 1],
		]);
		assertEqual(
			[diff.added, diff.removed, diff.isBroken, diff.preamble],
			[5, 4, false, ["From: somebody"]],
		);
		const [first, , mode, , binary] = diff.files;
		assertEqual(
			first?.hunks[0]?.lines.map(({ kind, oldNumber, newNumber }) => [
				kind,
				oldNumber,
				newNumber,
			]),
			[
				["context", 1, 1],
				["remove", 2, null],
				["remove", 3, null],
				["add", null, 2],
				["add", null, 3],
				["add", null, 4],
				["context", 4, 5],
				["note", null, null],
			],
		);
		assertEqual(
			[
				first?.hunks[0]?.section,
				mode?.oldMode,
				mode?.newMode,
				binary?.isBinary,
			],
			["fn main()", "100644", "100755", true],
		);
	},

	"a malformed diff hides nothing"() {
		const texts = [
			"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n+rm -rf /\n",
			"--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n+b\n",
			"--- a/x\n+++ b/x\n@@ nonsense\n+b\n",
			"no diff at all\n+x\n",
			"@@ -1 +1 @@\n-a\n+b\n",
			"diff --git a/x b/x\nsomething new in git\n@@ -1 +1 @@\n-a\n+b\n\n\ntrailer\n",
		];
		for (const text of texts) assertEqual(`${spell(parseDiff(text))}\n`, text);
		assert(
			texts.filter((text) => parseDiff(text).isBroken).length >= 4,
			"said to be broken",
		);
		assertEqual(parseDiff(""), {
			preamble: [],
			files: [],
			added: 0,
			removed: 0,
			isBroken: false,
		});
	},

	"large diffs take little time"() {
		const hunk = `@@ -1,1000 +1,1000 @@\n${"-a line of text\n+another line of it\n".repeat(1000)}`;
		const large = `--- a/x\n+++ b/x\n${hunk.repeat(60)}`;
		const hostile = [
			large,
			"+".repeat(2 << 20),
			"--- a\n+++ b\n".repeat(170_000),
			`--- a\n+++ b\n${"@@ -1 +1 @@\n".repeat(170_000)}`,
		];
		for (const text of hostile) {
			const begun = performance.now();
			parseDiff(text);
			assert(
				performance.now() - begun < 5_000,
				`took ${performance.now() - begun} ms`,
			);
		}
		assertEqual(parseDiff(large).added, 60_000);
	},

	"Markdown as a tree"() {
		assertEqual(parseMarkdown("# A `b` *c*\n\none\ntwo **three**\n\n---\n"), [
			{
				kind: "heading",
				level: 1,
				children: [
					{ kind: "text", text: "A " },
					{ kind: "code", text: "b" },
					{ kind: "text", text: " " },
					{ kind: "emphasis", children: [{ kind: "text", text: "c" }] },
				],
			},
			{
				kind: "paragraph",
				children: [
					{ kind: "text", text: "one\ntwo " },
					{ kind: "strong", children: [{ kind: "text", text: "three" }] },
				],
			},
			{ kind: "rule" },
		]);
		const item = (/** @type {string} */ text) => ({
			kind: "paragraph",
			children: [{ kind: "text", text }],
		});
		assertEqual(parseMarkdown("3. a\n4. b\n   - c\n   - d\n\n- e"), [
			{
				kind: "list",
				isOrdered: true,
				numbers: [3, 4],
				items: [
					[item("a")],
					[
						item("b"),
						{
							kind: "list",
							isOrdered: false,
							numbers: [],
							items: [[item("c")], [item("d")]],
						},
					],
				],
			},
			{ kind: "list", isOrdered: false, numbers: [], items: [[item("e")]] },
		]);
		assertEqual(parseMarkdown("> q\n\n```sh\n# x\n```\n"), [
			{ kind: "quote", children: [item("q")] },
			{ kind: "codeBlock", info: "sh", text: "# x" },
		]);
		assertEqual(
			parseMarkdown("[here](javascript:alert(1)) [x](javascript:y)"),
			[
				{
					kind: "paragraph",
					children: [
						{ kind: "text", text: "[here](javascript:alert(1)) " },
						{ kind: "link", text: "x", address: "javascript:y" },
					],
				},
			],
		);
		assertEqual(
			parseMarkdown(
				"<script>a</script> snake_case_name &amp; \\* 2 * 3 <!-- x -->",
			),
			[item("<script>a</script> snake_case_name &amp; * 2 * 3 <!-- x -->")],
		);
		assertEqual(parseMarkdown("```\nnever closed"), [
			{ kind: "codeBlock", info: "", text: "never closed" },
		]);
	},

	"Markdown loses no word, and takes little time"() {
		const words = Array.from({ length: 400 }, (_, at) => `w${at}`);
		const marks = [
			"# ",
			"> ",
			"- ",
			"  - ",
			"1. ",
			"**",
			"`",
			"```\n",
			"~~~",
			"[",
			"](",
			")",
			"\n",
			"\n\n",
			"    ",
			"|",
			"_",
			"<b>",
			"---\n",
			"\\",
		];
		const text = words
			.map(
				(word, at) =>
					`${marks[(at * 7) % marks.length]}${word}${marks[(at * 11) % marks.length]} `,
			)
			.join("");
		const kept = textOf(parseMarkdown(text));
		for (const word of words) assert(kept.includes(word), word);
		const hostile = [
			"> ",
			"- ",
			"*",
			"_",
			"`",
			"[",
			"#",
			"**a ",
			"![",
			"\\",
			"\n- ",
			"1. ",
		].map((part) => part.repeat((1 << 20) / part.length));
		for (const large of [
			...hostile,
			`# ${" ".repeat(1 << 20)}x`,
			`${"  - a\n".repeat(100_000)}`,
		]) {
			const begun = performance.now();
			parseMarkdown(large);
			assert(
				performance.now() - begun < 5_000,
				`${large.slice(0, 8)} took ${performance.now() - begun} ms`,
			);
		}
	},
};
