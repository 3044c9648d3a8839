// Shows what becomes of something that was sent to an agent's machine, until that has answered.

import { texts } from "../texts.js";
import { el, fill } from "../ui/dom.js";
import { visibleText } from "../ui/marked.js";
import { note } from "../ui/parts.js";

/** @typedef {import('../core/types.js').SentPrompt} SentPrompt */

const STATUS_MS = 2000;

/**
 * @template {SentPrompt} T
 * @template {string} S
 * @param {T} sent
 * @param {HTMLElement} place
 * @param {object} subject
 * @param {Record<S, string>} subject.said the words for each state
 * @param {(sent: T) => Promise<T>} subject.read
 * @param {(sent: T) => S | Promise<S>} subject.stateOf
 * @returns {Promise<T | null>} null if the place is gone before there is an answer
 */
export async function followSent(sent, place, { said, read, stateOf }) {
	let now = sent;
	const shown = el("div", { role: "status" });
	fill(place, shown);
	for (;;) {
		const state = await stateOf(now);
		const kind =
			state === "delivered" ? "good" : state === "queued" ? "info" : "warn";
		fill(
			shown,
			note(
				kind,
				said[state],
				now.reason && texts.agents.promptReason(visibleText(now.reason)),
			),
		);
		if (now.status !== "queued") return now;
		await new Promise((resolve) => setTimeout(resolve, STATUS_MS));
		if (!shown.isConnected) return null;
		// Asked again in a moment.
		now = await read(now).catch(() => now);
	}
}
