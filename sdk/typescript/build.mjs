// Builds `dist` from the sources and the page's modules that they use: compiles, then removes what
// nothing in the package refers to. The page's modules name each other's types, so the compiler
// writes more of them than the package needs.

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const tools = resolve(here, "../../target/sdk-typescript/node_modules");
const dist = join(here, "dist");
const REFERENCE = /(?:from\s+|import\(|import\s+)["'](\.[^"']+)["']/g;

rmSync(dist, { recursive: true, force: true });
execFileSync(
	process.execPath,
	[join(tools, "typescript/bin/tsc"), "--project", here],
	{ stdio: "inherit" },
);

const { exports } = JSON.parse(
	readFileSync(join(here, "package.json"), "utf8"),
);
const needed = new Set();
const reach = (file) => {
	if (needed.has(file) || !existsSync(file)) return;
	needed.add(file);
	const text = readFileSync(file, "utf8");
	for (const [, reference] of text.matchAll(REFERENCE)) {
		const target = resolve(dirname(file), reference);
		reach(file.endsWith(".d.ts") ? target.replace(/\.js$/, ".d.ts") : target);
	}
};
for (const entry of Object.values(exports))
	for (const file of Object.values(entry)) reach(join(here, file));

for (const name of readdirSync(dist, { recursive: true })) {
	const file = join(dist, name);
	if (/\.(js|ts)$/.test(name) && !needed.has(file)) rmSync(file);
}
