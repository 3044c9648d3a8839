// The agent that asks: as this device knows it, or as the gateway says.

import { agentTitle } from "../core/agentnames.js";
import { texts } from "../texts.js";
import { el } from "./dom.js";
import { visibleText } from "./marked.js";

/** @param {{ enforcerId: string | null, label: string | null }} agent */
export function agentName(agent) {
	return visibleText(agent.label || agent.enforcerId || texts.who.nobody);
}

/**
 * The agent and the machine that it works on.
 * @param {import('../core/types.js').Item} item
 */
export function agentOnMachine(item) {
	const title = agentTitle(item.content.opened ? item.content.artifact : null);
	const machine = agentName(item);
	return title === null ? machine : texts.inboxRow.on(title, machine);
}

/**
 * The name, the id if that is another, and whether this is only what the gateway says.
 * @param {import('../core/types.js').Item} item
 */
export function whoAsks(item) {
	const id =
		item.enforcerId && item.label && item.label !== item.enforcerId
			? visibleText(item.enforcerId)
			: null;
	return [
		el("strong", null, agentName(item)),
		id && el("span", { class: "quiet" }, ` ${id}`),
		!item.isPaired &&
			el("span", { class: "quiet" }, ` (${texts.who.asGatewaySays})`),
	];
}
