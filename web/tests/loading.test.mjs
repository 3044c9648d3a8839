// The modules of the first view load at once, not one import after the other: `node --test
// web/tests/`.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

const page = new URL("../", import.meta.url);

/** A module and all that it imports, by their names below `web`. */
async function imported(name, found = new Map()) {
	if (found.has(name)) return found;
	const text = await readFile(new URL(name, page), "utf8");
	found.set(name, text);
	for (const [, path] of text.matchAll(
		/^(?:import|export)\b[^;]*?from "([^"]+)"/gm,
	)) {
		await imported(
			new URL(path, new URL(name, page)).href.slice(page.href.length),
			found,
		);
	}
	return found;
}

const first = await imported("views/inbox.js", await imported("app.js"));

test("index.html names every module of the inbox", async () => {
	const index = await readFile(new URL("index.html", page), "utf8");
	const named = [
		...index.matchAll(/<link rel="modulepreload" href="([^"]+)">/g),
	].map(([, name]) => name);
	const expected = [...first.keys()].filter((name) => name !== "app.js").sort();
	assert.deepEqual(
		named,
		expected,
		`index.html should have:\n${expected.map((name) => `<link rel="modulepreload" href="${name}">`).join("\n")}\n`,
	);
});
