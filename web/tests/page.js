// Runs the tests in a browser. The title is `passed` or `failed` at the end.

import { runAll } from "./run.js";

const NAMES = [
	"ed25519",
	"encryption",
	"hashes",
	"outcome",
	"refused",
	"repository",
	"rfc9180",
];

const read = async (/** @type {string} */ name) => [
	name,
	await (await fetch(`/vectors/${name}.json`)).json(),
];
const vectors = Object.fromEntries(await Promise.all(NAMES.map(read)));
const failures = await runAll(vectors, (line) =>
	document.getElementById("report")?.append(`${line}\n`),
);
document.title = failures.length === 0 ? "passed" : "failed";
