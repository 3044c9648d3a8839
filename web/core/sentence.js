// What a request would do, as the name of a sentence and its values. Pure: `texts/inbox.js` has the
// sentences, and `crates/countersign-client/src/approver/headline.rs` the same for the terminal;
// `tests/vectors/headlines.json` holds both to it. It only summarizes: the request itself is shown
// below it.

import { parseDiff } from "./diff.js";
import { cut, firstText, linesOf, MOST_CHARS } from "./sentencetext.js";
import { question, toolSentence } from "./toolsentence.js";

/** @typedef {import('./types.js').Artifact} Artifact */
/** @typedef {import('./types.js').JsonObject} JsonObject */
/** @typedef {import('./sentencetext.js').Sentence} Sentence */

const MOST_COMMAND_CHARS = 240;
/** Of a longer patch only the beginning is read, and the list of its files. */
const MOST_PATCH_CHARS = 256 * 1024;
const MOST_MEMBERS = 5;

/**
 * All lines of a command: the first one alone may say nothing.
 * @param {string} text
 */
const commandLine = (text) =>
	cut(linesOf(text).join(" ⏎ "), MOST_COMMAND_CHARS);

/** @param {string} path */
function lastName(path) {
	return path.split("/").filter(Boolean).pop() ?? path;
}

/**
 * Words of a command, if the payload has nothing else that claims to be the command.
 * @param {JsonObject} payload
 * @returns {string[] | null}
 */
export function commandWords(payload) {
	const { argv } = payload;
	if (
		payload.kind !== "command" ||
		"command" in payload ||
		!Array.isArray(argv) ||
		argv.length === 0
	)
		return null;
	return argv.every((word) => typeof word === "string") ? argv : null;
}

/**
 * @param {Artifact} artifact
 * @param {(words: string[]) => string} shellLine
 * @returns {Sentence}
 */
export function sentenceOf(artifact, shellLine) {
	const { payload } = artifact;
	switch (payload.kind) {
		case "command":
			return commandSentence(payload, shellLine) ?? other(artifact);
		case "patch":
			return patchSentence(payload);
		case "plan":
			return planSentence(artifact);
		case "tool":
			return toolSentence(payload);
		case "question":
			return question(payload) ?? other(artifact);
		default:
			return other(artifact);
	}
}

/**
 * @param {JsonObject} payload
 * @param {(words: string[]) => string} shellLine
 * @returns {Sentence | null}
 */
function commandSentence(payload, shellLine) {
	const { argv, ...one } = payload;
	const words = commandWords(payload);
	const other =
		"command" in payload && "argv" in payload
			? commandWords({ kind: "command", argv })
			: null;
	if (other && typeof one.command === "string") {
		const command = commandLine(one.command);
		const values = { command, other: commandLine(shellLine(other)) };
		return { name: "runEither", values };
	}
	const text = words
		? shellLine(words)
		: "argv" in payload
			? null
			: payload.command;
	if (typeof text !== "string") return null;
	const command = commandLine(text);
	const { directory } = payload;
	return typeof directory === "string" && directory !== ""
		? {
				name: "runIn",
				values: { command, place: cut(lastName(directory), MOST_CHARS) },
			}
		: { name: "run", values: { command } };
}

/** @typedef {'create' | 'edit' | 'delete' | 'rename' | 'change'} FileChange */

/**
 * @param {JsonObject} payload
 * @returns {Sentence}
 */
function patchSentence(payload) {
	const patch = typeof payload.patch === "string" ? payload.patch : "";
	const isWhole = patch.length <= MOST_PATCH_CHARS;
	const [changed, named] = [
		changedFiles(patch.slice(0, MOST_PATCH_CHARS)),
		namedFiles(payload),
	];
	const isListed = named.length > 0 && !(isWhole && changed.length > 0);
	const found = isListed ? named : changed;
	const [first] = found;
	if (first === undefined) return { name: "patch", values: {} };
	const path = cut(first.path, MOST_CHARS);
	if (!isWhole && !isListed)
		return { name: "changeMore", values: { path }, more: null };
	if (found.length === 1)
		return first.change === "rename"
			? { name: "rename", values: { from: cut(first.from, MOST_CHARS), path } }
			: { name: first.change, values: { path } };
	const isAlike = found.every(({ change }) => change === first.change);
	const change = isAlike && first.change !== "rename" ? first.change : "change";
	return {
		name: `${change}More`,
		values: { path },
		more: found.length - 1,
	};
}

/**
 * @param {string} patch
 * @returns {{ change: FileChange, path: string, from: string }[]}
 */
function changedFiles(patch) {
	/** @type {Record<string, FileChange>} */
	const words = {
		added: "create",
		copied: "create",
		deleted: "delete",
		renamed: "rename",
	};
	const found = parseDiff(patch).files.map((file) => ({
		change: words[file.change] ?? "edit",
		path: file.newPath ?? file.oldPath ?? "",
		from: file.oldPath ?? "",
	}));
	return found.filter(({ path }) => path !== "");
}

/**
 * The files that an agent's machine lists.
 * @param {JsonObject} payload
 * @returns {{ change: FileChange, path: string, from: string }[]}
 */
function namedFiles({ files, directory }) {
	if (!Array.isArray(files)) return [];
	const base = typeof directory === "string" ? `${directory}/` : "/";
	return files.flatMap((file) => {
		const path = file?.path;
		if (typeof path !== "string" || path === "") return [];
		const isInside = base !== "/" && path.startsWith(base);
		/** @type {FileChange} */
		const change = file.sha256 === null ? "create" : "change";
		return [
			{ change, path: isInside ? path.slice(base.length) : path, from: "" },
		];
	});
}

/**
 * @param {Artifact} artifact
 * @returns {Sentence}
 */
function planSentence({ artifactType, payload }) {
	const title = firstText(payload, ["title", "text"]);
	const name =
		artifactType === "task.review"
			? "task"
			: artifactType === "checkpoint.review"
				? "checkpoint"
				: "plan";
	return title === null
		? { name: `${name}Bare`, values: {} }
		: { name, values: { title } };
}

/**
 * A payload of no known kind.
 * @param {Artifact} artifact
 * @returns {Sentence}
 */
function other({ artifactType, payload }) {
	const title = firstText(payload, [
		"title",
		"name",
		"summary",
		"question",
		"text",
		"description",
	]);
	if (artifactType === "task.review" || artifactType === "checkpoint.review") {
		const name = artifactType === "task.review" ? "task" : "checkpoint";
		return title === null
			? { name: `${name}Bare`, values: {} }
			: { name, values: { title } };
	}
	if (title !== null) return { name: "review", values: { title } };
	const names = Object.keys(payload).sort();
	const shown = names.slice(0, MOST_MEMBERS).join(", ");
	const members = names.length > MOST_MEMBERS ? `${shown} …` : shown;
	return {
		name: "reviewBare",
		values: { members: members === "" ? "{}" : cut(members, MOST_CHARS) },
	};
}

/**
 * The agent's own reason, if it gives one beside what it would do.
 * @param {Artifact} artifact
 * @returns {string | null}
 */
export function agentReason({ payload }) {
	const { options, description } = payload;
	const given =
		options !== null && typeof options === "object" && !Array.isArray(options)
			? /** @type {JsonObject} */ (options).description
			: undefined;
	const reason = given ?? description;
	return typeof reason === "string" && reason.trim() !== "" ? reason : null;
}
