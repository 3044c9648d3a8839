// Numbers as a person reads them, and with their nouns.

/**
 * Made once for each module that counts: that takes longer than formatting.
 * @param {string} language
 */
export function counting(language) {
	const format = new Intl.NumberFormat(language);
	const plural = new Intl.PluralRules(language);
	const digits = (/** @type {number} */ n) => format.format(n);
	/** @type {(n: number, one: string, other: string, forms?: Partial<Record<Intl.LDMLPluralRule, string>>) => string} */
	const count = (n, one, other, forms) =>
		`${digits(n)} ${{ one, ...forms }[plural.select(n)] ?? other}`;
	return { digits, count };
}

export const { digits, count } = counting("en");
