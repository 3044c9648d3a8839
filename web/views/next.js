// Where the buttons of a notification lead: to the request that waits, which a person then reads. A
// notification does not say which one it is about.

import { isForOthers } from "../core/item.js";
import { texts } from "../texts.js";
import { waiting } from "../ui/parts.js";

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {import('../ui/view.js').View}
 */
export function view({ approver, args, go }) {
	const [verdict] = args;
	let isOpen = true;
	const end = approver.inbox.subscribe(({ isLoaded, items, problem }) => {
		if (!isOpen || !(isLoaded || problem)) return;
		isOpen = false;
		const [only, ...others] = items.filter((item) => !isForOthers(item));
		// Of several a person chooses.
		const hash =
			only && others.length === 0
				? `#/request/${encodeURIComponent(only.requestId)}/${verdict === "reject" ? "reject" : "approve"}`
				: "#/inbox";
		setTimeout(() => go(hash, true));
	});
	const dispose = () => {
		isOpen = false;
		end();
	};
	return { title: texts.inbox.title, element: waiting(), dispose };
}
