// A clock that a test moves. Node's own mock has another signature in Node 18, and no Date there.

/**
 * Replaces `setTimeout`, `clearTimeout` and `Date.now` until the test ends.
 * @param {import('node:test').TestContext} context
 */
export function mockClock(context) {
	let now = Date.now();
	let lastId = 0;
	/** @type {Map<number, { due: number, run: () => void }>} */
	const timers = new Map();
	context.mock.method(Date, "now", () => now);
	context.mock.method(globalThis, "setTimeout", (run, delayMs = 0, ...args) => {
		lastId += 1;
		timers.set(lastId, { due: now + delayMs, run: () => run(...args) });
		return lastId;
	});
	context.mock.method(
		globalThis,
		"clearTimeout",
		(id) => void timers.delete(id),
	);
	return {
		/** Runs each timer that is due within `ms` milliseconds, at its time. */
		tick(ms) {
			const end = now + ms;
			for (;;) {
				const [next] = [...timers]
					.filter(([, { due }]) => due <= end)
					.sort(([, a], [, b]) => a.due - b.due);
				if (next === undefined) break;
				const [id, { due, run }] = next;
				timers.delete(id);
				now = due;
				run();
			}
			now = end;
		},
	};
}
