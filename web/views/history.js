// Decisions that this device made or saw, each of which can be saved as a file.

import { texts } from "../texts.js";
import { ago, dateTime } from "../ui/clock.js";
import { el, fill } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import {
	button,
	empty,
	errorText,
	linkButton,
	note,
	page,
	waiting,
} from "../ui/parts.js";
import { headline, sentenceView } from "../ui/sentence.js";
import { kindOf, verdictText } from "../ui/summary.js";
import { agentName } from "../ui/who.js";
import { usesText } from "./permissions.js";

/** @typedef {import('../core/types.js').HistoryEntry} HistoryEntry */

const PAGE = 100;

/** Uses are read for so many of the newest permissions. */
const MOST_USES = 20;

/** @param {HistoryEntry} one */
function isPermission({ decision }) {
	return decision.verdict === "approve" && decision.scope !== "once";
}

/**
 * The uses of a permission, under its decision.
 * @param {import('../core/types.js').GrantUses} uses
 */
function usesList(uses) {
	if (uses.count === 0)
		return el("p", { class: "fine quiet uses" }, usesText(uses));
	return el(
		"details",
		{ class: "fine uses" },
		el("summary", null, usesText(uses)),
		el(
			"ul",
			null,
			uses.times.map((time) => el("li", null, dateTime(time))),
		),
		uses.count > uses.times.length &&
			el("p", { class: "quiet" }, texts.history.olderUses),
	);
}

/**
 * @param {HistoryEntry} one
 * @param {Promise<import('../core/types.js').GrantUses> | undefined} uses
 */
function entry(one, uses) {
	const place = el("div", null);
	uses?.then(
		(found) => fill(place, usesList(found)),
		(thrown) =>
			fill(place, el("p", { class: "fine quiet uses" }, errorText(thrown))),
	);
	const good = one.decision.verdict === "approve";
	const by = one.decision.isOwn
		? null
		: texts.history.byOther(one.decision.deviceId.slice(0, 8));
	return el(
		"li",
		null,
		el(
			"a",
			{
				href: `#/request/${encodeURIComponent(one.requestId)}`,
				class: "folding",
			},
			el(
				"span",
				{ class: ["sign", good ? "good" : "bad"] },
				icon(good ? "check" : "cross"),
			),
			el(
				"span",
				{ class: "entry-main" },
				el(
					"span",
					{ class: "entry-title clip lines-2" },
					one.artifact ? sentenceView(one.artifact) : texts.kinds.unknown,
				),
				el(
					"span",
					{ class: "entry-line dotted" },
					el("span", null, kindOf(one.artifact).label),
					el("span", null, agentName(one)),
					by && el("span", null, by),
					!one.decision.isVerified &&
						el("span", { class: "chip warn" }, texts.history.unverified),
				),
			),
			el(
				"span",
				{ class: "entry-side fine" },
				el(
					"span",
					{ class: `chip ${good ? "good" : "bad"}` },
					verdictText(one.decision.verdict, one.artifact),
				),
				el("span", { class: "quiet" }, ago(one.decidedAt)),
			),
		),
		uses && place,
	);
}

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {import('../ui/view.js').View}
 */
export function view({ approver }) {
	const filter = el("input", {
		class: "input filter",
		type: "search",
		placeholder: texts.inbox.filter,
		"aria-label": texts.history.filterLabel,
		hidden: true,
	});
	const content = el("div", { class: "stack" }, waiting());
	/** @type {HistoryEntry[]} */
	let entries = [];
	/** @type {Map<string, Promise<import('../core/types.js').GrantUses>>} */
	const uses = new Map();
	const usesOf = (/** @type {HistoryEntry} */ one) => {
		const { requestId } = one;
		if (isPermission(one) && !uses.has(requestId) && uses.size < MOST_USES)
			uses.set(
				requestId,
				approver.orders((orders, session) => orders.readUses(session, one)),
			);
		return uses.get(requestId);
	};
	const render = () => {
		const wanted = filter.value.trim().toLowerCase();
		const text = (/** @type {HistoryEntry} */ one) =>
			`${agentName(one)} ${kindOf(one.artifact).label} ${one.artifact ? headline(one.artifact) : ""}`;
		const kept = wanted
			? entries.filter((one) => text(one).toLowerCase().includes(wanted))
			: entries;
		if (entries.length === 0)
			fill(
				content,
				empty(
					"history",
					texts.history.empty.title,
					texts.history.empty.text,
					linkButton(texts.history.empty.action, "#/inbox"),
				),
			);
		else if (kept.length === 0)
			fill(content, el("p", { class: "quiet" }, texts.history.noMatch));
		else
			fill(
				content,
				el(
					"div",
					{ class: "card" },
					el(
						"ul",
						{ class: "list" },
						kept.map((one) => entry(one, usesOf(one))),
					),
				),
				hasMore && el("div", { class: "row" }, more),
			);
	};
	let hasMore = false;
	const more = button(texts.history.more, {
		on: () => load(entries[entries.length - 1].decidedAt),
	});
	/** @type {(before?: string) => Promise<void>} */
	const load = (before) =>
		approver.history(before ?? null, PAGE).then(
			(list) => {
				// A change shows the newest again, and what was below them.
				const known = new Set(list.map((one) => one.requestId));
				const others = entries.filter((one) => !known.has(one.requestId));
				if (before || entries.length === 0) hasMore = list.length === PAGE;
				entries = before ? [...others, ...list] : [...list, ...others];
				filter.hidden = entries.length === 0;
				render();
			},
			(thrown) => fill(content, note("bad", errorText(thrown))),
		);
	filter.addEventListener("input", render);
	// Another device's decisions arrive while this is open.
	const end = approver.inbox.subscribe(() => load());
	return {
		title: texts.history.title,
		element: page(
			texts.history.title,
			{ actions: [filter], lead: texts.history.lead },
			content,
		),
		keys: { "/": () => filter.focus() },
		dispose: end,
	};
}
