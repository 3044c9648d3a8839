// Why something came to nothing. A problem has a code and values; the words are in `texts.js`, by
// code.

/** @typedef {import('./types.js').Problems} Problems */
/** @typedef {import('./types.js').Thing} Thing */
/** @typedef {keyof Problems} ProblemCode */

export class Problem extends Error {
	/**
	 * @param {ProblemCode} code
	 * @param {Record<string, unknown>} values
	 * @param {unknown} [cause]
	 */
	constructor(code, values, cause) {
		super(`${code} ${JSON.stringify(values)}`);
		this.name = "Problem";
		this.code = code;
		this.values = values;
		this.cause = cause;
	}

	/**
	 * @template {ProblemCode} C
	 * @param {C} code
	 * @param {Problems[C]} values
	 * @param {unknown} [cause]
	 */
	static of(code, values, cause) {
		return new Problem(code, values, cause);
	}

	/** Whether the gateway is away, rather than of another opinion. */
	get isUnavailable() {
		const status = this.code === "refused" ? Number(this.values.status) : 0;
		return (
			this.code === "unreachable" ||
			this.code === "slow" ||
			this.code === "providerAway" ||
			status >= 500 ||
			status === 429
		);
	}
}

/**
 * A thrown problem. Anything else is a defect, and is thrown on.
 * @param {unknown} thrown
 * @returns {Problem}
 */
export function asProblem(thrown) {
	if (thrown instanceof Problem) return thrown;
	throw thrown;
}
