// The teams of this person: their members, and who stands in. Owners change them in a terminal.

import { texts } from "../texts.js";
import { toast } from "../ui/announce.js";
import { dateTime } from "../ui/clock.js";
import { confirmDialog, openDialog } from "../ui/dialog.js";
import { el, fill } from "../ui/dom.js";
import { waitingLine } from "../ui/expiring.js";
import { icon } from "../ui/icons.js";
import { markedName, visibleText } from "../ui/marked.js";
import {
	busy,
	button,
	copyField,
	empty,
	facts,
	field,
	note,
	page,
	problemNote,
	waiting,
} from "../ui/parts.js";
import { settling } from "../ui/settle.js";
import { teamFacts } from "./team.js";

/** @typedef {import('../core/approver.js').Approver} Approver */
/** @typedef {import('../core/problem.js').Problem} Problem */
/** @typedef {import('../core/types.js').Candidate} Candidate */
/** @typedef {import('../core/types.js').ListedTeam} ListedTeam */
/** @typedef {import('../core/types.js').TeamSeat} TeamSeat */

const DAYS = [1, 3, 7, 14, 30];
const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {import('../ui/view.js').View}
 */
export function view({ approver }) {
	const { title, lead, none } = texts.teams;
	const content = el("div", { class: "stack" }, waiting());
	const load = async (/** @type {Problem[]} */ problems = []) => {
		try {
			const teams = await approver.teams((core, session) =>
				core.listTeams(session),
			);
			fill(
				content,
				problems.map(problemNote),
				teams.length === 0
					? empty("agents", none.title, none.text)
					: teams.map((listed) => card(approver, listed, load)),
			);
		} catch (thrown) {
			fill(
				content,
				[...problems, thrown].map(problemNote),
				button(texts.tryAgain, { on: () => load(problems) }),
			);
		}
	};
	load();
	const back = { href: "#/settings", text: texts.settings.title };
	return { title, element: page(title, { lead, back }, content) };
}

/**
 * @param {Approver} approver
 * @param {ListedTeam} listed
 * @param {(problems?: Problem[]) => void} changed
 */
function card(approver, listed, changed) {
	const { team, isForked, isGone, isOnSeat } = listed;
	const own = team.seats.find(
		({ approverId }) => approverId === approver.identity.approverId,
	);
	const standing = isOnSeat
		? null
		: texts.teams[own && !isGone ? "notOnSeat" : "notMember"];
	return el(
		"section",
		{ class: "card" },
		el("div", { class: "card-head" }, el("h2", null, markedName(team.name))),
		el(
			"div",
			{ class: "card-body" },
			isForked && note("bad", texts.teams.forked),
			standing && note("info", standing),
			isOnSeat && !isForked && staleDevices(approver, listed, changed),
			isGone
				? forgetControl(approver, listed, changed)
				: [
						teamFacts(team),
						el("ul", { class: "list" }, team.seats.map(seatEntry)),
					],
			isOnSeat && own && !isForked
				? standInControls(approver, listed, own, changed)
				: null,
		),
	);
}

/**
 * @param {Approver} approver
 * @param {ListedTeam} listed
 * @param {() => void} changed
 */
function forgetControl(approver, { team }, changed) {
	const { forget, forgetTitle, forgetText } = texts.teams;
	const ask = () =>
		confirmDialog(
			{
				title: forgetTitle(visibleText(team.name)),
				text: forgetText,
				action: forget,
				kind: "bad",
			},
			acting(async () => {
				await approver.teams((core, session) =>
					core.forgetTeam(session, team.teamId),
				);
				changed();
			}),
		);
	return el(
		"div",
		{ class: "row" },
		button(forget, { kind: "small bad-quiet", on: ask }),
	);
}

/**
 * Acts for a dialog, which closes if that went well.
 * @param {() => Promise<void>} act
 * @returns {(place: HTMLElement, control: HTMLButtonElement) => Promise<boolean>}
 */
function acting(act) {
	return async (place, control) => {
		let isDone = false;
		await busy(control, place, async () => {
			await act();
			isDone = true;
		});
		return isDone;
	};
}

/** @param {TeamSeat} seat */
function seatEntry({ approverId, isOwner, devices, standIn }) {
	return el(
		"li",
		null,
		el(
			"div",
			{ class: "entry" },
			el("span", { class: "sign plain" }, icon("devices")),
			el(
				"div",
				{ class: "entry-main" },
				el(
					"div",
					{ class: "row tight-row" },
					el("span", { class: "entry-title" }, markedName(approverId)),
					isOwner && el("span", { class: "chip accent" }, texts.teams.owner),
				),
				el(
					"div",
					{ class: "entry-line" },
					devices.map(({ name }) => el("bdi", null, markedName(name))),
				),
				standIn &&
					el(
						"div",
						{ class: "entry-line" },
						el("bdi", null, markedName(standIn.approverId)),
						texts.teams.standsIn(
							dateTime(standIn.from),
							dateTime(standIn.until),
						),
					),
			),
		),
	);
}

