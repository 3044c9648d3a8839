// The list of the inbox: the most urgent request first, filters, and a selection of several.

import { isForOthers } from "../core/item.js";
import { asProblem } from "../core/problem.js";
import { texts } from "../texts.js";
import { announce } from "../ui/announce.js";
import { el, fill } from "../ui/dom.js";
import { keyedList } from "../ui/keyed.js";
import { button } from "../ui/parts.js";
import { isApprovable, isRejectable, selected } from "../ui/selection.js";
import { artifactOf, byUrgency, kindOf } from "../ui/summary.js";
import { agentName, agentOnMachine } from "../ui/who.js";
import { earlierRequests } from "./earlier.js";
import { endedRow, endOf, sentenceText, waitingRow } from "./inboxrow.js";

/** @typedef {import('../core/types.js').Item} Item */

const FILTER_FROM = 6;
const ENDED_SHOWN = 5;

/** @param {import('../ui/view.js').JoinedContext} context */
export function inboxList({ approver, go }) {
	const filter = el("input", {
		class: "input filter",
		type: "search",
		placeholder: texts.inbox.filter,
		"aria-label": texts.inbox.filterLabel,
		hidden: true,
	});
	const agents = choice(texts.filters.agent, texts.filters.allAgents);
	const kinds = choice(texts.filters.kind, texts.filters.allKinds);
	const select = button(texts.several.select, {
		kind: "small",
		"aria-pressed": "false",
		on: () => setSelecting(!isSelecting),
	});
	const list = el("ul", { class: "list requests" });
	const card = el("div", { class: "card", hidden: true }, list);
	const noMatch = el(
		"p",
		{ class: "quiet", hidden: true },
		texts.inbox.noMatch,
	);
	const more = el("p", { class: "quiet fine", hidden: true }, texts.inbox.more);
	const bar = el("div", {
		class: "several-bar",
		role: "group",
		"aria-label": texts.several.select,
		hidden: true,
	});
	const earlierPart = el("div", null);
	const endedList = el("ul", { class: "list" });
	const endedPart = el(
		"section",
		{ class: "stack", hidden: true },
		el("h2", { class: "section" }, texts.inbox.ended),
		el("div", { class: "card" }, endedList),
	);
	const idOf = (/** @type {Item} */ item) => item.requestId;
	const rows = keyedList(list, idOf, (/** @type {Item} */ item) =>
		waitingRow(item, pick),
	);
	const ended = keyedList(endedList, idOf, endedRow);
	let isFirst = true;
	let isSelecting = false;
	/** @type {Item[]} */
	let all = [];
	/** @type {Item[]} */
	let shown = [];
	/** Where a range begins. */
	let anchor = "";

	const matches = (/** @type {Item} */ item) => {
		const wanted = filter.value.trim().toLowerCase();
		const kind = kindOf(artifactOf(item)).label;
		return (
			(agents.value === "" || agents.value === agentOnMachine(item)) &&
			(kinds.value === "" || kinds.value === kind) &&
			`${agentOnMachine(item)} ${kind} ${sentenceText(item)}`
				.toLowerCase()
				.includes(wanted)
		);
	};
	/** @type {Awaited<ReturnType<typeof earlierRequests>> | null} */
	let grouping = null;
	let isGrouping = false;
	let earlierIds = "";
	/** Requests from before this device was added are one line. */
	const group = async () => {
		if (isGrouping) return;
		isGrouping = true;
		try {
			grouping = await earlierRequests(approver);
			again();
		} catch (error) {
			// They stay in the list.
			asProblem(error);
		} finally {
			isGrouping = false;
		}
	};
	const showEarlier = (/** @type {Item[]} */ items) => {
		const ids = items.map(idOf).join();
		// A person may have opened it.
		if (ids === earlierIds) return;
		earlierIds = ids;
		fill(
			earlierPart,
			items.length > 0 &&
				grouping?.line(items, (item) => waitingRow(item, null)),
		);
	};
	const isFiltering = () =>
		filter.value !== "" ||
		agents.value !== "" ||
		kinds.value !== "" ||
		document.activeElement === filter;

	const show = (/** @type {import('../core/types.js').Inbox} */ inbox) => {
		if (!grouping && inbox.items.some(isForOthers)) void group();
		const earlier = grouping ? inbox.items.filter(grouping.isEarlier) : [];
		showEarlier(earlier);
		all = inbox.items.filter((item) => !earlier.includes(item)).sort(byUrgency);
		const isLong = all.length >= FILTER_FROM || isFiltering();
		filter.hidden = !isLong;
		agents.offer(all.map(agentOnMachine), isLong);
		kinds.offer(
			all.map((item) => kindOf(artifactOf(item)).label),
			isLong,
		);
		const isOpen = new Set(all.map(idOf));
		for (const id of [...selected]) if (!isOpen.has(id)) selected.delete(id);
		shown = all.filter(matches);
		card.hidden = shown.length === 0;
		noMatch.hidden = shown.length > 0 || all.length === 0;
		const arrived = rows.show(shown);
		more.hidden = !inbox.hasMore;
		endedPart.hidden = inbox.finished.length === 0;
		const left = ended.show(inbox.finished.slice(0, ENDED_SHOWN));
		select.hidden = all.length < 2 && !isSelecting;
		showSelection();
		if (!isFirst) {
			for (const item of arrived)
				announce(
					texts.inbox.arrived(agentName(item), kindOf(artifactOf(item)).label),
				);
			for (const item of left)
				announce(texts.inbox.left(agentName(item), endOf(item)));
		}
		isFirst = false;
		if (shown.length > 0) warmUp();
	};
	const again = () => show(approver.inbox.value);

	const setSelecting = (/** @type {boolean} */ isOn) => {
		isSelecting = isOn;
		if (!isOn) selected.clear();
		select.setAttribute("aria-pressed", String(isOn));
		showSelection();
	};

	const showSelection = () => {
		list.classList.toggle("selecting", isSelecting || selected.size > 0);
		for (const box of list.querySelectorAll("input")) {
			const id = box.getAttribute("data-pick") ?? "";
			if (box.checked !== selected.has(id)) box.checked = selected.has(id);
			box.closest("li")?.classList.toggle("picked", box.checked);
		}
		bar.hidden = selected.size === 0 && !isSelecting;
		bar.classList.toggle("decision", !bar.hidden);
		if (!bar.hidden) fill(bar, barParts());
	};

	const barParts = () => {
		const chosen = all.filter(({ requestId }) => selected.has(requestId));
		const approvable = chosen.filter(isApprovable).length;
		const rejectable = chosen.filter(isRejectable).length;
		const [first] = chosen;
		const siblings = first
			? all.filter(
					(item) => item.enforcerId === first.enforcerId && isRejectable(item),
				)
			: [];
		const isOneAgent = chosen.every(
			({ enforcerId }) => enforcerId === first?.enforcerId,
		);
		return [
			el(
				"div",
				{ class: "row several-count" },
				el("strong", null, texts.several.selected(chosen.length)),
				button(texts.several.selectAll, {
					kind: "plain small",
					on: () => {
						for (const item of shown) selected.add(item.requestId);
						showSelection();
					},
				}),
				button(texts.several.none, {
					kind: "plain small",
					on: () => setSelecting(false),
				}),
				first &&
					isOneAgent &&
					siblings.length > 1 &&
					button(texts.several.rejectAllOf(agentName(first)), {
						kind: "plain small",
						on: () => rejectAll(agentName(first), siblings),
					}),
			),
			approvable < chosen.length &&
				el(
					"p",
					{ class: "fine quiet" },
					texts.several.notApprovable(chosen.length - approvable),
				),
			el(
				"div",
				{ class: "decision-buttons" },
				button(texts.several.reject, {
					kind: "bad-quiet",
					icon: "cross",
					disabled: rejectable === 0,
					on: () => go("#/several/reject"),
				}),
				button(texts.several.approve, {
					kind: "good",
					icon: "check",
					disabled: approvable === 0,
					on: () => go("#/several/approve"),
				}),
			),
		];
	};

	const rejectAll = async (
		/** @type {string} */ name,
		/** @type {Item[]} */ items,
	) => {
		const { rejectAllDialog } = await import("./rejectall.js");
		rejectAllDialog(approver, name, items);
	};

	/** @type {(item: Item, isRange: boolean, isOn: boolean) => void} */
	function pick(item, isRange, isOn) {
		const ids = shown.map(idOf);
		const [from, to] = [ids.indexOf(anchor), ids.indexOf(item.requestId)];
		const range =
			isRange && from >= 0
				? ids.slice(Math.min(from, to), Math.max(from, to) + 1)
				: [item.requestId];
		for (const id of range) {
			if (isOn) selected.add(id);
			else selected.delete(id);
		}
		anchor = item.requestId;
		showSelection();
	}

	const links = () => [...list.querySelectorAll("a")];
	const move = (/** @type {number} */ step) => {
		const found = links();
		const at = found.findIndex((link) =>
			link.parentElement?.contains(document.activeElement),
		);
		const start = step > 0 ? 0 : found.length - 1;
		const next =
			at < 0 ? start : Math.min(Math.max(at + step, 0), found.length - 1);
		found[next]?.focus();
	};
	const focused = () =>
		document.activeElement?.closest("li")?.querySelector("a")?.dataset.id;
	const openFocused = () => {
		const id = focused();
		if (id) go(`#/request/${encodeURIComponent(id)}`);
	};
	for (const control of [filter, agents.element, kinds.element])
		control.addEventListener("input", again);
	return {
		controls: [agents.element, kinds.element, filter, select],
		parts: [card, noMatch, earlierPart, more, bar, endedPart],
		show,
		keys: {
			j: () => move(1),
			k: () => move(-1),
			x: () => {
				const item = shown.find(({ requestId }) => requestId === focused());
				if (item) pick(item, false, !selected.has(item.requestId));
			},
			"/": () => {
				filter.hidden = false;
				filter.focus();
			},
			a: openFocused,
			r: openFocused,
		},
	};
}

