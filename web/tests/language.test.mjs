// Every language has every text, and texts that fit: `node --test web/tests/`.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { Problem } from "../core/problem.js";
import { counting } from "../texts/count.js";
import {
	LANGUAGE_NAMES,
	languageOf,
	pageLocale,
	translate,
} from "../texts/language.js";
import { texts as english } from "../texts.js";

const folder = new URL("../texts/", import.meta.url);
const others = Object.keys(LANGUAGE_NAMES).filter((name) => name !== "en");

/** Texts by their path, such as `inbox.title`. A list is one text for each of its parts. */
function* leaves(tree, path = "") {
	for (const [key, value] of Object.entries(tree)) {
		const at = path ? `${path}.${key}` : key;
		if (value !== null && typeof value === "object") yield* leaves(value, at);
		else yield [at, value];
	}
}

/** Arguments of every kind that a text takes: names, counts, lists, and the values of a problem. */
const STRINGS = ["<one>", "<two>", "<three>", "<four>"];
const NUMBERS = [2, 3, 5, 7];
const valuesOf = (text) =>
	new Proxy({}, { get: (_, name) => text(String(name)) });
const ARGUMENTS = [
	STRINGS,
	NUMBERS,
	[1, 1, 1, 1],
	[2, "<two>", true],
	[["<one>", "<two>"]],
	[
		valuesOf((name) =>
			name === "problem" ? Problem.of("slow", {}) : `<${name}>`,
		),
	],
	[valuesOf(() => 7168)],
];

/** The arguments that a text shows, in any order. `1,234` and `1.234` are the same. */
function shownIn(text) {
	const plain = text.replace(/(\d)[.,\u00a0\u202f](?=\d{3})/g, "$1");
	return [...new Set(plain.match(/<\w+>|\d+/g) ?? [])].sort();
}

/** What is shown of each kind of arguments; null where a text does not take them. */
function results(text) {
	return ARGUMENTS.map((args) => {
		try {
			const result = text(...args);
			return typeof result === "string" && !/NaN|undefined|object/.test(result)
				? result
				: null;
		} catch {
			return null;
		}
	});
}

