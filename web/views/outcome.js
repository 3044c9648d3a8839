// The outcome of a request: signed, decided, delivered; or why it came to nothing.

import { needsOthers } from "../core/rule.js";
import { texts } from "../texts.js";
import { dateTime } from "../ui/clock.js";
import { el } from "../ui/dom.js";
import { grantText } from "../ui/granttext.js";
import { icon } from "../ui/icons.js";
import { marked, visibleText } from "../ui/marked.js";
import { busy, button, linkButton, note } from "../ui/parts.js";
import { artifactOf, verdictText } from "../ui/summary.js";

/** @typedef {import('../core/types.js').Item} Item */

const STEPS = /** @type {const} */ (["signed", "decided", "delivered"]);

/** @param {import('../core/types.js').ItemState} state */
function reached(state) {
	return state === "delivered" ? 3 : state === "decided" ? 2 : 1;
}

/**
 * @param {Item} item
 * @param {string | null} next the address of the next request
 * @param {() => Promise<void>} save
 */
export function outcomeBar(item, next, save) {
	const place = el("div", null);
	const keep = button(texts.history.save, {
		kind: "small",
		icon: "save",
		title: texts.history.saveHint,
	});
	keep.addEventListener("click", () => busy(keep, place, save));
	const isSaved =
		item.content.opened &&
		!item.isUnkept &&
		(item.state === "decided" || item.state === "delivered");
	const { decision, state } = item;
	const good = decision?.verdict === "approve";
	const head = decision
		? verdictText(decision.verdict, artifactOf(item))
		: texts.states[state];
	const done = reached(state);
	const isDecision = decision !== null || state === "deciding";
	return el(
		"div",
		{
			class: ["decision", "outcome", decision && (good ? "good" : "bad")],
			role: "status",
			tabindex: "-1",
		},
		el(
			"div",
			{ class: "row" },
			el(
				"span",
				{ class: ["sign", decision ? (good ? "good" : "bad") : "plain"] },
				icon(decision ? (good ? "check" : "cross") : "clock"),
			),
			el(
				"div",
				{ class: "entry-main" },
				el("strong", null, head),
				el("span", { class: "fine quiet" }, explain(item)),
			),
		),
		isDecision &&
			el(
				"ol",
				{ class: "steps" },
				STEPS.map((step, at) =>
					el(
						"li",
						{
							class: [at < done && "done"],
							"aria-current": at === done - 1 ? "step" : undefined,
						},
						texts.decide.steps[step],
					),
				),
			),
		item.gatewaySays &&
			note("bad", texts.decide.contradicted(texts.states[item.gatewaySays])),
		decision?.outcome === "forged" && note("bad", texts.decide.forged),
		item.isUnkept && note("warn", texts.decide.notKept),
		decision?.reason &&
			el(
				"p",
				{ class: "fine" },
				marked(texts.decide.reasonWas(decision.reason)),
			),
		place,
		el(
			"div",
			{ class: "row" },
			isSaved && keep,
			next
				? linkButton(texts.decide.next, next, "primary small")
				: linkButton(texts.decide.toInbox, "#/inbox", "small"),
		),
	);
}

/** @param {Item} item */
function explain(item) {
	const { decision, state } = item;
	if (decision && !decision.isOwn) {
		return decision.isVerified
			? texts.decide.elsewhere(decision.deviceId.slice(0, 8))
			: texts.decide.notVerified;
	}
	switch (state) {
		case "expired":
			return texts.decide.expired;
		case "withdrawn":
			return item.withdrawalReason
				? visibleText(texts.decide.withdrawnBecause(item.withdrawalReason))
				: texts.decide.withdrawn;
		case "cancelled":
			return texts.decide.cancelled;
		case "delivered":
			return (
				byOthers(item) ?? texts.decide.outcomes[decision?.outcome ?? "unsigned"]
			);
		case "decided":
			return waitsForOthers(item) ?? texts.decide.decidedText;
		default:
			return texts.decide.sending;
	}
}

/**
 * A rule may want decisions of several people. The enforcer confirms them together, at the end.
 * @param {Item} item
 */
function waitsForOthers(item) {
	const rule = artifactOf(item)?.rule ?? null;
	if (rule === null || rule === "unknown") return null;
	if (item.decision?.verdict === "approve")
		return needsOthers(rule) ? texts.rule.approved : null;
	return rule.rejections > 1 ? texts.rule.rejected : null;
}

/**
 * Others may have turned a request to the opposite of what was decided here.
 * @param {Item} item
 */
function byOthers(item) {
	const { verdict, outcome } = item.decision ?? {};
	if (!artifactOf(item)?.rule) return null;
	if (verdict === "approve" && outcome === "rejected")
		return texts.rule.rejectedByOthers;
	return verdict === "reject" && outcome === "allowed"
		? texts.rule.allowedByOthers
		: null;
}

/**
 * @param {import('../core/types.js').ItemDecision | null} decision
 * @param {import('../core/types.js').Artifact | null} artifact
 * @returns {[string, import('../ui/dom.js').Child | import('../ui/dom.js').Child[]][]}
 */
export function decisionFacts(decision, artifact) {
	if (!decision) return [];
	const { history } = texts;
	const covers = decision.grant
		? [". ", ...grantText(decision.grant, artifact)]
		: [];
	return [
		[history.decision, verdictText(decision.verdict, artifact)],
		[history.scope, [history.scopes[decision.scope], ...covers]],
		[history.validUntil, dateTime(decision.expiresAt)],
		[history.device, el("code", null, decision.deviceId)],
		...(decision.reason
			? [
					/** @type {[string, import('../ui/dom.js').Child[]]} */ ([
						texts.decide.reason,
						marked(decision.reason),
					]),
				]
			: []),
	];
}
