// Goes through several requests: each is shown in full, and decided and signed by itself.

import { wantsComment } from "../core/rule.js";
import { texts } from "../texts.js";
import { announce } from "../ui/announce.js";
import { closeDialogs } from "../ui/dialog.js";
import { el, fill } from "../ui/dom.js";
import {
	busy,
	button,
	copyButton,
	emptyPage,
	facts,
	linkButton,
	note,
} from "../ui/parts.js";
import { isApprovable, isRejectable, selected } from "../ui/selection.js";
import { artifactOf, byUrgency } from "../ui/summary.js";
import { contentView } from "./content.js";
import { decisionBar } from "./decide.js";
import { endOf, sentenceOfItem } from "./inboxrow.js";
import { itemFacts, requestHead, unopened } from "./requestbody.js";
import { commentField } from "./rule.js";
import { strangeDevices, warnings } from "./warnings.js";

/** @typedef {import('../core/types.js').Item} Item */
/** @typedef {import('../core/types.js').Choice} Choice */

/** As for a single request: nothing is decided by a click that was meant for the one before. */
const SETTLE_MS = 500;
const LONGEST_REASON = 4000;

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {import('../ui/view.js').View}
 */
export function view({ approver, args }) {
	const verdict = args[0] === "reject" ? "reject" : "approve";
	const isWanted = verdict === "approve" ? isApprovable : isRejectable;
	const title = texts.several.titles[verdict];
	// What could not be opened is never part of an approval.
	const items = approver.inbox.value.items
		.filter((item) => selected.has(item.requestId) && isWanted(item))
		.sort(byUrgency);
	selected.clear();
	if (items.length === 0) return { title, element: nothing() };

	const stage = el("div", { class: "page request several" });
	const counter = el("p", { class: "fine quiet", role: "status" });
	const progress = el("progress", {
		max: items.length,
		value: 0,
		"aria-label": title,
	});
	const bar = el("div", { class: "request-side" });
	const element = el(
		"div",
		{ class: "page" },
		el(
			"div",
			{ class: "several-head" },
			el("strong", null, title),
			counter,
			progress,
		),
		stage,
	);
	const reason = el("input", { class: "input", maxlength: LONGEST_REASON });
	/** How each ended: the words, or null if it was decided. @type {Map<string, string | null>} */
	const results = new Map();
	/** @type {import('./content.js').Content | null} */
	let content = null;
	/** @type {ReturnType<typeof decisionBar> | null} */
	let decision = null;
	let at = -1;
	let turn = 0;
	let isSettled = false;
	let isSending = false;
	/** @type {ReturnType<typeof setTimeout> | undefined} */
	let timer;

	/** The item as it is now; an ended one is known for a while. */
	const current = () =>
		at >= 0 && at < items.length
			? (approver.item(items[at].requestId) ?? items[at])
			: null;

	const next = () => {
		clear();
		at += 1;
		// Those that ended meanwhile are not asked.
		for (let item = current(); item && !isWanted(item); item = current()) {
			results.set(item.requestId, endOf(item));
			at += 1;
		}
		progress.value = at;
		const item = current();
		if (item) void present(item);
		else finish();
	};

	const clear = () => {
		turn += 1;
		closeDialogs();
		clearTimeout(timer);
		content?.dispose();
		[content, decision, isSettled] = [null, null, false];
	};

	const present = async (/** @type {Item} */ item) => {
		const mine = turn;
		items[at] = item;
		const artifact = artifactOf(item);
		const made = artifact ? await contentView(artifact) : null;
		// Its rows are measured where they are shown.
		if (!element.isConnected) await new Promise((done) => setTimeout(done));
		if (mine !== turn) return made?.dispose();
		content = made;
		counter.textContent = texts.several.step(at + 1, items.length);
		announce(counter.textContent);
		const buttons = barOf(item);
		buttons.inert = true;
		fill(bar, buttons);
		fill(
			stage,
			requestHead(item, artifact),
			strangeDevices(item),
			artifact && warnings(artifact),
			made ? made.element : unopened(item),
			el(
				"details",
				{ class: "card details" },
				el("summary", null, texts.request.details),
				el(
					"div",
					{ class: "card-body" },
					facts([...(made?.facts ?? []), ...itemFacts(item, artifact)]),
					made &&
						el(
							"div",
							{ class: "row" },
							copyButton(made.text, texts.request.copyContent),
						),
				),
			),
			bar,
		);
		stage.classList.toggle("roomy", made?.wide ?? false);
		made?.start();
		window.scrollTo(0, 0);
		stage.querySelector("h1")?.focus({ preventScroll: true });
		timer = setTimeout(() => {
			isSettled = true;
			buttons.inert = false;
		}, SETTLE_MS);
	};

	const decide = async (
		/** @type {Item} */ item,
		/** @type {Choice} */ choice,
	) => {
		isSending = true;
		try {
			await approver.decide(item, choice);
		} finally {
			isSending = false;
		}
		results.set(item.requestId, null);
		next();
	};

	/** @param {Item} item */
	const barOf = (item) => {
		const skip = button(texts.several.skip, {
			kind: "plain small",
			on: () => {
				results.set(item.requestId, texts.several.skipped);
				next();
			},
		});
		const stop = button(texts.several.stop, {
			kind: "plain small",
			on: finish,
		});
		const others = el("div", { class: "row" }, skip, stop);
		if (verdict === "approve") {
			decision = decisionBar(
				item,
				(choice) => decide(item, choice),
				() => content?.answers?.() ?? null,
			);
			decision.element.append(others);
			return decision.element;
		}
		const rule = artifactOf(item)?.rule ?? null;
		const comment = commentField(reason, texts.several.reason, {
			isRequired: item.isPaired && wantsComment(rule, "reject"),
		});
		const place = el("div", null);
		const go = button(texts.several.rejectThis, { kind: "bad", icon: "cross" });
		go.addEventListener("click", () =>
			busy(
				go,
				place,
				() =>
					decide(item, {
						verdict: "reject",
						reason: item.isPaired ? comment.read() : undefined,
					}),
				texts.decide.sending,
			),
		);
		return el(
			"div",
			{ class: "decision several-reject", role: "group", "aria-label": title },
			item.isPaired && comment.element,
			place,
			el("div", { class: "decision-buttons" }, go),
			others,
		);
	};

	const finish = () => {
		clear();
		at = items.length;
		progress.value = at;
		counter.textContent = "";
		const done = items.filter(
			({ requestId }) => results.get(requestId) === null,
		);
		fill(
			stage,
			el("h1", { tabindex: "-1" }, texts.several.results),
			el(
				"p",
				{ class: "quiet" },
				texts.several.resultsLead(done.length, items.length),
			),
			el(
				"div",
				{ class: "card" },
				el("ul", { class: "list" }, items.map(resultRow)),
			),
			el(
				"div",
				{ class: "row" },
				linkButton(texts.several.toInbox, "#/inbox", "primary"),
			),
		);
		stage.classList.add("roomy");
		stage.querySelector("h1")?.focus({ preventScroll: true });
	};

	const resultRow = (/** @type {Item} */ item) => {
		const now = approver.item(item.requestId) ?? item;
		const result = results.get(item.requestId);
		const isDone = result === null;
		const isGood = now.decision?.verdict === "approve";
		return el(
			"li",
			null,
			el(
				"a",
				{ href: `#/request/${encodeURIComponent(item.requestId)}` },
				el(
					"span",
					{ class: "entry-main" },
					el("span", { class: "sentence clip lines-2" }, sentenceOfItem(item)),
				),
				el(
					"span",
					{ class: ["chip", isDone && (isGood ? "good" : "bad")] },
					isDone ? endOf(now) : (result ?? texts.several.failed),
				),
			),
		);
	};

	const watch = () => {
		const item = current();
		if (!item || isSending || results.has(item.requestId)) return;
		// It ended elsewhere, or another one came in its place.
		if (!isWanted(item)) {
			clear();
			results.set(item.requestId, endOf(item));
			fill(
				bar,
				el(
					"div",
					{ class: "decision" },
					note("info", endOf(item)),
					button(texts.several.next, { on: next }),
				),
			);
		} else if (item.content !== items[at].content) {
			clear();
			void present(item);
		}
	};
	next();
	const end = approver.inbox.subscribe(watch);
	const settled = (/** @type {() => void} */ act) => () => {
		if (isSettled && !isSending) act();
	};
	return {
		title,
		element,
		wide: true,
		keys: {
			a: settled(() => decision?.approve()),
			r: settled(() => decision?.reject()),
		},
		dispose: () => {
			end();
			clear();
		},
	};
}

function nothing() {
	const { title, text, action } = texts.several.nothing;
	return emptyPage(
		"inbox",
		title,
		text,
		linkButton(action, "#/inbox", "primary"),
	);
}
