// Teams: joining one, its members, and standing in.

import { count } from "./count.js";

/** @type {(names: string[]) => string} */
const list = (names) => names.join(", ");

export const teamTexts = {
	title: "Teams",
	lead: "Members of a team approve requests together. Owners change a team in a terminal.",
	show: "Show teams",
	none: {
		title: "You’re not in a team",
		text: "An owner of a team invites you with a link. Open it here.",
	},
	invited: "You’re invited to a team",
	joinText:
		"If you join, agents of this team can ask you for approvals. Join only if you expected this invitation.",
	join: "Join",
	joining: "Joining…",
	asked: "You’ve accepted the invitation",
	askedText: "It counts once the person who invited you has confirmed it.",
	owners: "Owners",
	owner: "Owner",
	changes: "Owners needed for a change",
	minimum: "Each request needs",
	id: "ID",
	approvals: (/** @type {number} */ n) =>
		`at least ${count(n, "approval", "approvals")}`,
	rejections: (/** @type {number} */ n) =>
		`at most ${count(n, "rejection", "rejections")} to deny it`,
	separate: "nobody who works with the agent approves",
	notMember: "You have no seat in this team now.",
	forget: "Forget this team",
	forgetTitle: (/** @type {string} */ name) => `Forget the team ${name}?`,
	forgetText:
		"This browser then no longer shows it. To join again, you need a new invitation.",
	notOnSeat:
		"This device isn’t in the team, so it can’t approve for it. Open this page on another of your devices to add it.",
	forked:
		"There are two versions of this team that contradict each other, so it doesn’t count here. Someone may be interfering: tell its owners. They can invite you again.",
	stale: (/** @type {string[]} */ missing, /** @type {string[]} */ revoked) =>
		[
			missing.length > 0 && `Not in the team yet: ${list(missing)}.`,
			revoked.length > 0 && `Revoked, but still in the team: ${list(revoked)}.`,
		]
			.filter(Boolean)
			.join(" "),
	update: "Update the team",
	standsIn: (/** @type {string} */ from, /** @type {string} */ until) =>
		`stands in from ${from} to ${until}`,
	nameStandIn: "Name a stand-in",
	standInText:
		"For this time, this person decides on your seat too. It still counts once.",
	standIn: "Stand-in",
	time: "For",
	endStandIn: "End standing in",
	endTitle: (/** @type {string} */ who) => `End standing in by ${who}?`,
	endText:
		"This person can’t decide for you any more, and their approvals for open requests don’t count. To name a stand-in again, you need a new link.",
	standInEnded: "Your stand-in can’t decide any more",
	standInHint: "The person’s approver ID.",
	invite: "Create a link",
	link: "Link for your stand-in",
	linkText:
		"Send this link to your stand-in only, and keep this page open until it’s been accepted.",
	waiting: "Waiting for your stand-in to accept…",
	confirm: "Yes, this person stands in",
	devices: "Devices",
};
