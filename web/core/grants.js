// Permissions that an approval gives beyond its request. Enforcers judge again; this keeps a person
// from signing one that they would not keep.

import { isWithin } from "./canonical.js";
import { Problem } from "./problem.js";
import {
	choosesSomething,
	fitsPattern,
	hidesWhatRuns,
	patternProblem,
	plainWords,
} from "./words.js";

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

/** Members of an edit's input that only explain it. */
const EDIT_REMARKS = [
	"description",
	"explanation",
	"instruction",
	"instructions",
];

/**
 * The project and the files of an edit, where links lead; null if no permission for edits covers
 * it.
 * @param {Artifact} artifact
 * @returns {{ project: string, files: string[] } | null}
 */
export function editScope({ payload, sessionId }) {
	const { kind, agent, project, files, options } = payload;
	const isObject = (/** @type {unknown} */ value) =>
		typeof value === "object" && value !== null && !Array.isArray(value);
	const hasOptions =
		isObject(options) &&
		Object.keys(/** @type {object} */ (options)).some(
			(name) => !EDIT_REMARKS.includes(name),
		);
	if (kind !== "patch" || sessionId === null || hasOptions) return null;
	if (typeof agent !== "string" || !isRealPath(project) || project === "/")
		return null;
	if (!Array.isArray(files) || files.length === 0) return null;
	const real = files.map((file) =>
		isObject(file)
			? /** @type {any} */ (file.realPath ?? file.path)
			: undefined,
	);
	return real.every(isRealPath) ? { project, files: real } : null;
}

/**
 * An absolute path that leads nowhere else.
 * @param {unknown} path
 * @returns {path is string}
 */
function isRealPath(path) {
	return (
		typeof path === "string" &&
		path.startsWith("/") &&
		!path.split("/").some((part) => part === "." || part === "..")
	);
}

/**
 * Which permissions for edits cover this one.
 * @param {Artifact} artifact
 * @returns {("file" | "project")[]}
 */
export function coveredEdits(artifact) {
	const scope = editScope(artifact);
	if (scope === null) return [];
	const { project, files } = scope;
	return files.every((file) => file.startsWith(`${project}/`))
		? ["file", "project"]
		: ["file"];
}

/**
 * Refuses a grant that makes no sense, or does not fit the request that it is given with.
 * @param {Grant} grant
 * @param {Artifact} artifact
 */
export function checkGrant(grant, artifact) {
	if (grant.match === "same") return;
	if (grant.match === "file" || grant.match === "project") {
		if (!coveredEdits(artifact).includes(grant.match))
			throw Problem.of("grantNoEdit", {});
		return;
	}
	const { argv } = grant;
	const isPlain = (/** @type {string | null} */ word) =>
		word === null
			? grant.match === "words"
			: word !== "" && isWithin(word, MAX_WORD_CHARS) && !CONTROL.test(word);
	if (
		argv.length < 1 ||
		argv.length > MAX_WORDS ||
		argv[0] === null ||
		!argv.every(isPlain)
	)
		throw Problem.of("grantWords", {});
	const words = wordsOf(artifact);
	if (words === null) throw Problem.of("grantNotPlain", {});
	if (hidesWhatRuns(words)) throw Problem.of("grantRunsAnother", {});
	if (grant.match === "words") {
		const more = grant.more === true;
		const problem = patternProblem(argv, more);
		if (problem === "runsAnother") throw Problem.of("grantRunsAnother", {});
		if (problem !== null) throw Problem.of("grantFree", {});
		if (!fitsPattern(argv, more, words)) throw Problem.of("grantOther", {});
		return;
	}
	if (!argv.every((word, place) => word === words[place]))
		throw Problem.of("grantOther", {});
	if (argv.length < fewestWords(words)) throw Problem.of("grantChooses", {});
}
