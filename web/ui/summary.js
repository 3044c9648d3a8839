// Requests in short: their kind, their order, and where they come from.

import { texts } from "../texts.js";

/** @typedef {import('../core/types.js').Item} Item */
/** @typedef {import('../core/types.js').Artifact} Artifact */
/** @typedef {import('./icons.js').IconName} IconName */

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
	const { kind } = artifact.payload;
	if (kind === "tool") return { icon: "tool", label: texts.kinds.tool };
	if (kind === "question") return { icon: "help", label: texts.kinds.question };
	const label = /** @type {Record<string, string>} */ (texts.kinds)[
		artifact.artifactType
	];
	return {
		icon: ICONS[artifact.artifactType] ?? "other",
		label: label ?? texts.kinds.other,
	};
}

/**
 * A question is answered, not approved.
 * @param {import('../core/types.js').Verdict} verdict
 * @param {Artifact | null} artifact
 */
export function verdictText(verdict, artifact) {
	const said = artifact?.payload.kind === "question" ? texts.question : texts;
	return said.verdicts[verdict];
}

/** @param {Item} item */
export function artifactOf(item) {
	return item.content.opened ? item.content.artifact : null;
}

/**
 * The one that expires next comes first.
 * @param {Item} one
 * @param {Item} other
 */
export function byUrgency(one, other) {
	const end = (/** @type {Item} */ { expiresAt }) =>
		expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
	const begin = (/** @type {Item} */ { receivedAt }) => receivedAt ?? "";
	if (end(one) !== end(other)) return end(one) < end(other) ? -1 : 1;
	return begin(one).localeCompare(begin(other));
}

/**
 * A machine and a directory: the last name of it says most.
 * @param {string} repository
 */
export function shortRepository(repository) {
	const last = repository.split("/").pop() ?? "";
	return /^\.*$/.test(last) ? repository : last;
}

/**
 * Ids that begin with the time are told apart by their ends.
 * @param {string} sessionId
 */
export function shortSession(sessionId) {
	return texts.inboxRow.session(sessionId.slice(-4));
}
