// Permissions that an approval gives beyond its request. Enforcers judge again; this keeps a person
// from signing one that they would not keep.

import { isWithin } from "./canonical.js";
import { Problem } from "./problem.js";
import { choosesSomething, hidesWhatRuns, plainWords } from "./words.js";

/** @typedef {import('./types.js').Artifact} Artifact */
/** @typedef {import('./types.js').Grant} Grant */

const MAX_WORDS = 64;
const MAX_WORD_CHARS = 1_024;
const CONTROL = /\p{Cc}/u;

/**
 * The words of a command; null if there is no command, or if a shell could make something else of
 * it.
 * @param {Artifact} artifact
 * @returns {string[] | null}
 */
function wordsOf({ payload: { argv, command } }) {
	if (argv !== undefined) {
		return Array.isArray(argv) && argv.every((word) => typeof word === "string")
			? argv
			: null;
	}
	return typeof command === "string" ? plainWords(command) : null;
}

/**
 * The words by which a permission can be given: whatever begins with some of them. Null if no
 * permission by words covers this.
 * @param {Artifact} artifact
 * @returns {string[] | null}
 */
export function grantableWords(artifact) {
	const words = wordsOf(artifact);
	return words === null || hidesWhatRuns(words) ? null : words;
}

/**
 * How many first words a permission has at least: a later word must not choose a program, a file, a
 * directory or a configuration.
 * @param {string[]} words
 */
export function fewestWords(words) {
	const [program = "", ...later] = words;
	return (
		1 +
		later.reduce(
			(last, word, place) =>
				choosesSomething(program, word) ? place + 1 : last,
			0,
		)
	);
}

/**
 * Refuses a grant that makes no sense, or does not fit the request that it is given with.
 * @param {Grant} grant
 * @param {Artifact} artifact
 */
export function checkGrant(grant, artifact) {
	if (grant.match === "same") return;
	const { argv } = grant;
	const isPlain = (/** @type {string} */ word) =>
		word !== "" && isWithin(word, MAX_WORD_CHARS) && !CONTROL.test(word);
	if (argv.length < 1 || argv.length > MAX_WORDS || !argv.every(isPlain))
		throw Problem.of("grantWords", {});
	const words = wordsOf(artifact);
	if (words === null) throw Problem.of("grantNotPlain", {});
	if (hidesWhatRuns(words)) throw Problem.of("grantRunsAnother", {});
	if (!argv.every((word, place) => word === words[place]))
		throw Problem.of("grantOther", {});
	if (argv.length < fewestWords(words)) throw Problem.of("grantChooses", {});
}
