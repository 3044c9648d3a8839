// The agents that this device is paired with.

import { texts } from "../texts.js";
import { ago } from "../ui/clock.js";
import { el } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { keyedList } from "../ui/keyed.js";
import { visibleText } from "../ui/marked.js";
import { empty, linkButton, page } from "../ui/parts.js";
import { agentName } from "../ui/who.js";

/** @typedef {import('../core/types.js').Agent} Agent */

const REFRESH_MS = 15_000;

/** @param {Agent} agent */
export function presenceChip(agent) {
	const status = agent.presence?.status;
	return el(
		"span",
		{ class: `chip ${status === "online" ? "good" : ""}` },
		el("span", { class: "dot" }),
		texts.agents[status ?? "unknown"],
	);
}

/** @param {Agent} agent */
function entry(agent) {
	const workspace = agent.presence?.workspaceName;
	return el(
		"li",
		null,
		el(
			"a",
			{ href: `#/agents/${encodeURIComponent(agent.enforcerId)}` },
			el("span", { class: "sign" }, icon("agents")),
			el(
				"span",
				{ class: "entry-main" },
				el("span", { class: "entry-title" }, agentName(agent)),
				el(
					"span",
					{ class: "entry-line" },
					agent.label &&
						agent.label !== agent.enforcerId &&
						el("span", null, visibleText(agent.enforcerId)),
					workspace && el("span", null, visibleText(workspace)),
					agent.presence?.status === "offline" &&
						el(
							"span",
							null,
							`${texts.agents.seen} `,
							ago(agent.presence.lastSeenAt),
						),
				),
			),
			presenceChip(agent),
			icon("next", "small"),
		),
	);
}

/**
 * Keeps presence current while a view is open.
 * @param {import('../core/approver.js').Approver} approver
 */
export function watchPresence(approver) {
	// Without it, what was known before is shown.
	const refresh = () => approver.refreshAgents().catch(() => {});
	refresh();
	const timer = setInterval(refresh, REFRESH_MS);
	return () => clearInterval(timer);
}

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {import('../ui/view.js').View}
 */
export function view({ approver }) {
	const { title, text, action } = texts.agents.empty;
	const nobody = empty(
		"agents",
		title,
		text,
		linkButton(action, "#/pair", "primary", "plus"),
	);
	const list = el("ul", { class: "list" });
	const card = el("div", { class: "card" }, list);
	const entries = keyedList(
		list,
		(/** @type {Agent} */ agent) => agent.enforcerId,
		entry,
	);
	// Presence is read again and again; what did not change keeps the focus.
	const isSame = (/** @type {Agent} */ one, /** @type {Agent} */ other) =>
		JSON.stringify(one) === JSON.stringify(other);
	const render = (/** @type {Agent[]} */ agents) => {
		card.hidden = agents.length === 0;
		nobody.hidden = agents.length > 0;
		entries.show(agents, isSame);
	};
	const ends = [approver.agents.subscribe(render), watchPresence(approver)];
	const actions = [
		linkButton(texts.agents.pair, "#/pair", "primary small", "plus"),
	];
	return {
		title: texts.agents.title,
		element: page(
			texts.agents.title,
			{ actions },
			el("div", { class: "stack" }, card, nobody),
		),
		dispose: () => {
			for (const end of ends) end();
		},
	};
}