/**
 * The team may not know that devices were added or revoked.
 * @param {Approver} approver
 * @param {ListedTeam} listed
 * @param {(problems: Problem[]) => void} changed
 */
function staleDevices(approver, { missing, revoked }, changed) {
	if (missing.length + revoked.length === 0) return null;
	const place = el("div", null);
	const drops = new Set(revoked.map(({ deviceId }) => deviceId));
	const go = button(texts.teams.update, {
		kind: "small",
		on: () =>
			busy(go, place, async () => {
				const update = approver.seats((core, session) =>
					drops.size === 0
						? core.addToSeats(session, missing)
						: core.clearSeats(session, drops),
				);
				changed(await update);
			}),
	});
	return note(
		"warn",
		texts.teams.stale(
			missing.map(({ name }) => visibleText(name)),
			revoked.map(({ name }) => visibleText(name)),
		),
		place,
		el("div", { class: "row" }, go),
	);
}

/**
 * @param {Approver} approver
 * @param {ListedTeam} listed
 * @param {TeamSeat} own
 * @param {() => void} changed
 */
function standInControls(approver, { team }, own, changed) {
	const { endStandIn, endTitle, endText, standInEnded } = texts.teams;
	const askToEnd = (/** @type {string} */ who) =>
		confirmDialog(
			{
				title: endTitle(visibleText(who)),
				text: endText,
				action: endStandIn,
				kind: "bad",
			},
			acting(async () => {
				await approver.seats((core, session) =>
					core.setStandIn(session, team.teamId, null),
				);
				toast(standInEnded);
				changed();
			}),
		);
	const { standIn } = own;
	const name = button(texts.teams.nameStandIn, {
		kind: "small",
		on: () => inviteDialog(approver, team.teamId, changed),
	});
	const end =
		standIn &&
		button(endStandIn, {
			kind: "small bad-quiet",
			on: () => askToEnd(standIn.approverId),
		});
	return el("div", { class: "row" }, team.standIns && !standIn && name, end);
}

/**
 * Asks who stands in and how long, shows the link for that person, and asks again once that person
 * has agreed.
 * @param {Approver} approver
 * @param {string} teamId
 * @param {() => void} changed
 */
function inviteDialog(approver, teamId, changed) {
	const { teams } = texts;
	const ending = new AbortController();
	const who = el("input", {
		class: "input",
		autocomplete: "off",
		autocapitalize: "none",
		spellcheck: "false",
		required: true,
	});
	const days = el(
		"select",
		{ class: "input" },
		DAYS.map((n) => el("option", { value: String(n) }, texts.time.days(n))),
	);
	const place = el("div", null);
	const go = button(teams.invite, { kind: "primary", type: "submit" });
	const body = el("div", { class: "stack" });
	const close = () =>
		el(
			"div",
			{ class: "dialog-actions" },
			button(texts.cancel, { on: () => dialog.close() }),
		);
	const invite = async () => {
		const offer = await approver.seats((core, session) =>
			core.inviteStandIn(session, teamId, who.value.trim()),
		);
		fill(
			body,
			el("p", { class: "quiet" }, teams.linkText),
			copyField(offer.link, teams.link),
			waitingLine(teams.waiting),
			close(),
		);
		offer.consent(ending.signal).then(
			(candidate) => candidate && fill(body, agreed(candidate)),
			(thrown) => fill(body, problemNote(thrown), close()),
		);
	};
	const agreed = (/** @type {Candidate} */ candidate) => {
		const told = el("div", null);
		const from = Date.now();
		const time = { from, until: from + Number(days.value) * DAY_MS };
		const confirm = button(teams.confirm, {
			kind: "primary",
			on: () =>
				busy(confirm, told, async () => {
					await approver.seats((core, session) =>
						core.setStandIn(session, teamId, candidate, time),
					);
					dialog.close();
					changed();
				}),
		});
		return [
			facts([
				[teams.standIn, el("bdi", null, markedName(candidate.approverId))],
				[
					teams.devices,
					candidate.devices.map(({ name, deviceId }) =>
						el(
							"div",
							null,
							el("bdi", null, markedName(name)),
							" ",
							el("code", null, deviceId),
						),
					),
				],
				[teams.time, texts.time.days(Number(days.value))],
			]),
			told,
			el(
				"div",
				{ class: "dialog-actions" },
				button(texts.cancel, { on: () => dialog.close() }),
				settling(confirm),
			),
		];
	};
	const submit = (/** @type {Event} */ event) => {
		event.preventDefault();
		busy(go, place, invite);
	};
	fill(
		body,
		el(
			"form",
			{ class: "stack", on: { submit } },
			el("p", { class: "quiet" }, teams.standInText),
			field(teams.standIn, who, teams.standInHint),
			field(teams.time, days),
			place,
			el(
				"div",
				{ class: "dialog-actions" },
				button(texts.cancel, { on: () => dialog.close() }),
				go,
			),
		),
	);
	const dialog = openDialog(teams.nameStandIn, () => [body]);
	dialog.addEventListener("close", () => ending.abort());
}
