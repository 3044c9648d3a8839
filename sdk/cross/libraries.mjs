// Runs the workers of both libraries.

import { execFile } from "node:child_process";
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const here = fileURLToPath(new URL(".", import.meta.url));
const root = resolve(here, "../..");

const PYTHON =
	process.env.COUNTERSIGN_PYTHON ?? join(root, "target/sdk-python/bin/python");

const COMMANDS = {
	Python: [PYTHON, join(here, "worker.py")],
	TypeScript: [process.execPath, join(here, "worker.mjs")],
};

export const LIBRARIES = Object.keys(COMMANDS);

/** What a worker says. Its profiles are in a directory. */
export async function work(library, profiles, ...words) {
	const [program, file] = COMMANDS[library];
	const paths = [join(root, "sdk/python/src"), process.env.PYTHONPATH];
	const env = {
		...process.env,
		COUNTERSIGN_PROFILES: profiles,
		PYTHONPATH: paths.filter(Boolean).join(delimiter),
	};
	delete env.COUNTERSIGN_PROFILE;
	const { stdout } = await run(program, [file, ...words], { env, cwd: here });
	return stdout.trim();
}
