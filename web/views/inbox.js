// The requests that wait for a decision, live.

import { problemText } from "../texts/problems.js";
import { texts } from "../texts.js";
import { el, fill } from "../ui/dom.js";
import { empty, linkButton, note, page, waiting } from "../ui/parts.js";
import { inboxList } from "./inboxlist.js";

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {import('../ui/view.js').View}
 */
export function view(context) {
	const { approver } = context;
	const list = inboxList(context);
	const instead = el("div", null, waiting());
	const element = page(
		texts.inbox.title,
		{ actions: [el("div", { class: "row inbox-controls" }, list.controls)] },
		el(
			"div",
			{ class: "stack" },
			instead,
			el("div", { class: "stack" }, list.parts),
		),
	);
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
		} else showInstead("", () => null);
		list.show(inbox);
	};

	const ends = [
		approver.inbox.subscribe(render),
		approver.agents.subscribe(render),
	];
	return {
		title: texts.inbox.title,
		element,
		keys: list.keys,
		dispose: () => {
			for (const end of ends) end();
		},
	};
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
