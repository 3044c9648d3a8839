// One request in the inbox: a sentence, then where it comes from and how long it waits.

import { cuesOf } from "../core/cues.js";
import { texts } from "../texts.js";
import { ago, timeLeft } from "../ui/clock.js";
import { el } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { markedName, visibleText } from "../ui/marked.js";
import { headline, sentenceView } from "../ui/sentence.js";
import {
	artifactOf,
	kindOf,
	shortRepository,
	shortSession,
	verdictText,
} from "../ui/summary.js";
import { agentName, agentOnMachine } from "../ui/who.js";

/** @typedef {import('../core/types.js').Item} Item */
/** @typedef {import('../core/types.js').Artifact} Artifact */

/** @param {Item} item */
function address(item) {
	return `#/request/${encodeURIComponent(item.requestId)}`;
}

/** @param {Item} item */
export function sentenceText(item) {
	const artifact = artifactOf(item);
	return artifact ? headline(artifact) : texts.request.unopened;
}

/**
 * @param {Item} item
 * @returns {import('../ui/dom.js').Child[]}
 */
export function sentenceOfItem(item) {
	const artifact = artifactOf(item);
	return artifact ? sentenceView(artifact) : [texts.request.unopened];
}

/**
 * One chip for each kind of cue. The rules are told when it is pointed at, and in the request.
 * @param {Artifact} artifact
 */
function cueChips(artifact) {
	const cues = cuesOf(artifact);
	return /** @type {const} */ (["destroys", "leaves"]).map((kind) => {
		const rules = cues
			.filter((cue) => cue.kind === kind)
			.map(({ rule }) => texts.cues.rules[rule]);
		return (
			rules.length > 0 &&
			el(
				"span",
				{
					class: `chip ${kind === "destroys" ? "bad" : "warn"}`,
					title: rules.join("; "),
				},
				texts.cues[kind],
			)
		);
	});
}

/**
 * @param {Item} item
 * @param {((item: Item, isRange: boolean, isOn: boolean) => void) | null} pick null: it cannot be
 *   selected
 */
export function waitingRow(item, pick) {
	const artifact = artifactOf(item);
	const kind = kindOf(artifact);
	const askedAt = artifact?.createdAt ?? item.receivedAt;
	const sign = el(
		"span",
		{ class: ["sign", !artifact && "warn"], title: kind.label },
		icon(kind.icon),
		pick && icon("check"),
	);
	return el(
		"li",
		{ class: "request-row" },
		pick
			? el("label", { class: "pick" }, pickBox(item, pick), sign)
			: el("span", { class: "unpicked" }, sign),
		el(
			"a",
			{
				href: address(item),
				class: "request-entry folding",
				"data-id": item.requestId,
			},
			el(
				"span",
				{ class: "entry-main" },
				el(
					"span",
					{ class: "entry-title sentence clip lines-2" },
					sentenceOfItem(item),
				),
				el(
					"span",
					{ class: "entry-line dotted" },
					el("span", { class: "kind-label" }, kind.label),
					el(
						"span",
						null,
						agentOnMachine(item),
						!item.isPaired && `, ${texts.who.notPaired}`,
					),
					artifact &&
						el(
							"span",
							{ title: visibleText(artifact.repository) },
							markedName(shortRepository(artifact.repository)),
						),
					artifact?.sessionId &&
						el("span", null, shortSession(artifact.sessionId)),
					askedAt && el("span", null, ago(askedAt)),
					artifact && el("span", { class: "cue-chips" }, cueChips(artifact)),
				),
			),
			el("span", { class: "entry-side fine" }, timeLeft(item.expiresAt)),
		),
	);
}

/**
 * @param {Item} item
 * @param {(item: Item, isRange: boolean, isOn: boolean) => void} pick
 */
function pickBox(item, pick) {
	const box = el("input", {
		type: "checkbox",
		"aria-label": texts.several.selectOne(sentenceText(item)),
		"data-pick": item.requestId,
	});
	box.addEventListener("click", (event) =>
		pick(item, event.shiftKey, box.checked),
	);
	return box;
}

/** @param {Item} item */
export function endOf(item) {
	const { decision, state } = item;
	return decision
		? verdictText(decision.verdict, artifactOf(item))
		: texts.states[state];
}

/** @param {Item} item */
export function endedRow(item) {
	const artifact = artifactOf(item);
	const { decision } = item;
	const good = decision?.verdict === "approve";
	return el(
		"li",
		null,
		el(
			"a",
			{ href: address(item), class: "folding" },
			el(
				"span",
				{ class: ["sign", decision ? (good ? "good" : "bad") : "plain"] },
				icon(decision ? (good ? "check" : "cross") : "clock"),
			),
			el(
				"span",
				{ class: "entry-main" },
				el(
					"span",
					{ class: "sentence clip lines-2" },
					artifact ? sentenceView(artifact) : texts.kinds.unknown,
				),
				el("span", { class: "entry-line" }, agentName(item)),
			),
			el(
				"span",
				{ class: "entry-side" },
				el(
					"span",
					{ class: `chip ${decision ? (good ? "good" : "bad") : ""}` },
					endOf(item),
				),
				decision &&
					el("span", { class: "quiet fine" }, texts.states[item.state]),
			),
		),
	);
}
