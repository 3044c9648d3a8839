// A link that counts for a while, and somebody who is waited for.

import { texts } from "../texts.js";
import { dateTime } from "./clock.js";
import { el, fill } from "./dom.js";
import { button } from "./parts.js";

/**
 * Until when the link counts, and then a button for another.
 * @param {string} until
 * @param {string} action
 * @param {() => void} renew
 */
export function expiring(until, action, renew) {
	const line = el(
		"p",
		{ class: "hint", role: "status" },
		texts.enrol.valid,
		" ",
		dateTime(until),
	);
	setTimeout(
		() => {
			if (line.isConnected)
				fill(
					line,
					texts.enrol.expired,
					" ",
					button(action, { kind: "small", on: renew }),
				);
		},
		Math.max(Date.parse(until) - Date.now(), 0),
	);
	return line;
}

/** @param {string} text */
export function waitingLine(text) {
	return el(
		"p",
		{ class: "row quiet", role: "status" },
		el("span", { class: "spinner" }),
		text,
	);
}
