// The kind of a request.

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
	if (kind === "tool" || kind === "question")
		return {
			icon: kind === "tool" ? "tool" : "help",
			label: texts.kinds[kind],
		};
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
