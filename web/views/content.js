// The content of a request, by kind: complete, whatever it is. A member that the kind does not use
// is shown below it.

import { texts } from "../texts.js";
import { el } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { linesView } from "../ui/lines.js";
import { markedName } from "../ui/marked.js";
import { facts } from "../ui/parts.js";
import { shellWord } from "../ui/shellwords.js";
import { commandWords, kindOf } from "../ui/summary.js";
import { treeView } from "./tree.js";

/** @typedef {import('../core/types.js').Artifact} Artifact */
/** @typedef {import('../core/types.js').JsonObject} JsonObject */
/** @typedef {import('../ui/finder.js').Searchable} Searchable */

/**
 * `start` is called once it is part of the page, since what is shown depends on the width.
 * @typedef {object} Content
 * @property {HTMLElement} element
 * @property {boolean} wide
 * @property {string} text to copy
 * @property {() => void} start
 * @property {() => void} dispose
 * @property {Searchable | null} searchable
 */

/**
 * @param {Artifact} artifact
 * @returns {Promise<Content>}
 */
export async function contentView(artifact) {
	const rest = { ...artifact.payload };
	/** @type {(name: string) => string | null} */
	const take = (name) => {
		const value = rest[name];
		if (typeof value !== "string") return null;
		delete rest[name];
		return value;
	};
	const main = await byKind(artifact, rest, take);
	const whole =
		main ?? cardOf(treeView(artifact.payload, texts.tree.label), artifact);
	const others =
		main && Object.keys(rest).length > 0
			? { payload: rest, ...artifact.rest }
			: artifact.rest;
	const aside =
		Object.keys(others).length > 0
			? treeView(others, texts.request.also)
			: null;
	const element = el(
		"div",
		{ class: "stack" },
		whole.element,
		aside &&
			el(
				"details",
				{ class: "card details", open: !isActionsOnly(artifact, others) },
				el("summary", null, texts.request.also),
				aside.element,
			),
	);
	return {
		element,
		wide: whole.wide ?? false,
		text: whole.text ?? JSON.stringify(artifact.payload, null, 2),
		start: () => {
			whole.start();
			aside?.start();
		},
		dispose: () => {
			whole.dispose();
			aside?.dispose();
		},
		searchable: whole.searchable ?? null,
	};
}

/**
 * Whether the buttons show all that there is.
 * @param {Artifact} artifact
 * @param {JsonObject} others
 */
function isActionsOnly(artifact, others) {
	const { extensions, ...rest } = others;
	const names =
		extensions !== null && typeof extensions === "object"
			? Object.keys(extensions)
			: [];
	return (
		artifact.actions.length > 0 &&
		Object.keys(rest).length === 0 &&
		names.length === 1
	);
}

/**
 * @typedef {Pick<Content, 'element' | 'start' | 'dispose'> & Partial<Content>} Part
 */

/**
 * Takes what it shows out of `rest`. Null: not what its kind promises, so all of it is shown as it
 * is.
 * @param {Artifact} artifact
 * @param {JsonObject} rest
 * @param {(name: string) => string | null} take
 * @returns {Promise<Part | null>}
 */
async function byKind(artifact, rest, take) {
	const { payload } = artifact;
	switch (payload.kind) {
		case "command": {
			const words = commandWords(payload);
			const command = words || "argv" in payload ? null : take("command");
			if (!words && command === null) return null;
			delete rest.kind;
			if (words) delete rest.argv;
			return commandPart(
				words,
				command ?? "",
				take("directory"),
				take("program"),
			);
		}
		case "patch": {
			const patch = take("patch");
			if (patch === null) return null;
			delete rest.kind;
			const { patchView } = await import("./patch.js");
			const view = patchView(patch);
			const card = cardOf(view, artifact);
			card.element.classList.add("patched");
			return { ...card, wide: true, text: patch };
		}
		case "plan": {
			const plan = take("text");
			if (plan === null) return null;
			delete rest.kind;
			const { planView } = await import("./plan.js");
			return { ...planView(plan), text: plan };
		}
		case "tool": {
			const tool = take("tool");
			delete rest.kind;
			const input = rest.input;
			delete rest.input;
			const view = treeView(input ?? {}, texts.tree.label);
			const card = cardOf(view, artifact);
			if (tool !== null)
				card.element.prepend(
					el(
						"div",
						{ class: "card-head" },
						icon("tool"),
						el("h2", { class: "mono" }, markedName(tool)),
					),
				);
			return { ...card, text: JSON.stringify(payload, null, 2) };
		}
		default:
			return null;
	}
}

/**
 * @param {Searchable & { element: HTMLElement, start: () => void, dispose: () => void }} view
 * @param {Artifact} artifact
 * @returns {Part}
 */
function cardOf(view, artifact) {
	const element = el(
		"section",
		{
			class: "card content",
			"aria-label": texts.request.contentOf(kindOf(artifact).label),
		},
		view.element,
	);
	return {
		element,
		start: view.start,
		dispose: view.dispose,
		searchable: view,
	};
}

/**
 * @param {string[] | null} words
 * @param {string} command
 * @param {string | null} directory
 * @param {string | null} program
 * @returns {Part}
 */
function commandPart(words, command, directory, program) {
	const where = facts([
		directory !== null && [
			texts.request.facts.directory,
			el("code", null, markedName(directory)),
		],
		program !== null && [
			texts.request.facts.program,
			el("code", null, markedName(program)),
		],
	]);
	const text = words ? words.map(shellWord).join(" ") : command;
	const lines = linesView(text, texts.kinds["command.review"], {
		strict: true,
	});
	lines.element.classList.add("command");
	if (!text.includes("\n")) lines.element.classList.add("single");
	const element = el(
		"section",
		{
			class: "card content",
			"aria-label": texts.request.contentOf(texts.kinds["command.review"]),
		},
		el("div", { class: "terminal" }, lines.element),
		where.childElementCount > 0 && el("div", { class: "card-body" }, where),
	);
	return {
		element,
		start: lines.start,
		dispose: lines.dispose,
		searchable: lines,
		text,
	};
}
