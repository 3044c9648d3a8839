// A number as a person reads it, and with its noun.

/** Made once: that takes longer than formatting. */
const format = new Intl.NumberFormat("en");

/** @type {(n: number) => string} */
export const digits = (n) => format.format(n);

/** @type {(n: number, one: string, many: string) => string} */
export const count = (n, one, many) => `${digits(n)} ${n === 1 ? one : many}`;
