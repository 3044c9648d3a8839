// Joining a team by the link of an invitation, and what people should know of a team.

import { texts } from "../texts.js";
import { el } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { markedName } from "../ui/marked.js";
import {
	busy,
	button,
	errorText,
	facts,
	linkButton,
	note,
	page,
	waiting,
} from "../ui/parts.js";
import { settling } from "../ui/settle.js";

/** @typedef {import('../core/types.js').TeamState} TeamState */
/** @typedef {import('../core/types.js').TeamInvitation} TeamInvitation */

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {import('../ui/view.js').View}
 */
export function view({ approver, args }) {
	const { title } = texts.teams;
	const element = el("div", null, waiting());
	const show = (/** @type {HTMLElement} */ shown) => {
		element.replaceChildren(shown);
		element.querySelector("h1")?.focus();
	};
	const done = (/** @type {TeamState} */ team) => {
		// The link has served, and its secret need not stay in the address. Links to the teams lead elsewhere.
		history.replaceState(null, "", "#/team");
		show(joined(team));
	};
	const back = { href: "#/teams", text: title };
	approver
		.teams((core, session) =>
			core.readTeamLink(session, `#/team/${args.join("/")}`),
		)
		.then(
			(invitation) => show(invited(invitation, done)),
			(thrown) => show(page(title, { back }, note("bad", errorText(thrown)))),
		);
	return { title, element };
}

/**
 * @param {TeamInvitation} invitation
 * @param {(team: TeamState) => void} done
 */
function invited({ team, accept }, done) {
	const { teams } = texts;
	const place = el("div", null);
	const go = button(teams.join, {
		kind: "primary",
		on: () =>
			busy(
				go,
				place,
				async () => {
					await accept();
					done(team);
				},
				teams.joining,
			),
	});
	return page(
		teams.invited,
		{},
		el(
			"div",
			{ class: "card card-body" },
			el("h2", null, markedName(team.name)),
			el("p", null, teams.joinText),
			teamFacts(team),
			place,
			el(
				"div",
				{ class: "row" },
				settling(go),
				linkButton(texts.pair.notNow, "#/inbox", "plain"),
			),
		),
	);
}

/** @param {TeamState} team */
function joined({ name }) {
	return el(
		"div",
		{ class: "card empty" },
		el("div", { class: "sign good" }, icon("check")),
		el("h1", { tabindex: "-1" }, texts.teams.asked),
		el("p", null, el("bdi", null, markedName(name))),
		el("p", null, texts.teams.askedText),
		el(
			"div",
			{ class: "row" },
			linkButton(texts.teams.title, "#/teams"),
			linkButton(texts.join.toInbox, "#/inbox", "primary"),
		),
	);
}

/**
 * The owners of a team, and the least that its rules demand.
 * @param {TeamState} team
 */
export function teamFacts({ teamId, seats, changes, minimum }) {
	const { teams, rule } = texts;
	const owners = seats.filter(({ isOwner }) => isOwner);
	const least = [
		teams.approvals(minimum.approvals),
		minimum.rejections < seats.length && teams.rejections(minimum.rejections),
		minimum.comment !== "none" && rule.comment[minimum.comment],
		minimum.separate && teams.separate,
	];
	return facts([
		[
			teams.owners,
			owners.map(({ approverId }) =>
				el("bdi", { class: "chip" }, markedName(approverId)),
			),
		],
		changes > 1 && [teams.changes, String(changes)],
		[teams.minimum, least.filter(Boolean).join("; ")],
		[teams.id, el("code", { class: "compare" }, teamId)],
	]);
}
