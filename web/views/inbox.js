// The requests that wait for a decision, live. The list itself is loaded while they are read.

import { loaded } from "../core/gateway.js";
import { problemText } from "../texts/problems.js";
import { texts } from "../texts.js";
import { el, fill } from "../ui/dom.js";
import {
	button,
	empty,
	errorText,
	linkButton,
	note,
	page,
	waiting,
} from "../ui/parts.js";

/** @typedef {ReturnType<import('./inboxlist.js').inboxList>} InboxList */

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {import('../ui/view.js').View}
 */
export function view(context) {
	const { approver } = context;
	const controls = el("div", { class: "row inbox-controls" });
	const body = el("div", { class: "stack" });
	const instead = el("div", null, waiting());
	const element = page(
		texts.inbox.title,
		{ actions: [controls] },
		el("div", { class: "stack" }, instead, body),
	);
	/** @type {InboxList | null} */
	let list = null;
	let isOpen = true;
	/** Why there is no list. */
	let failure = "";
	let insteadKind = "waiting";

	/**
	 * Shows something in place of the list. It is made anew only if its kind changes.
	 * @param {string} kind
	 * @param {() => import('../ui/dom.js').Child} make
	 */
	const showInstead = (kind, make) => {
		if (kind === insteadKind) return;
		insteadKind = kind;
		fill(instead, make());
	};

	const render = () => {
		const inbox = approver.inbox.value;
		const { problem } = inbox;
		if (!inbox.isLoaded) {
			if (problem)
				showInstead(problem.code, () => note("warn", problemText(problem)));
			return;
		}
		if (inbox.items.length === 0) {
			const isUnpaired = approver.agents.value.length === 0;
			showInstead(isUnpaired ? "unpaired" : "empty", () =>
				emptyInbox(isUnpaired),
			);
		} else if (list) showInstead("", () => null);
		else if (failure !== "") showInstead("failed", () => failed(failure));
		else showInstead("waiting", waiting);
		list?.show(inbox);
	};

	loaded(import("./inboxlist.js")).then(
		({ inboxList }) => {
			if (!isOpen) return;
			list = inboxList(context);
			fill(controls, list.controls);
			fill(body, list.parts);
			render();
		},
		(thrown) => {
			failure = errorText(thrown);
			render();
		},
	);
	const ends = [
		approver.inbox.subscribe(render),
		approver.agents.subscribe(render),
	];
	const key = (/** @type {keyof InboxList['keys']} */ name) => () =>
		list?.keys[name]();
	return {
		title: texts.inbox.title,
		element,
		keys: {
			j: key("j"),
			k: key("k"),
			x: key("x"),
			"/": key("/"),
			// Nothing is decided that was not shown.
			a: key("a"),
			r: key("r"),
		},
		dispose: () => {
			isOpen = false;
			for (const end of ends) end();
		},
	};
}

/** @param {string} failure */
function failed(failure) {
	const again = button(texts.defect.reload, {
		kind: "small",
		on: () => location.reload(),
	});
	return note("warn", failure, el("div", { class: "row" }, again));
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
