// Where a program is.

import { accessSync, constants } from "node:fs";
import { delimiter, join, resolve } from "node:path";

/** @param {string} program */
export function which(program) {
	if (program.includes("/")) return resolve(program);
	for (const directory of (process.env.PATH ?? "").split(delimiter)) {
		try {
			accessSync(join(directory, program), constants.X_OK);
			return join(directory, program);
		} catch {
			// The next one.
		}
	}
	throw new Error(`${program} is not installed`);
}
