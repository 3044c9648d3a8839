// The requests that a person has selected, from the inbox to the view that goes through them. It is
// kept in memory only.

/** @type {Set<string>} */
export const selected = new Set();

/** @typedef {import('../core/types.js').Item} Item */

/**
 * Only a request that was opened can be approved, and only if its rule counts this person.
 * @param {Item} item
 */
export function isApprovable({ state, content, isPaired, approvalProblem }) {
	return (
		state === "pending" &&
		content.opened &&
		isPaired &&
		approvalProblem === null
	);
}

/** @param {Item} item */
export function isRejectable({ state, artifactHash }) {
	return state === "pending" && artifactHash !== null;
}
