// Which first words of a command can be permitted: as in the terminal, by the same vectors.
// `node --test web/tests/`.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { checkGrant, fewestWords, grantableWords } from "../core/grants.js";
import { choosesSomething, hidesWhatRuns, plainWords } from "../core/words.js";

const { plain, other, hides, shows, chooses, leaves, choosesFor } = JSON.parse(
	await readFile(
		new URL("../../tests/vectors/words.json", import.meta.url),
		"utf8",
	),
);

test("plain commands have their words", () => {
	for (const { command, words } of plain) {
		assert.deepEqual(plainWords(command), words, command);
		assert.deepEqual(grantableWords({ payload: { command } }), words, command);
	}
});

test("anything else has none", () => {
	for (const command of other) {
		assert.equal(plainWords(command), null, JSON.stringify(command));
		assert.throws(
			() =>
				checkGrant(
					{ match: "prefix", argv: ["git"] },
					{ payload: { command } },
				),
			{ code: "grantNotPlain" },
			JSON.stringify(command),
		);
	}
});

test("some programs hide what runs", () => {
	for (const argv of hides) {
		assert.ok(hidesWhatRuns(argv), argv.join(" "));
		assert.equal(grantableWords({ payload: { argv } }), null);
		assert.throws(
			() =>
				checkGrant({ match: "prefix", argv: ["git"] }, { payload: { argv } }),
			{ code: "grantRunsAnother" },
			argv.join(" "),
		);
	}
	for (const argv of shows) assert.ok(!hidesWhatRuns(argv), argv.join(" "));
});

test("some words choose what runs, is read or is written", () => {
	for (const word of chooses) {
		assert.ok(choosesSomething("git", word), word);
		const artifact = { payload: { argv: ["git", "log", word, "a"] } };
		assert.throws(
			() => checkGrant({ match: "prefix", argv: ["git", "log"] }, artifact),
			{ code: "grantChooses" },
			word,
		);
		checkGrant({ match: "prefix", argv: ["git", "log", word] }, artifact);
	}
	for (const word of leaves) {
		assert.ok(!choosesSomething("git", word), word);
		checkGrant(
			{ match: "prefix", argv: ["git"] },
			{ payload: { argv: ["git", word] } },
		);
	}
	for (const [program, word] of choosesFor)
		assert.ok(choosesSomething(program, word), `${program} ${word}`);
	assert.equal(fewestWords(["git"]), 1);
	assert.equal(fewestWords(["git", "-C", "a", "log", "-n", "5"]), 2);
});