for (const language of others) {
	const load = async () => (await import(`../texts/${language}.js`)).texts;

	test(`${language}: no text is missing, and none is left over`, async () => {
		const expected = [...leaves(english)].map(([path]) => path);
		const found = [...leaves(await load())].map(([path]) => path);
		assert.deepEqual(
			expected.filter((path) => !found.includes(path)),
			[],
			`missing in texts/${language}`,
		);
		assert.deepEqual(
			found.filter((path) => !expected.includes(path)),
			[],
			`left over in texts/${language}`,
		);
	});

	test(`${language}: texts take and show what the English ones do`, async () => {
		const found = new Map(leaves(await load()));
		for (const [path, text] of leaves(english)) {
			const other = found.get(path);
			assert.equal(typeof other, typeof text, path);
			if (typeof text === "number") assert.equal(other, text, path);
			if (typeof text !== "function") continue;
			assert.equal(other.length, text.length, `arguments of ${path}`);
			const [ours, theirs] = [results(text), results(other)];
			assert.ok(
				ours.some((it) => it !== null),
				`${path} is not tried`,
			);
			for (const [index, it] of ours.entries()) {
				if (it === null) continue;
				assert.deepEqual(
					shownIn(theirs[index] ?? ""),
					shownIn(it),
					`${path}: "${theirs[index]}" for "${it}"`,
				);
			}
		}
	});

	test(`${language}: keys, icons, commands and code stay as they are`, async () => {
		const found = new Map(leaves(await load()));
		for (const [path, text] of leaves(english)) {
			if (typeof text !== "string") continue;
			const other = found.get(path);
			const isName = /\.(keys|points|lasts)\.\d+\.0$|\.command$/.test(path);
			if (isName) assert.equal(other, text, path);
			const code = /`[^`]+`|countersign [a-z]+( [A-Za-z]+)*|https:\S+/g;
			assert.deepEqual(other.match(code), text.match(code), path);
			const names = (it) => (it.match(/\{\w+\}/g) ?? []).sort();
			assert.deepEqual(names(other), names(text), path);
			assert.equal(other === "", text === "", path);
			const isSentence =
				(text.match(/(?<!\{)\b\p{L}{2,}/gu) ?? []).length > 3 && !isName;
			if (isSentence) assert.notEqual(other, text, `${path} is English`);
		}
	});

	test(`${language}: one file for each English one`, async () => {
		const files = await readdir(folder);
		const isOther = (name) => others.some((it) => name.startsWith(`${it}-`));
		const expected = files.filter(
			(name) =>
				!isOther(name) &&
				![...others, "count", "language"].includes(name.replace(".js", "")),
		);
		const found = files
			.filter((name) => name.startsWith(`${language}-`))
			.map((name) => name.slice(language.length + 1));
		assert.deepEqual(found.sort(), expected.sort());
	});
}

test("the first language that is wanted and offered", () => {
	assert.equal(languageOf(["de-AT", "en"], ["de"]), "de");
	assert.equal(languageOf(["fr", "en-GB", "de"], ["de"]), "en");
	assert.equal(languageOf(["PT-br", "DE"], ["de", "pt"]), "pt");
	assert.equal(languageOf(["fr"], ["de"]), "en");
	assert.equal(languageOf([], ["de"]), "en");
});

test("a translation replaces what it has, and leaves the rest", async () => {
	const texts = {
		close: "Close",
		copy: "Copy",
		inbox: { title: "Inbox", left: (who) => `from ${who}`, quick: ["a", "b"] },
		problems: { slow: () => "slow" },
	};
	const { problems } = texts;
	const german = {
		close: "Schließen",
		inbox: { left: (who) => `von ${who}`, quick: ["c"] },
		problems: { slow: () => "langsam" },
	};
	const languages = { de: async () => ({ texts: german }) };
	assert.equal(await translate(texts, ["en"], languages), "en");
	assert.equal(texts.close, "Close");
	assert.equal(await translate(texts, ["de-CH"], languages), "de");
	assert.deepEqual(
		[
			texts.close,
			texts.copy,
			texts.inbox.title,
			texts.inbox.left("x"),
			texts.inbox.quick,
		],
		["Schließen", "Copy", "Inbox", "von x", ["c"]],
	);
	// An imported group sees the change.
	assert.equal(problems.slow(), "langsam");
});

test("dates follow the person's region, if that is of the page's language", async () => {
	const languages = { de: async () => ({ texts: {} }) };
	const localeFor = async (...wanted) => {
		await translate({}, wanted, languages);
		return pageLocale();
	};
	assert.equal(await localeFor("de-AT", "en-US"), "de-AT");
	assert.equal(await localeFor("de", "en-US", "de-CH"), "de-CH");
	assert.equal(await localeFor("en", "de-AT"), "en");
	assert.equal(await localeFor("fr-FR", "ja"), "en");
	assert.equal(await localeFor("en-US@posix"), "en");
});

test("a language that does not load leaves English", async (context) => {
	const warned = context.mock.method(console, "warn", () => {});
	const texts = { close: "Close" };
	const languages = { de: () => Promise.reject(new TypeError("no network")) };
	assert.equal(await translate(texts, ["de-AT"], languages), "en");
	assert.deepEqual([texts.close, pageLocale()], ["Close", "en"]);
	assert.equal(warned.mock.callCount(), 1);
});

test("numbers and plurals are those of the language", () => {
	const polish = counting("pl").count;
	const files = (n) => polish(n, "plik", "plików", { few: "pliki" });
	assert.deepEqual([1, 3, 5].map(files), ["1 plik", "3 pliki", "5 plików"]);
	assert.equal(counting("de").digits(12345), "12.345");
	assert.equal(counting("es").count(1, "día", "días"), "1 día");
	assert.equal(counting("es").count(0, "día", "días"), "0 días");
});

test("the service worker falls back to the English texts", async () => {
	const source = await readFile(new URL("../sw.js", import.meta.url), "utf8");
	const [, object] = /const NOTICES = (\{.*?\n\});?\n/s.exec(source);
	assert.deepEqual(
		{ ...runInNewContext(`(${object.replace(/;$/, "")})`) },
		english.notifications.notices,
	);
});
