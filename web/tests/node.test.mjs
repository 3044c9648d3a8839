// Runs the tests in node, without a browser: `node --test web/tests/`.

import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { runAll } from "./run.js";

test("the core of the page", async () => {
	const read = async (name) => [
		name,
		JSON.parse(
			await readFile(
				new URL(`../../tests/vectors/${name}.json`, import.meta.url),
				"utf8",
			),
		),
	];
	const vectors = Object.fromEntries(
		await Promise.all(
			[
				"ed25519",
				"encryption",
				"hashes",
				"outcome",
				"refused",
				"repository",
				"rfc9180",
			].map(read),
		),
	);
	const failures = await runAll(vectors, console.log);
	if (failures.length > 0) throw new Error(failures.join("\n"));
});