/**
 * A choice among what occurs, or all of it.
 * @param {string} label
 * @param {string} allText
 */
function choice(label, allText) {
	const element = el("select", {
		class: "input filter",
		"aria-label": label,
		hidden: true,
	});
	let before = "";
	return {
		element,
		get value() {
			return element.value;
		},
		/**
		 * @param {string[]} found
		 * @param {boolean} isWanted
		 */
		offer(found, isWanted) {
			const counts = new Map();
			for (const name of found) counts.set(name, (counts.get(name) ?? 0) + 1);
			const chosen = element.value;
			if (chosen !== "" && !counts.has(chosen)) counts.set(chosen, 0);
			element.hidden = chosen === "" && !(isWanted && counts.size > 1);
			const options = [...counts].sort(([one], [other]) =>
				one.localeCompare(other),
			);
			// An open list must not change under the pointer.
			if (JSON.stringify(options) === before) return;
			before = JSON.stringify(options);
			fill(
				element,
				el("option", { value: "" }, allText),
				options.map(([name, n]) =>
					el("option", { value: name }, texts.filters.option(name, n)),
				),
			);
			element.value = chosen;
		},
	};
}

/** So that a request opens at once. */
function warmUp() {
	import("./request.js");
	import("./patch.js");
	import("../core/syntax.js");
	import("../core/endings.js");
}
