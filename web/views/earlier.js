// Requests from before this device was added: it cannot open them, so they are one line.

import { isForOthers } from "../core/item.js";
import { texts } from "../texts.js";
import { el } from "../ui/dom.js";
import { visibleText } from "../ui/marked.js";

/** @typedef {import('../core/types.js').Device} Device */
/** @typedef {import('../core/types.js').Item} Item */

/**
 * Whether a request was encrypted for this person's devices before this one was among them.
 * @param {Item} item
 * @param {string | null | undefined} addedAt when this device was added, as the gateway says, whose
 *   clock also says when the request came
 */
export function isEarlier(item, addedAt) {
	const { receivedAt } = item;
	return (
		isForOthers(item) &&
		Boolean(receivedAt && addedAt) &&
		Date.parse(String(receivedAt)) < Date.parse(String(addedAt))
	);
}

/** @param {Pick<import('../core/approver.js').Approver, 'devices'>} approver */
export async function earlierRequests(approver) {
	const devices = await approver.devices();
	const own = devices.find(({ standing }) => standing === "own");
	return {
		isEarlier: (/** @type {Item} */ item) => isEarlier(item, own?.addedAt),
		/**
		 * The requests are in the line, since they can be rejected.
		 * @param {Item[]} items
		 * @param {(item: Item) => HTMLElement} row
		 */
		line: (items, row) => {
			const names = devices
				.filter(({ standing }) => standing === "trusted")
				.map(({ nickname, name }) => visibleText(nickname ?? name));
			return el(
				"details",
				{ class: "card details" },
				el("summary", null, texts.inbox.earlier(items.length, names)),
				el("ul", { class: "list" }, items.map(row)),
			);
		},
	};
}
