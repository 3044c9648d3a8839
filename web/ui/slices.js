// Long work in short pieces, so that the page answers meanwhile.

/** Well below the 50 ms after which a person notices. */
const SLICE_MS = 8;

/**
 * Runs a generator to its end. Null: it was not wanted any more.
 * @template T
 * @param {Generator<void, T, void>} work it yields wherever it may be interrupted
 * @param {() => boolean} isWanted
 * @returns {Promise<T | null>}
 */
export async function inSlices(work, isWanted) {
	for (;;) {
		for (const end = performance.now() + SLICE_MS; performance.now() < end; ) {
			const step = work.next();
			if (step.done) return step.value;
		}
		await new Promise((resolve) => setTimeout(resolve));
		if (!isWanted()) return null;
	}
}

/**
 * The same at once.
 * @template T
 * @param {Generator<void, T, void>} work
 * @returns {T}
 */
export function atOnce(work) {
	for (;;) {
		const step = work.next();
		if (step.done) return step.value;
	}
}
