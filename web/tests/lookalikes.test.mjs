// In commands, paths and names nothing but printable ASCII is left unmarked:
// `node --test web/tests/`.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { marksOf, pieces } from "../core/visible.js";

const STRICT = { strict: true, singleLine: true };
const marks = (text) => [...marksOf(text, STRICT)].sort().join(" ");

test("every character outside of printable ASCII is marked", () => {
	for (let code = 0; code < 0x110000; code += 1) {
		const isPlain = code >= 0x20 && code <= 0x7e;
		if (
			isPlain !==
			(marksOf(`x${String.fromCodePoint(code)}`, STRICT).size === 0)
		)
			assert.fail(`U+${code.toString(16)}`);
	}
});

test("what may be mistaken for ASCII is framed", () => {
	const signs =
		"\u037e\u1fef\ua789\ua78a\ufe68\ufe54\ufe5f\u201a\u2571\u2572\u066a\u0589\u204e\u27cb\u2a2f\u2759\u2758\u2acf\ua4ff\u2f02\u2f03\u31d3\u4e36\u060c\u2052\u{1f540}\u2796";
	for (const sign of signs)
		assert.equal(
			marks(`rm ${sign}rf`),
			"lookalike",
			`U+${sign.codePointAt(0).toString(16)}`,
		);
	// Mixed scripts, words of nothing but look-alikes, and single letters.
	for (const text of [
		"аpt",
		"сору",
		"ѕсоре",
		"ο",
		"ℓs",
		"ｌｓ",
		"gıt",
		"pubłic",
		"ſudo",
		"a\u0338",
		"ー",
		"файлrm",
		"一rf",
		"ǀ",
		"ɡit",
		"٠",
		"①",
	]) {
		assert.equal(marks(text), "lookalike", text);
	}
});

test("words that nobody takes for ASCII are marked calmly, in one piece", () => {
	for (const text of [
		"Größe",
		"café",
		"cafe\u0301",
		"smörgåsbord",
		"Straße",
		"żółw".replace("ł", "l"),
		"файл",
		"Ελλάδα",
		"日本語",
		"カード",
		"한국어",
		"שלום",
		"ملف",
		"ไฟล์",
		"🚀",
	]) {
		assert.equal(marks(`git add ${text}/x`), "foreign", text);
	}
	assert.deepEqual(
		pieces("файл.txt", STRICT).map(({ text, mark }) => [text, mark]),
		[
			["файл", "foreign"],
			[".txt", null],
		],
	);
	// An invisible character is always marked.
	assert.equal(marks("файл\u200b"), "foreign invisible");
	assert.equal(marks("日本\u202e語"), "bidi foreign");
});

test("nothing of a text is lost", () => {
	const text = 'rm файл сору "Größe" 🚀\u200b\u200b\u200b ааа \u{1d400}';
	assert.equal(
		pieces(text, STRICT)
			.map((piece) => piece.text)
			.join(""),
		text,
	);
	assert.equal(pieces("a\u200b\u200b\u200b", STRICT)[1].count, 3);
});

test("the page and the terminal mark the same characters", async () => {
	const { marked } = JSON.parse(
		await readFile(
			new URL("../../tests/vectors/characters.json", import.meta.url),
			"utf8",
		),
	);
	const ranges = marked.map((/** @type {string[]} */ range) =>
		range.map((code) => Number.parseInt(code, 16)),
	);
	for (let code = 0; code < 0x110000; code += 1) {
		const character = String.fromCodePoint(code);
		// A newer Unicode may assign it.
		if (/^[\p{Cn}\p{Cs}]$/u.test(character)) continue;
		const isMarked = ranges.some(([from, to]) => from <= code && code <= to);
		if (isMarked !== marksOf(character).size > 0)
			assert.fail(`U+${code.toString(16)}`);
	}
});
