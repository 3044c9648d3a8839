// Builds `dist` from the sources and the page's modules that they use: compiles what has changed,
// then copies what the package refers to. The page's modules name each other's types, so the compiler
// writes more of them than the package needs.

import { execFileSync } from "node:child_process";
import {
	existsSync,
	mkdirSync,
	readFileSync,
	rmSync,
	writeFileSync,
} from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const tools = resolve(here, "../../target/sdk-typescript/node_modules");
const dist = join(here, "dist");
// The compiler's output is kept for the next build.
const compiled = resolve(here, "../../target/sdk-typescript/compiled");
const REFERENCE = /(?:from\s+|import\(|import\s+)["'](\.[^"']+)["']/g;

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
	for (const file of Object.values(entry))
		reach(join(compiled, relative("dist", file)));

rmSync(dist, { recursive: true, force: true });
// Comments that document types are in the declarations already.
const DOCUMENTATION = /^[ \t]*\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n/gm;
for (const file of needed) {
	const target = join(dist, relative(compiled, file));
	mkdirSync(dirname(target), { recursive: true });
	const text = readFileSync(file, "utf8");
	writeFileSync(
		target,
		file.endsWith(".js") ? text.replace(DOCUMENTATION, "") : text,
	);
}
