// Waits for conditions, never for a fixed time.

/**
 * Polls `read` until it gives something, and returns that.
 * @param {string} what
 * @param {() => any} read
 */
export async function until(what, read, within = 60_000) {
	const end = Date.now() + within;
	for (;;) {
		let problem = null;
		try {
			const value = await read();
			if (value) return value;
		} catch (error) {
			problem = error;
		}
		if (Date.now() > end)
			throw problem ?? new Error(`waited ${within} ms for ${what}`);
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
}
