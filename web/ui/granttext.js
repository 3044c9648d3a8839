// What a permission covers, as a sentence's part.

import { editScope } from "../core/grants.js";
import { texts } from "../texts.js";
import { el } from "./dom.js";
import { marked, markedName } from "./marked.js";
import { shellLine, shellWord } from "./shellwords.js";

/** @typedef {import('./dom.js').Child} Child */

/**
 * @param {import('../core/types.js').Grant | null} grant null: given on another device, which alone
 *   knows it
 * @param {import('../core/types.js').Artifact | null} artifact the request that it is given with
 * @returns {Child[]}
 */
export function grantText(grant, artifact) {
	const { grants } = texts.decide;
	const scope = artifact && editScope(artifact);
	switch (grant?.match) {
		case undefined:
			return [grants.unknown];
		case "same":
			return [grants.same];
		case "prefix":
			return [grants.prefix, " ", code(...marked(shellLine(grant.argv)))];
		case "words":
			return [
				grants.words,
				" ",
				code(...wordParts(grant.argv)),
				grant.more ? grants.more : "",
			];
		case "file":
			return [
				grants.file,
				" ",
				...(scope?.files ?? []).flatMap((file, at) => [
					at > 0 ? ", " : "",
					code(...markedName(file)),
				]),
			];
		case "project":
			return [grants.project, " ", code(...markedName(scope?.project ?? ""))];
	}
}

/** @param {Child[]} children */
function code(...children) {
	return el("code", null, ...children);
}

/**
 * @param {(string | null)[]} words
 * @returns {Child[]}
 */
function wordParts(words) {
	return words.flatMap((word, at) => [
		at > 0 ? " " : "",
		...(word === null
			? [el("em", null, texts.decide.grants.anyWord)]
			: marked(shellWord(word))),
	]);
}
