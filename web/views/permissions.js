// The permissions that this device gave to an agent, which can be ended here; and its pause.

import { texts } from "../texts.js";
import { ago, dateTime } from "../ui/clock.js";
import { el, fill } from "../ui/dom.js";
import { grantText } from "../ui/granttext.js";
import { busy, button, errorText, field, note } from "../ui/parts.js";
import { sentenceView } from "../ui/sentence.js";
import { followSent } from "./sent.js";

/** @typedef {import('../core/approver.js').Approver} Approver */
/** @typedef {import('../core/types.js').GivenGrant} GivenGrant */
/** @typedef {import('../core/types.js').GrantUses} GrantUses */
/** @typedef {import('../core/types.js').SentOrder} SentOrder */

/**
 * Shows what becomes of an order.
 * @param {Approver} approver
 * @param {SentOrder} sent
 * @param {HTMLElement} place
 */
function follow(approver, sent, place) {
	return followSent(sent, place, {
		said: texts.agents.orders,
		read: (now) =>
			approver.orders((orders, session) => orders.readOrder(session, now)),
		stateOf: (now) =>
			approver.orders(async ({ isConfirmed }) =>
				now.status === "delivered" && !isConfirmed(now) ? "forged" : now.status,
			),
	});
}

/**
 * @param {Approver} approver
 * @param {string} enforcerId
 */
export function pauseCard(approver, enforcerId) {
	const { pause: said } = texts.agents;
	const place = el("div", null);
	const state = el("p", { class: "quiet", role: "status" });
	const select = el(
		"select",
		{ class: "input" },
		said.lasts.map(([seconds, label]) =>
			el(
				"option",
				{ value: String(seconds), selected: seconds === 3600 },
				String(label),
			),
		),
	);
	const render = () =>
		approver
			.orders((orders, session) => orders.readPauses(session))
			.then(
				({ [enforcerId]: until }) =>
					fill(state, until ? said.until(dateTime(until)) : said.hint),
				(thrown) => fill(state, errorText(thrown)),
			);
	const stop = button(said.action, { kind: "bad-quiet" });
	const resume = button(said.resume);
	/** @param {HTMLButtonElement} control @param {() => Promise<SentOrder>} send */
	const order = (control, send) =>
		busy(
			control,
			place,
			async () => {
				const sent = await send();
				await render();
				void follow(approver, sent, place);
			},
			texts.agents.sending,
		);
	stop.addEventListener("click", () =>
		order(stop, () =>
			approver.orders((orders, session) =>
				orders.pauseAgent(session, enforcerId, {
					seconds: Number(select.value),
				}),
			),
		),
	);
	resume.addEventListener("click", () =>
		order(resume, () =>
			approver.orders((orders, session) =>
				orders.resumeAgent(session, enforcerId),
			),
		),
	);
	void render();
	const element = el(
		"section",
		{ class: "card card-body" },
		el("h2", null, said.title),
		state,
		field(said.lasting, select),
		place,
		el("div", { class: "row" }, stop, resume),
	);
	return { element, render };
}

/**
 * @param {Approver} approver
 * @param {string} enforcerId
 */
export function permissionList(approver, enforcerId) {
	const { permissions: said } = texts.agents;
	const list = el("div", { class: "stack" });
	const load = () =>
		approver
			.orders((orders, session) => orders.readGrants(session, enforcerId))
			.then(
				(grants) =>
					fill(
						list,
						grants.length > 0
							? grants.map((given) => permissionCard(approver, given, load))
							: el("p", { class: "quiet" }, said.none),
					),
				(thrown) => fill(list, note("warn", errorText(thrown))),
			);
	void load();
	return list;
}

/**
 * @param {Approver} approver
 * @param {GivenGrant} given
 * @param {() => void} reload
 */
function permissionCard(approver, given, reload) {
	const { permissions: said } = texts.agents;
	const { artifact, decision, ended } = given;
	const place = el("div", null);
	const uses = el("p", { class: "fine quiet" });
	approver
		.orders((orders, session) => orders.readUses(session, given))
		.then(
			(found) => fill(uses, usesText(found)),
			(thrown) => fill(uses, errorText(thrown)),
		);
	const end = button(said.end, { kind: "bad-quiet small" });
	end.addEventListener("click", () =>
		busy(
			end,
			place,
			async () => {
				const sent = await approver.orders((orders, session) =>
					orders.endGrant(session, given),
				);
				end.hidden = true;
				void follow(approver, sent, place).then(async (answered) => {
					if (answered === null) return;
					await approver.orders((orders, session) =>
						orders.noteEnd(session, given.requestId, answered),
					);
					reload();
				});
			},
			texts.agents.sending,
		),
	);
	end.hidden = ended !== null;
	const time = dateTime(decision.expiresAt);
	return el(
		"article",
		{ class: "card card-body permission" },
		el("p", null, ...grantText(decision.grant, artifact)),
		el(
			"p",
			{ class: "fine quiet" },
			decision.scope === "session" ? said.session(time) : said.until(time),
			artifact && [" ", said.given, ": ", ...sentenceView(artifact)],
		),
		uses,
		ended && note("info", said.ending),
		place,
		el("div", { class: "row" }, end),
	);
}

/**
 * @param {GrantUses} uses
 * @returns {import('../ui/dom.js').Child[]}
 */
export function usesText({ count, times }) {
	const { permissions: said } = texts.agents;
	if (count === 0) return [said.unused];
	const last = times[0] ? [", ", said.last, " ", ago(times[0])] : [];
	return [said.used(count), ...last];
}
