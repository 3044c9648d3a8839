// The texts about agents: their sessions, messages to them, pauses and permissions.

import { count } from "./count.js";

export const agentTexts = {
	title: "Agents",
	pair: "Pair an agent",
	online: "Online",
	offline: "Offline",
	unknown: "Not seen yet",
	seen: "Last seen",
	empty: {
		title: "No agents paired yet",
		text: "Run `countersign pair` on the agent’s machine, then open its link here or scan its QR code.",
		action: "Pair an agent",
	},
	sessions: "Sessions",
	noSessions: "No sessions yet. A session appears here with its first request.",
	snapshots: "Snapshots",
	since: "Since",
	updated: "Updated",
	ended: "Ended",
	paired: "Paired",
	introducedBy: "Introduced by",
	host: "Host",
	workspace: "Workspace",
	repo: "Repository",
	id: "ID",
	how: "Connection",
	transports: {
		websocket: "WebSocket",
		sse: "event stream",
		poll: "polling",
	},
	reported: "Reported by the agent through the gateway, and not verified.",
	prompt: "Message this agent",
	promptField: "Message",
	promptHint:
		"Only this agent can read it. It gets the message at its next step and decides what to do with it.",
	promptSession: "Session",
	anySession: "Any session",
	send: "Send",
	sending: "Sending…",
	promptReason: (/** @type {string} */ reason) =>
		` Reason (unverified): ${reason}`,
	promptStates: {
		queued: "Sent. The agent hasn’t picked it up yet.",
		delivered: "Delivered to the agent.",
		rejected: "The agent didn’t accept it.",
		error: "The agent couldn’t use it.",
		expired: "It expired before the agent picked it up.",
	},
	orders: {
		queued:
			"Sent. The agent’s machine confirms it when the agent makes its next call.",
		delivered: "Confirmed by the agent’s machine.",
		forged:
			"The gateway says it was delivered, but the agent’s machine hasn’t confirmed it. Someone may be interfering: tell your gateway’s operator.",
		rejected: "The agent’s machine refused it.",
		error: "The agent’s machine couldn’t do it.",
		expired: "It expired before the agent’s machine picked it up.",
	},
	pause: {
		title: "Pause this agent",
		hint: "While an agent is paused, anything it would ask you about is denied right away, and its permissions don’t apply.",
		until: (/** @type {string} */ time) =>
			`Paused from this device until ${time}.`,
		lasting: "For how long",
		lasts: [
			[900, "15 minutes"],
			[3600, "1 hour"],
			[28800, "8 hours"],
			[86400, "24 hours"],
		],
		action: "Pause",
		resume: "Resume",
	},
	permissions: {
		title: "Permissions",
		none: "This device knows of no active permissions. Those given on other devices are listed there.",
		given: "Given with",
		until: (/** @type {string} */ time) => `Valid until ${time}.`,
		session: (/** @type {string} */ time) =>
			`Valid until the session ends, at most until ${time}.`,
		unused: "Not used yet, as far as the agent’s machine has reported.",
		used: (/** @type {number} */ n) =>
			`Used ${count(n, "time", "times")} according to the agent’s machine`,
		last: "last",
		end: "End",
		ending: "You’ve ended this. The agent’s machine hasn’t confirmed it yet.",
	},
	unpair: "Unpair",
	unpairTitle: (/** @type {string} */ who) => `Unpair ${who}?`,
	unpairText:
		"You’ll no longer be able to open or approve its requests on this device. You can pair it again at any time.",
	unpairTeam: (/** @type {string} */ team) =>
		`This ends the pairing for all members of the team ${team}, not only for you. An owner can pair the agent with the team again.`,
	unpairMember: (/** @type {string} */ team) =>
		`You’ll no longer be able to open or approve its requests on this device. The team ${team} stays paired, so the agent still asks you: decide on another device.`,
	unpaired: (/** @type {string} */ who) => `${who} is no longer paired`,
	gone: {
		title: "This agent isn’t paired",
		text: "It may have been unpaired on this device.",
		action: "All agents",
	},
};
