// The content of a request, by kind: complete, whatever it is. A member that the kind does not use
// is shown below it.

import { agentTitle } from "../core/agentnames.js";
import { commandParts } from "../core/commandparts.js";
import { agentReason, commandWords } from "../core/sentence.js";
import { texts } from "../texts.js";
import { el } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { linesView } from "../ui/lines.js";
import { markedName } from "../ui/marked.js";
import { facts } from "../ui/parts.js";
import { shellWord } from "../ui/shellwords.js";
import { kindOf } from "../ui/summary.js";
import { treeView } from "./tree.js";

/** @typedef {import('../core/types.js').Artifact} Artifact */
/** @typedef {import('../core/types.js').JsonObject} JsonObject */
/** @typedef {import('../ui/finder.js').Searchable} Searchable */

/** A longer reason of the agent is shown whole with the other members. */
export const LONGEST_REASON_SHOWN = 1000;

/**
 * `start` is called once it is part of the page, since what is shown depends on the width.
 * @typedef {object} Content
 * @property {HTMLElement} element
 * @property {boolean} wide
 * @property {string} text to copy
 * @property {() => void} start
 * @property {() => void} dispose
 * @property {Searchable | null} searchable
 * @property {[string, import('../ui/dom.js').Child[]][]} facts for the details
 * @property {(() => string[][] | null) | null} answers to the questions that it asks; null while one is missing
 * @property {() => void} end it was decided
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
	const facts = main ? knownFacts(artifact, rest) : [];
	const whole =
		main ??
		cardOf(
			treeView(artifact.payload, texts.tree.label, { isFlat: true }),
			artifact,
		);
	const isClear = Object.keys(artifact.rest).every((name) => !(name in rest));
	const more =
		isClear || Object.keys(rest).length === 0 ? rest : { payload: rest };
	const others = main ? { ...more, ...artifact.rest } : artifact.rest;
	const aside =
		Object.keys(others).length > 0
			? treeView(others, texts.request.also, { isFlat: true })
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
		facts,
		answers: whole.answers ?? null,
		end: whole.end ?? (() => {}),
	};
}

/**
 * Members that agents' machines add, and that are shown elsewhere: taken out of `rest` only if
 * nothing of them is lost.
 * @param {Artifact} artifact
 * @param {JsonObject} rest
 */
function knownFacts(artifact, rest) {
	const { facts: names } = texts.request;
	/** @type {[string, import('../ui/dom.js').Child[]][]} */
	const facts = [];
	const code = (/** @type {string} */ text) => [
		el("code", null, markedName(text)),
	];
	if (agentTitle(artifact) !== null) delete rest.agent;
	for (const name of /** @type {const} */ (["tool", "directory"])) {
		const text = rest[name];
		if (typeof text !== "string") continue;
		facts.push([names[name], code(text)]);
		delete rest[name];
	}
	const { files } = rest;
	const mcp = /** @type {any} */ (rest.mcp);
	if (hasOnly(mcp, ["server", "tool"])) {
		facts.push([names.server, code(`${mcp.server}: ${mcp.tool}`)]);
		delete rest.mcp;
	}
	const isFile = (/** @type {any} */ file) =>
		hasOnly({ realPath: "", ...file, sha256: file?.sha256 ?? "" }, [
			"path",
			"realPath",
			"sha256",
		]);
	if (
		Array.isArray(files) &&
		files.length <= MOST_FILES &&
		files.every(isFile)
	) {
		for (const { path, realPath, sha256 } of files)
			facts.push([
				names.file,
				[
					...code(path),
					...(realPath ? [" → ", ...code(realPath)] : []),
					el("br", null),
					sha256 === null
						? texts.inboxRow.newFile
						: el("code", { class: "fine quiet" }, sha256),
				],
			]);
		delete rest.files;
	}
	takeReason(artifact, rest);
	return facts;
}

const MOST_FILES = 20;

/**
 * The agent's reason stands under the headline.
 * @param {Artifact} artifact
 * @param {JsonObject} rest
 */
function takeReason(artifact, rest) {
	const reason = agentReason(artifact);
	if (reason === null || reason.length > LONGEST_REASON_SHOWN) return;
	const { options } = rest;
	if (rest.description === reason) delete rest.description;
	else if (
		options !== null &&
		typeof options === "object" &&
		!Array.isArray(options)
	) {
		const { description: _, ...others } = /** @type {JsonObject} */ (options);
		if (Object.keys(others).length > 0) rest.options = others;
		else delete rest.options;
	}
}

/**
 * Whether it is an object of exactly these texts.
 * @param {any} value
 * @param {string[]} names
 */
function hasOnly(value, names) {
	return (
		value !== null &&
		typeof value === "object" &&
		Object.keys(value).length === names.length &&
		names.every((name) => typeof value[name] === "string")
	);
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
			const isInBackground = rest.background === true;
			if (isInBackground) delete rest.background;
			return commandPart(
				words,
				command ?? "",
				take("directory"),
				take("program"),
				isInBackground,
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
		case "question": {
			const { questionView, readQuestions } = await import("./question.js");
			const questions = readQuestions(payload);
			if (!questions) return null;
			delete rest.kind;
			delete rest.questions;
			return {
				...questionView(questions),
				text: JSON.stringify(payload, null, 2),
			};
		}
		case "tool": {
			const tool = take("tool");
			delete rest.kind;
			const input = rest.input ?? {};
			delete rest.input;
			const view = treeView(input, texts.tree.label, { isFlat: true });
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
 * @param {boolean} isInBackground
 * @returns {Part}
 */
function commandPart(words, command, directory, program, isInBackground) {
	const where = facts([
		directory !== null && [
			texts.request.facts.directory,
			el("code", null, markedName(directory)),
		],
		program !== null && [
			texts.request.facts.program,
			el("code", null, markedName(program)),
		],
		isInBackground && [texts.inboxRow.runs, texts.inboxRow.background],
	]);
	const text = words ? words.map(shellWord).join(" ") : command;
	const lines = linesView(text, texts.kinds["command.review"], {
		strict: true,
		parts: commandParts(text),
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
