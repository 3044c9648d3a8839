// The people who work with an agent, as approvers name them at pairing. The list only ever excludes:
// under a rule that excludes anybody, the devices of these people do not approve.

import { isId } from "./canonical.js";
import { isLabel } from "./keys.js";
import { Problem } from "./problem.js";

export const MAX_OPERATORS = 16;

/** @param {unknown[]} ids */
function areOperators(ids) {
	return (
		ids.length <= MAX_OPERATORS &&
		new Set(ids).size === ids.length &&
		ids.every((id) => typeof id === "string" && isId(id))
	);
}

/**
 * The member of an introduction. Null: its signer says nothing.
 * @param {import('./canonical.js').Reader} reader
 * @returns {string[] | null}
 */
export function readOperators(reader) {
	if (reader.optional("operators") === undefined) return null;
	const ids = reader.array("operators").map(({ value }) => value);
	if (!areOperators(ids))
		throw reader.invalid("operators", `0..${MAX_OPERATORS} ids, none twice`);
	return /** @type {string[]} */ (ids);
}

/**
 * Ids as a person types them. Null: nothing was typed.
 * @param {string} text
 */
export function parseOperators(text) {
	const typed = text.split(",").map((id) => id.trim());
	const ids = [...new Set(typed.filter((id) => id !== ""))];
	if (!areOperators(ids) || !ids.every(isLabel))
		throw Problem.of("operators", {});
	return ids.length === 0 ? null : ids;
}

/**
 * Nobody is removed.
 * @param {string[] | undefined} known
 * @param {string[]} named
 */
export function addOperators(known, named) {
	return [...new Set([...(known ?? []), ...named])];
}
