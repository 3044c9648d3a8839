// Decisions that this device made or saw, each of which can be saved as a file.

import { texts } from "../texts.js";
import { ago } from "../ui/clock.js";
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
import { kindOf } from "../ui/summary.js";
import { agentName } from "../ui/who.js";

/** @typedef {import('../core/types.js').HistoryEntry} HistoryEntry */

const PAGE = 100;

/** @param {HistoryEntry} one */
function entry(one) {
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
					texts.verdicts[one.decision.verdict],
				),
				el("span", { class: "quiet" }, ago(one.decidedAt)),
			),
		),
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
					el("ul", { class: "list" }, kept.map(entry)),
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
