// Which first words of a command can be permitted: as in the terminal, by the same vectors.
// `node --test web/tests/`.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import {
	checkGrant,
	coveredEdits,
	fewestWords,
	grantableWords,
} from "../core/grants.js";
import {
	choosesSomething,
	fitsPattern,
	hidesWhatRuns,
	patternProblem,
	plainWords,
} from "../core/words.js";

const {
	plain,
	other,
	hides,
	shows,
	chooses,
	leaves,
	choosesFor,
	patterns,
	noPatterns,
} = JSON.parse(
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

test("words that are free choose nothing", () => {
	for (const { argv, more = false, fits, other: unfit } of patterns) {
		const grant = { match: "words", argv, ...(more ? { more } : {}) };
		assert.equal(patternProblem(argv, more), null, argv.join(" "));
		for (const words of fits) {
			assert.ok(fitsPattern(argv, more, words), words.join(" "));
			checkGrant(grant, { payload: { argv: words } });
		}
		for (const words of unfit) {
			assert.ok(!fitsPattern(argv, more, words), words.join(" "));
			assert.throws(() => checkGrant(grant, { payload: { argv: words } }));
		}
	}
	for (const { argv, more = false, problem } of noPatterns) {
		assert.equal(patternProblem(argv, more), problem, argv.join(" "));
		const words = argv.map((word) => word ?? "x");
		assert.ok(!fitsPattern(argv, more, words), words.join(" "));
		assert.throws(() =>
			checkGrant({ match: "words", argv, more }, { payload: { argv: words } }),
		);
	}
	for (const argv of [[], [null, "a"], ["ls", ""], ["ls", "a\nb"]])
		assert.throws(
			() => checkGrant({ match: "words", argv }, { payload: { argv: ["ls"] } }),
			{ code: "grantWords" },
		);
	assert.throws(
		() =>
			checkGrant(
				{ match: "prefix", argv: ["ls", null] },
				{ payload: { argv: ["ls", "a"] } },
			),
		{ code: "grantWords" },
	);
});

test("edits are permitted within what the request names", () => {
	const edit = (/** @type {object} */ more) => ({
		sessionId: "s",
		payload: {
			kind: "patch",
			agent: "claude",
			tool: "Edit",
			project: "/home/a/shop",
			files: [{ path: "/home/a/shop/a.txt" }],
			...more,
		},
	});
	const outside = [{ path: "/home/a/shop/a", realPath: "/etc/passwd" }];
	for (const [artifact, expected] of [
		[edit({}), ["file", "project"]],
		[edit({ options: { instruction: "x" } }), ["file", "project"]],
		[edit({ files: outside }), ["file"]],
		[edit({ files: [{ path: "/home/a/shop-2/a" }] }), ["file"]],
		[edit({ files: [{ path: "/home/a/shop/../b" }] }), []],
		[edit({ files: [{ path: "a.txt" }] }), []],
		[edit({ files: [] }), []],
		[edit({ files: "a" }), []],
		[edit({ project: "/" }), []],
		[edit({ project: undefined }), []],
		[edit({ kind: "command" }), []],
		[edit({ options: { run: "x" } }), []],
		[{ ...edit({}), sessionId: null }, []],
	]) {
		assert.deepEqual(
			coveredEdits(artifact),
			expected,
			JSON.stringify(artifact),
		);
		for (const match of ["file", "project"]) {
			const check = () => checkGrant({ match }, artifact);
			if (expected.includes(match)) check();
			else assert.throws(check, { code: "grantNoEdit" });
		}
	}
});
