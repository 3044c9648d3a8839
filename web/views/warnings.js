// Details of a request that a person could overlook.

import { texts } from "../texts.js";
import { el } from "../ui/dom.js";
import { countMarks, lookAlikes } from "../ui/marked.js";
import { LONG_LINE } from "../ui/mono.js";
import { note } from "../ui/parts.js";

/** @typedef {import('../core/types.js').Artifact} Artifact */
/** @typedef {import('../core/types.js').Item} Item */
/** @typedef {import('../core/types.js').JsonValue} JsonValue */

/**
 * @param {JsonValue} value
 * @param {string[]} found
 */
function collect(value, found) {
	if (typeof value === "string") found.push(value);
	else if (value !== null && typeof value === "object") {
		for (const [name, member] of Object.entries(value)) {
			if (!Array.isArray(value)) found.push(name);
			collect(member, found);
		}
	}
}

/** @param {string} text */
function longestLine(text) {
	let longest = 0;
	for (let from = 0; from <= text.length; ) {
		const at = text.indexOf("\n", from);
		const end = at < 0 ? text.length : at;
		longest = Math.max(longest, end - from);
		from = end + 1;
	}
	return longest;
}

/** More than these are not named one by one. */
const MOST_NAMED = 12;

/**
 * Characters that may be mistaken for others where each one counts: in commands, paths and names.
 * @param {Artifact} artifact
 */
function mistakable(artifact) {
	const { argv, command, directory, program, tool } = artifact.payload;
	const words = Array.isArray(argv) ? argv : [];
	const texts = [
		...words,
		command,
		directory,
		program,
		tool,
		artifact.repository,
		artifact.baseRevision,
	];
	return [
		...new Set(
			texts.flatMap((text) =>
				typeof text === "string" ? lookAlikes(text) : [],
			),
		),
	].sort();
}

/** @param {Artifact} artifact */
export function warnings(artifact) {
	/** @type {string[]} */
	const found = [
		artifact.repository,
		artifact.baseRevision ?? "",
		artifact.sessionId ?? "",
	];
	collect(artifact.payload, found);
	collect(artifact.rest, found);
	const marks = found.reduce((sum, text) => sum + countMarks(text), 0);
	const longest = found.reduce(
		(most, text) => Math.max(most, longestLine(text)),
		0,
	);
	const signs = mistakable(artifact);
	const words = [
		marks > 0 && texts.request.marked(marks),
		signs.length > 0 &&
			texts.request.lookAlike(
				signs.length,
				signs.slice(0, MOST_NAMED).join(", "),
				signs.length > MOST_NAMED,
			),
		longest > LONG_LINE && texts.request.longLine(longest),
	].filter(Boolean);
	if (words.length === 0) return null;
	return note(
		"warn",
		el("strong", null, texts.request.careful),
		words.map((text) => el("p", null, text)),
	);
}

/**
 * Devices that the agent's machine obeys, and that this one does not know.
 * @param {Item} item
 */
export function strangeDevices({ strangers }) {
	if (strangers.length === 0) return null;
	const { revoked, unknown } = texts.request.strangers;
	const words = strangers.map(({ deviceId, isRevoked }) =>
		isRevoked ? revoked(deviceId) : unknown(deviceId),
	);
	return note(
		"warn",
		el("strong", null, texts.request.careful),
		words.map((text) => el("p", null, text)),
	);
}
