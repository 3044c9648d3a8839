// Another language is one file: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { languageOf, translate } from "../texts/language.js";

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
