// The requests that wait for a decision, live.

import { problemText } from "../texts/problems.js";
import { texts } from "../texts.js";
import { announce } from "../ui/announce.js";
import { timeLeft } from "../ui/clock.js";
import { el, fill } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { keyedList } from "../ui/keyed.js";
import { empty, linkButton, note, page, waiting } from "../ui/parts.js";
import { artifactOf, headline, kindOf } from "../ui/summary.js";
import { agentName } from "../ui/who.js";

/** @typedef {import('../core/types.js').Item} Item */
/** @typedef {import('../core/problem.js').Problem} Problem */

const FILTER_FROM = 6;
const ENDED_SHOWN = 5;

/** @param {Item} item */
function address(item) {
	return `#/request/${encodeURIComponent(item.requestId)}`;
}

/** @param {Item} item */
function waitingEntry(item) {
	const artifact = artifactOf(item);
	const kind = kindOf(artifact);
	const what = artifact
		? el(
				"span",
				{
					class: ["entry-title", "clip", "lines-2", isCode(artifact) && "mono"],
				},
				headline(artifact),
			)
		: el("span", { class: "entry-title" }, texts.request.unopened);
	return el(
		"li",
		null,
		el(
			"a",
			{
				href: address(item),
				class: "request-entry folding",
				"data-id": item.requestId,
			},
			el("span", { class: ["sign", !artifact && "warn"] }, icon(kind.icon)),
			el(
				"span",
				{ class: "entry-main" },
				what,
				el(
					"span",
					{ class: "entry-line dotted" },
					el("span", null, kind.label),
					el(
						"span",
						null,
						agentName(item),
						!item.isPaired && `, ${texts.who.notPaired}`,
					),
				),
			),
			el("span", { class: "entry-side fine" }, timeLeft(item.expiresAt)),
		),
	);
}

/** @param {import('../core/types.js').Artifact} artifact */
function isCode(artifact) {
	return artifact.payload.kind !== "plan";
}

/** @param {Item} item */
function endOf({ decision, state }) {
	return decision ? texts.verdicts[decision.verdict] : texts.states[state];
}

/** @param {Item} item */
function endedEntry(item) {
	const artifact = artifactOf(item);
	const { decision } = item;
	const good = decision?.verdict === "approve";
	const word = endOf(item);
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
					{
						class: ["clip", "lines-2", artifact && isCode(artifact) && "mono"],
					},
					artifact ? headline(artifact) : texts.kinds.unknown,
				),
				el("span", { class: "entry-line" }, agentName(item)),
			),
			el(
				"span",
				{ class: "entry-side" },
				el(
					"span",
					{ class: `chip ${decision ? (good ? "good" : "bad") : ""}` },
					word,
				),
				decision &&
					el("span", { class: "quiet fine" }, texts.states[item.state]),
			),
		),
	);
}

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {import('../ui/view.js').View}
 */
export function view({ approver, go }) {
	const filter = el("input", {
		class: "input filter",
		type: "search",
		placeholder: texts.inbox.filter,
		"aria-label": texts.inbox.filterLabel,
		hidden: true,
	});
	const list = el("ul", { class: "list" });
	const card = el("div", { class: "card", hidden: true }, list);
	const instead = el("div", null, waiting());
	const more = el("p", { class: "quiet fine", hidden: true }, texts.inbox.more);
	const endedList = el("ul", { class: "list" });
	const endedPart = el(
		"section",
		{ class: "stack", hidden: true },
		el("h2", { class: "section" }, texts.inbox.ended),
		el("div", { class: "card" }, endedList),
	);
	const element = page(
		texts.inbox.title,
		{ actions: [filter] },
		el("div", { class: "stack" }, card, instead, more, endedPart),
	);
	const idOf = (/** @type {Item} */ item) => item.requestId;
	const waits = keyedList(list, idOf, waitingEntry);
	const ended = keyedList(endedList, idOf, endedEntry);
	let isFirst = true;
	let emptyKind = "";

	const matches = (/** @type {Item} */ item) => {
		const wanted = filter.value.trim().toLowerCase();
		if (!wanted) return true;
		const artifact = artifactOf(item);
		return `${agentName(item)} ${kindOf(artifact).label} ${artifact ? headline(artifact) : ""}`
			.toLowerCase()
			.includes(wanted);
	};

	const render = () => {
		const inbox = approver.inbox.value;
		if (!inbox.isLoaded) {
			if (inbox.problem)
				showInstead(inbox.problem.code, () =>
					note("warn", problemText(/** @type {Problem} */ (inbox.problem))),
				);
			return;
		}
		filter.hidden =
			inbox.items.length < FILTER_FROM &&
			!filter.value &&
			document.activeElement !== filter;
		const items = inbox.items.filter(matches);
		card.hidden = items.length === 0;
		const arrived = waits.show(items);
		if (items.length > 0) showInstead("", () => null);
		else if (inbox.items.length > 0)
			showInstead("noMatch", () =>
				el("p", { class: "quiet" }, texts.inbox.noMatch),
			);
		else {
			const isUnpaired = approver.agents.value.length === 0;
			showInstead(isUnpaired ? "unpaired" : "empty", () =>
				emptyInbox(isUnpaired),
			);
		}
		more.hidden = !inbox.hasMore;
		endedPart.hidden = inbox.finished.length === 0;
		const left = ended.show(inbox.finished.slice(0, ENDED_SHOWN));
		if (!isFirst) {
			for (const item of arrived)
				announce(
					texts.inbox.arrived(agentName(item), kindOf(artifactOf(item)).label),
				);
			for (const item of left)
				announce(texts.inbox.left(agentName(item), endOf(item)));
		}
		isFirst = false;
		if (items.length > 0) warmUp();
	};

	/**
	 * Shows something in place of the list. It is made anew only if its kind changes.
	 * @param {string} kind
	 * @param {() => import('../ui/dom.js').Child} make
	 */
	const showInstead = (kind, make) => {
		if (kind === emptyKind && kind !== "") return;
		emptyKind = kind;
		fill(instead, make());
	};

	const move = (/** @type {number} */ step) => {
		const links = [...list.querySelectorAll("a")];
		const at = links.indexOf(
			/** @type {HTMLAnchorElement} */ (document.activeElement),
		);
		links[
			at < 0
				? step > 0
					? 0
					: links.length - 1
				: Math.min(Math.max(at + step, 0), links.length - 1)
		]?.focus();
	};
	filter.addEventListener("input", render);
	const ends = [
		approver.inbox.subscribe(render),
		approver.agents.subscribe(render),
	];
	return {
		title: texts.inbox.title,
		element,
		keys: {
			j: () => move(1),
			k: () => move(-1),
			"/": () => {
				filter.hidden = false;
				filter.focus();
			},
			// Nothing is decided that was not shown.
			a: () => openFocused(),
			r: () => openFocused(),
		},
		dispose: () => {
			for (const end of ends) end();
		},
	};

	function openFocused() {
		const id = document.activeElement?.getAttribute("data-id");
		if (id) go(`#/request/${encodeURIComponent(id)}`);
	}
}

/** So that a request opens at once. */
function warmUp() {
	import("./request.js");
	import("./patch.js");
	import("../core/endings.js");
}

/** @param {boolean} isUnpaired */
function emptyInbox(isUnpaired) {
	if (isUnpaired) {
		const { title, text, action } = texts.inbox.unpairedEmpty;
		return empty(
			"agents",
			title,
			text,
			linkButton(action, "#/pair", "primary", "plus"),
		);
	}
	const { title, text, command } = texts.inbox.empty;
	return empty("inbox", title, text, el("code", { class: "sample" }, command));
}
