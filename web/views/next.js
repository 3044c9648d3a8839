// Where the buttons of a notification lead: to the request that waits, which a person then reads. A
// notification does not say which one it is about.

import { isForOthers } from "../core/item.js";
import { texts } from "../texts.js";
import { waiting } from "../ui/parts.js";

const LIST_TIMEOUT_MS = 5_000;

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {import('../ui/view.js').View}
 */
export function view({ approver, args, go }) {
	const [verdict] = args;
	let isOpen = true;
	let end = () => {};
	const dispose = () => {
		isOpen = false;
		clearTimeout(timer);
		end();
	};
	/** @param {string} hash */
	const leave = (hash) => {
		if (!isOpen) return;
		dispose();
		setTimeout(() => go(hash, true));
	};
	// A notification may be faster than the list.
	const timer = setTimeout(() => leave("#/inbox"), LIST_TIMEOUT_MS);
	end = approver.inbox.subscribe(({ isLoaded, items, problem }) => {
		const mine = items.filter((item) => !isForOthers(item));
		if (!problem && !(isLoaded && mine.length > 0)) return;
		const [only, ...others] = mine;
		// Of several a person chooses.
		leave(
			only && others.length === 0
				? `#/request/${encodeURIComponent(only.requestId)}/${verdict === "reject" ? "reject" : "approve"}`
				: "#/inbox",
		);
	});
	if (!isOpen) end();
	return { title: texts.inbox.title, element: waiting(), dispose };
}
