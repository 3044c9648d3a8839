// Words of a command as a shell needs them quoted.

import { hasMarks } from "./marked.js";

const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/;

/** @param {string[]} words */
export function shellLine(words) {
	return words.map(shellWord).join(" ");
}

/** @param {string} word */
export function shellWord(word) {
	if (PLAIN.test(word)) return word;
	if (!/[\n\t]/.test(word) && !hasMarks(word))
		return `'${word.replaceAll("'", "'\\''")}'`;
	const escaped = word
		.replaceAll("\\", "\\\\")
		.replaceAll("'", "\\'")
		.replaceAll("\n", "\\n")
		.replaceAll("\t", "\\t");
	return `$'${escaped}'`;
}
