// A number with its noun.

/** @type {(n: number, one: string, many: string) => string} */
export const count = (n, one, many) => `${n.toLocaleString('en')} ${n === 1 ? one : many}`;
