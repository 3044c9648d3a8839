// The parts of a request that are shown around its content: the sentence, the agent's own words,
// cues, and details that few need.

import { agentTitle } from "../core/agentnames.js";
import { cuesOf } from "../core/cues.js";
import { agentReason } from "../core/sentence.js";
import { problemText } from "../texts/problems.js";
import { texts } from "../texts.js";
import { ago, dateTime, timeLeft } from "../ui/clock.js";
import { el } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { marked, markedName, visibleText } from "../ui/marked.js";
import { note } from "../ui/parts.js";
import { sentenceView } from "../ui/sentence.js";
import { kindOf, shortRepository, shortSession } from "../ui/summary.js";
import { whoAsks } from "../ui/who.js";
import { LONGEST_REASON_SHOWN } from "./content.js";
import { ruleView } from "./rule.js";

/** @typedef {import('../core/types.js').Item} Item */
/** @typedef {import('../core/types.js').Artifact} Artifact */
/** @typedef {import('../ui/dom.js').Child} Child */
/** @typedef {[string, Child | Child[]]} Fact */

/**
 * @param {Item} item
 * @param {Artifact | null} artifact
 * @param {{ back?: HTMLElement, controls?: Child[] }} [options]
 */
export function requestHead(item, artifact, options = {}) {
	const kind = kindOf(artifact);
	const title = agentTitle(artifact);
	return el(
		"header",
		{ class: "request-head" },
		options.back,
		el(
			"div",
			{ class: "row" },
			el("span", { class: ["sign", !artifact && "warn"] }, icon(kind.icon)),
			el(
				"div",
				{ class: "entry-main" },
				el(
					"h1",
					{ tabindex: "-1", class: "sentence" },
					artifact ? sentenceView(artifact) : kind.label,
				),
				el(
					"p",
					{ class: "entry-line dotted" },
					artifact && el("span", null, kind.label),
					el("span", null, title && `${title}, `, whoAsks(item)),
					artifact &&
						el(
							"span",
							{ title: visibleText(artifact.repository) },
							markedName(shortRepository(artifact.repository)),
						),
					artifact?.sessionId &&
						el("span", null, shortSession(artifact.sessionId)),
					artifact && el("span", null, ago(artifact.createdAt)),
				),
			),
			options.controls ?? [],
			item.state === "pending" &&
				el(
					"span",
					{ class: "chip clock" },
					icon("clock", "small"),
					timeLeft(item.expiresAt),
				),
		),
		artifact && reasonView(artifact),
		artifact && cuesView(artifact),
		artifact && ruleView(artifact, item.teamNames),
	);
}

/**
 * The agent's reason is only what it says: it stands apart, and says whose words it is.
 * @param {Artifact} artifact
 */
function reasonView(artifact) {
	const reason = agentReason(artifact);
	if (reason === null) return null;
	const isCut = reason.length > LONGEST_REASON_SHOWN;
	const { label, hint } = texts.agentSays;
	return el(
		"figure",
		{ class: "agent-says" },
		el("figcaption", { class: "fine quiet", title: hint }, label),
		el(
			"blockquote",
			null,
			marked(isCut ? `${reason.slice(0, LONGEST_REASON_SHOWN)}…` : reason),
		),
	);
}

/** @param {Artifact} artifact */
function cuesView(artifact) {
	const cues = cuesOf(artifact);
	if (cues.length === 0) return null;
	const kinds = /** @type {const} */ (["destroys", "leaves"]);
	return el(
		"ul",
		{ class: "cues", "aria-label": texts.cues.why },
		kinds
			.map((kind) => ({
				kind,
				rules: cues.filter((cue) => cue.kind === kind),
			}))
			.filter(({ rules }) => rules.length > 0)
			.map(({ kind, rules }) =>
				el(
					"li",
					null,
					el(
						"span",
						{ class: `chip ${kind === "destroys" ? "bad" : "warn"}` },
						texts.cues[kind],
					),
					el(
						"span",
						{ class: "fine" },
						rules.map(({ rule }) => texts.cues.rules[rule]).join("; "),
					),
				),
			),
	);
}

/** @param {Item} item */
export function unopened(item) {
	if (item.state !== "pending") return note("info", texts.request.neverOpened);
	const problem = item.content.opened ? null : item.content.problem;
	return note(
		"bad",
		el("strong", null, texts.request.unopened),
		problem && el("p", null, problemText(problem)),
		el(
			"p",
			null,
			item.artifactHash === null
				? texts.request.notRejectable
				: texts.request.unopenedText,
		),
		problem?.code === "notPaired" &&
			el("p", null, el("a", { href: "#/pair" }, texts.request.pairHint)),
	);
}

/**
 * @param {Item} item
 * @param {Artifact | null} artifact
 * @returns {(Fact | false)[]}
 */
export function itemFacts(item, artifact) {
	const { facts: names } = texts.request;
	return [
		[names.who, el("span", null, whoAsks(item))],
		...(artifact ? artifactFacts(artifact) : []),
		item.expiresAt !== null && [names.ends, dateTime(item.expiresAt)],
		[names.id, el("code", null, markedName(item.requestId))],
		item.artifactHash !== null && [
			names.hash,
			el("code", null, item.artifactHash),
		],
	];
}

/**
 * @param {Artifact} artifact
 * @returns {(Fact | false)[]}
 */
function artifactFacts(artifact) {
	const { facts: names } = texts.request;
	return [
		[names.repo, el("span", null, markedName(artifact.repository))],
		artifact.baseRevision !== null && [
			names.revision,
			el("code", null, markedName(artifact.baseRevision)),
		],
		artifact.sessionId !== null && [
			names.session,
			el("code", null, markedName(artifact.sessionId)),
		],
		[names.asked, dateTime(artifact.createdAt)],
	];
}
