// The sentence that says what a request would do, as text and on the page. The request's own words
// in it are made visible.

import { sentenceOf } from "../core/sentence.js";
import { texts } from "../texts.js";
import { el } from "./dom.js";
import { marked, visibleText } from "./marked.js";
import { shellLine } from "./shellwords.js";

/** @typedef {import('../core/types.js').Artifact} Artifact */
/** @typedef {import('./dom.js').Child} Child */

/** Values of which each character counts. */
const EXACT = [
	"command",
	"other",
	"path",
	"from",
	"url",
	"uri",
	"pattern",
	"id",
];

/** @type {WeakMap<Artifact, { text: string, value: string | null }[]>} */
const known = new WeakMap();

/**
 * Our words, and the request's: those have the name of the value.
 * @param {Artifact} artifact
 */
function segments(artifact) {
	const before = known.get(artifact);
	if (before) return before;
	const { name, values, more, server } = sentenceOf(artifact, shellLine);
	const { moreFiles, moreQuestions, from } = texts.sentences;
	const found = texts.sentences[name]
		.split(/\{(\w+)\}/)
		.map((text, at) => {
			if (at % 2 === 0) return { text, value: null };
			if (text !== "more") return { text: values[text] ?? "", value: text };
			const counted =
				name === "askMore" ? moreQuestions(more ?? 0) : moreFiles(more ?? null);
			return { text: counted, value: null };
		})
		.filter(({ text }) => text !== "");
	if (server) {
		const [before, after] = from("\n").split("\n");
		found.push(
			{ text: before ?? "", value: null },
			{ text: server, value: "server" },
			{ text: after ?? "", value: null },
		);
	}
	known.set(artifact, found);
	return found;
}

/**
 * Between more backticks than it has in a row.
 * @param {string} command
 */
function fenced(command) {
	const runs = command.match(/`+/g) ?? [];
	const fence = "`".repeat(Math.max(0, ...runs.map((run) => run.length)) + 1);
	return `${fence}${command}${fence}`;
}

/** @param {Artifact} artifact */
export function headline(artifact) {
	return segments(artifact)
		.map(({ text, value }) => {
			if (value === null) return text;
			return ["command", "other"].includes(value)
				? fenced(visibleText(text))
				: visibleText(text);
		})
		.join("");
}

/**
 * @param {Artifact} artifact
 * @returns {Child[]}
 */
export function sentenceView(artifact) {
	return segments(artifact).flatMap(({ text, value }) => {
		if (value === null) return [text];
		const isExact = EXACT.includes(value);
		const shown = marked(text, { singleLine: true, strict: isExact });
		return isExact
			? [el("code", { class: "exact" }, shown)]
			: value === "action" || value === "server"
				? shown
				: [el("span", { class: "said" }, shown)];
	});
}
