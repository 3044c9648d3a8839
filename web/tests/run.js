// Runs all tests: `runAll` gives a line for each that fails.

/** @type {(() => Promise<{ tests: import('./support.js').Tests }>)[]} */
const MODULES = [
	() => import("./texts.js"),
	() => import("./reading.js"),
	() => import("./cryptography.js"),
	() => import("./trust.js"),
	() => import("./keeping.js"),
	() => import("./signin.js"),
];

/**
 * @param {Record<string, unknown>} vectors the files of `tests/vectors`, by name
 * @param {(line: string) => void} report
 */
export async function runAll(vectors, report) {
	/** @type {string[]} */
	const failures = [];
	let count = 0;
	for (const load of MODULES) {
		const { tests } = await load();
		for (const [name, test] of Object.entries(tests)) {
			const begun = performance.now();
			count += 1;
			try {
				await test(vectors);
				report(`ok ${name} (${Math.round(performance.now() - begun)} ms)`);
			} catch (error) {
				failures.push(`${name}: ${error}`);
				report(
					`FAILED ${name}: ${error instanceof Error ? error.stack : error}`,
				);
			}
		}
	}
	report(`${count} tests, ${failures.length} failed`);
	return failures;
}
