// A request in one line: what kind it is, and what it is about.

import { parseDiff } from "../core/diff.js";
import { texts } from "../texts.js";
import { visibleText } from "./marked.js";
import { shellLine } from "./shellwords.js";

/** @typedef {import('../core/types.js').Item} Item */
/** @typedef {import('../core/types.js').Artifact} Artifact */
/** @typedef {import('./icons.js').IconName} IconName */

/** More is not looked at for a line that is cut anyway. */
const ENOUGH = 400;
const ENOUGH_OF_PATCH = 64 * 1024;

/** @type {Record<string, IconName>} */
const ICONS = {
	"command.review": "command",
	"patch.review": "patch",
	"plan.review": "plan",
	"task.review": "plan",
	"checkpoint.review": "plan",
};

/**
 * @param {Artifact | null} artifact
 * @returns {{ icon: IconName, label: string }}
 */
export function kindOf(artifact) {
	if (!artifact) return { icon: "unknown", label: texts.kinds.unknown };
	if (artifact.payload.kind === "tool")
		return { icon: "tool", label: texts.kinds.tool };
	const label = /** @type {Record<string, string>} */ (texts.kinds)[
		artifact.artifactType
	];
	return {
		icon: ICONS[artifact.artifactType] ?? "other",
		label: label ?? texts.kinds.other,
	};
}

/** @param {Item} item */
export function artifactOf(item) {
	return item.content.opened ? item.content.artifact : null;
}

/** @param {string} text */
function firstLine(text) {
	return (
		text
			.slice(0, ENOUGH)
			.split("\n")
			.map((line) => line.trim())
			.find(Boolean) ?? ""
	);
}

/**
 * A command of several lines: the first one alone may say nothing.
 * @param {string} text
 */
function allLines(text) {
	return text
		.slice(0, ENOUGH)
		.split("\n")
		.map((line) => line.trim())
		.filter(Boolean)
		.join(" ⏎ ");
}

const MOST_FILES = 8;

/**
 * The first files that a patch is about.
 * @param {string} patch
 */
export function patchedFiles(patch) {
	const { files } = parseDiff(patch.slice(0, ENOUGH_OF_PATCH));
	const paths = files
		.map(({ newPath, oldPath }) => newPath ?? oldPath ?? "")
		.filter(Boolean);
	const hasMore = paths.length > MOST_FILES || patch.length > ENOUGH_OF_PATCH;
	return hasMore ? [...paths.slice(0, MOST_FILES), "…"] : paths;
}

/**
 * Words of a command, if the payload has nothing else that claims to be the command.
 * @param {Artifact['payload']} payload
 * @returns {string[] | null}
 */
export function commandWords(payload) {
	if (
		payload.kind !== "command" ||
		"command" in payload ||
		!Array.isArray(payload.argv) ||
		payload.argv.length === 0
	)
		return null;
	return payload.argv.every((word) => typeof word === "string")
		? payload.argv
		: null;
}

/** @param {Artifact} artifact */
export function headline(artifact) {
	const { payload } = artifact;
	const text = (/** @type {string} */ name) =>
		typeof payload[name] === "string"
			? /** @type {string} */ (payload[name])
			: null;
	const fallback = () => JSON.stringify(payload).slice(0, ENOUGH);
	const line = () => {
		switch (payload.kind) {
			case "command": {
				const words = commandWords(payload);
				if (words) return shellLine(words);
				return "argv" in payload
					? fallback()
					: allLines(text("command") ?? fallback());
			}
			case "patch":
				return texts.headline.patch(patchedFiles(text("patch") ?? ""));
			case "plan":
				return firstLine(text("text") ?? "").replace(/^#+ /, "");
			case "tool":
				return texts.headline.tool(text("tool") ?? fallback());
			default:
				return fallback();
		}
	};
	return visibleText(line().slice(0, ENOUGH));
}
