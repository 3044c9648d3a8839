// Every text that a person reads, with those in `texts/`, in English. `texts/language.js` puts another
// language in their place.

import { agentTexts } from "./texts/agents.js";
import { count } from "./texts/count.js";
import { inboxTexts } from "./texts/inbox.js";
import { translate } from "./texts/language.js";
import { notificationTexts } from "./texts/notifications.js";
import { problemTexts } from "./texts/problems.js";
import { requestTexts } from "./texts/requests.js";
import { signInTexts } from "./texts/signin.js";
import { teamTexts } from "./texts/teams.js";

export const texts = {
	notifications: notificationTexts,
	product: "Countersign",
	skip: "Skip to content",
	mainNavigation: "Main",
	nav: {
		inbox: "Inbox",
		agents: "Agents",
		history: "History",
		devices: "Devices",
		settings: "Settings",
	},
	waitingBadge: (/** @type {number} */ n) =>
		`${count(n, "request waiting", "requests waiting")}`,
	title: (/** @type {string} */ view, /** @type {number} */ waiting) =>
		`${waiting ? `(${waiting}) ` : ""}${view} – Countersign`,
	loading: "Loading…",
	cancel: "Cancel",
	close: "Close",
	copy: "Copy",
	copied: "Copied",
	notCopied:
		"This browser doesn’t allow copying here. Select the text and copy it yourself.",
	tryAgain: "Try again",
	defect: {
		title: "Something went wrong",
		text: "Reload the page. If that doesn’t help, tell your gateway’s operator.",
		reload: "Reload",
	},
	noSuchPage: {
		title: "Page not found",
		text: "The link may be incomplete. Copy all of it and try again.",
		action: "Go to the inbox",
	},

	connection: {
		offline:
			"Offline. This page may be out of date and updates when the gateway is back.",
		refused:
			"The gateway no longer accepts this device’s credential. Ask for a new invitation, then log out in Settings and join again.",
		waiting: "Approve this device from one you already use.",
		finish: "Show how",
		revoked:
			"This device was revoked, so it can’t decide. Log out and join again.",
		settings: "Settings",
	},

	welcome: {
		title: "Decide what your agents may do",
		lead: "See what an agent wants to do before it does it. You approve or reject with a key that never leaves this browser.",
		field: "Invitation link",
		hint: "Your administrator sends you this link. It works once and expires after 24 hours.",
		placeholder: "https://…/#/join/…",
		action: "Continue",
		joinFirst:
			"The link you opened needs a browser that has joined. Join first, then open it again.",
		points: [
			[
				"lock",
				"Requests are encrypted for your devices. The gateway can’t read them.",
			],
			[
				"check",
				"Only your signature counts, and only for what you were shown.",
			],
			["devices", "Lost a phone? Revoke it from any of your other devices."],
		],
	},
	join: {
		title: "Join Countersign",
		lead: "This browser creates its own keys. They never leave it.",
		name: "Device name",
		nameHint: "It identifies this device in your list.",
		action: "Join",
		joining: "Creating keys and joining…",
		already: (/** @type {string} */ id) =>
			`This browser has already joined as ${id}.`,
		alreadyHint:
			"To use the new invitation here, log out first. That deletes this browser’s keys.",
		toInbox: "Go to the inbox",
		toSettings: "Go to the settings",
		done: "You’ve joined",
		defaultName: (
			/** @type {string} */ browser,
			/** @type {string} */ system,
		) => `${browser} on ${system}`,
		aBrowser: "Browser",
		aComputer: "computer",
		notApprover: {
			title: "This invitation isn’t for an approver",
			text: "It created a credential for a program. Copy this key now: it’s shown only once, and this page doesn’t store it.",
			key: "API key",
		},
	},
	enrol: {
		title: "Add this device",
		lead: "Open this link on a device you already use, or scan it with that device’s camera. Confirm there if the name and ID match.",
		name: "Name",
		id: "ID",
		link: "This device’s link",
		qrLabel: "QR code of this device’s link",
		noQr: "The link is too long for a QR code. Copy it to the other device.",
		waiting: "Waiting for the other device…",
		terminal: "Or in a terminal: countersign devices add LINK",
		valid: "Valid until",
		expired: "This link has expired.",
		renew: "Create a new link",
		done: "This device is ready",
		confirmTitle: "Confirm on your other device",
		confirmLead:
			"It now shows this device. Confirm there if the name and digits match.",
		digits: "Digits",
	},

	pair: {
		title: "Pair an agent",
		lead: "On the agent’s machine, run `countersign pair`. It prints a link, a QR code and a short code.",
		how: "How to pair",
		byLink: "Link",
		byCamera: "Camera",
		byCode: "Short code",
		linkField: "Pairing link",
		linkHint: "The safest way: the link proves who’s at the other end.",
		codeField: "Short code",
		codeHint:
			"Eight letters and digits. You’ll compare fifteen digits afterwards.",
		action: "Pair",
		opened: "An agent wants to pair",
		openedText:
			"The link proves it’s from this agent. Pair only if you started this yourself or expected it. The agent can then ask you for approvals.",
		agentId: "Agent",
		label: "Name (unverified)",
		known:
			"This device is already paired with this agent and has the same key.",
		otherKeyTitle: "This agent’s key has changed",
		otherKeyText:
			"The new key replaces the old one, and requests with the old key no longer open here. Continue only if the agent was set up again.",
		replace: "The agent was set up again. Replace its key on this device.",
		reading: "Reading the link…",
		pairing: "Pairing…",
		done: (/** @type {string} */ who) => `Paired with ${who}`,
		doneText:
			"Its requests will appear in your inbox. There’s nothing else to do.",
		toAgent: "Show agent",
		compareTitle: "Compare these digits",
		compareText:
			"An agent wants to pair. Its screen must show the same fifteen digits. Until you’ve compared them, its name is unverified.",
		same: "They match",
		differ: "They don’t match",
		comparing: "Computing the digits…",
		aborted:
			"Not paired. If the digits didn’t match, someone may be interfering: don’t pair through this gateway again until you know why.",
		notNow: "Not now",
		operators: "Who works with this agent? (optional)",
		operatorsHint:
			"Approver IDs, with commas between them. Where a request wants somebody else’s approval, these people can’t approve it.",
		team: "Team (optional)",
		teamHint: "The members of the team are asked, not you alone.",
		onlyMe: "Only me",
		nobody: "Nobody works with it. It runs by itself.",
	},
	camera: {
		start: "Scan a QR code",
		label: "Camera view",
		aim: "Point the camera at the QR code.",
		missing:
			"This browser can’t use a camera here. Scan the code with your phone’s camera app, which opens the link here, or paste the link.",
		denied:
			"The camera isn’t available. Allow it for this page in the browser’s settings, or paste the link.",
		other: "That QR code is for something else.",
	},

	inbox: {
		title: "Inbox",
		filter: "Filter",
		filterLabel: "Filter requests",
		noMatch: "No requests match.",
		more: "There are more requests. They’ll appear as you decide.",
		ended: "Just ended",
		earlier: (/** @type {number} */ n, /** @type {string[]} */ names) =>
			`${count(n, "request was", "requests were")} sent before this device was added.${
				names.length > 0
					? ` Decide ${n === 1 ? "it" : "them"} on ${names.join(" or ")}.`
					: ""
			}`,
		left: (/** @type {string} */ who, /** @type {string} */ state) =>
			`${state}: a request from ${who}`,
		arrived: (/** @type {string} */ who, /** @type {string} */ kind) =>
			`New request: ${kind} from ${who}`,
		unpairedEmpty: {
			title: "Pair your first agent",
			text: "Agents can ask you once they’re paired with this device. It takes a minute.",
			action: "Pair an agent",
		},
		empty: {
			title: "You’re all caught up",
			text: "New requests from your agents appear here. To try it, run this on an agent’s machine:",
			command: "countersign run -- echo hello",
		},
	},
	who: {
		nobody: "unknown",
		asGatewaySays: "unverified",
		notPaired: "not paired with this device",
	},
	kinds: {
		"command.review": "Command",
		"patch.review": "Patch",
		"plan.review": "Plan",
		"task.review": "Task",
		"checkpoint.review": "Checkpoint",
		tool: "Tool call",
		question: "Question",
		other: "Request",
		unknown: "Unreadable request",
	},
	time: {
		none: "no deadline",
		expired: "expired",
		left: (/** @type {string} */ time) => `${time} left`,
		days: (/** @type {number} */ n) => count(n, "day", "days"),
		hours: (/** @type {number} */ n) => `${n} h`,
		ago: {
			now: "just now",
			minutes: (/** @type {number} */ n) => `${n} min ago`,
			hours: (/** @type {number} */ n) => `${n} h ago`,
			days: (/** @type {number} */ n) => `${count(n, "day", "days")} ago`,
		},
	},
	states: {
		pending: "Waiting",
		deciding: "Sending…",
		decided: "Decided",
		delivered: "Delivered",
		expired: "Expired",
		withdrawn: "Withdrawn",
		cancelled: "Cancelled",
	},
	verdicts: { approve: "Approved", reject: "Rejected" },

	...inboxTexts,
	...requestTexts,
	signIn: signInTexts,
	teams: teamTexts,
	problems: problemTexts,
	agents: agentTexts,

	history: {
		title: "History",
		lead: "Decisions this device made or saw. They’re kept only in this browser.",
		empty: {
			title: "No decisions yet",
			text: "Your decisions appear here. You can save each one as a file that proves it.",
			action: "Go to the inbox",
		},
		byOther: (/** @type {string} */ device) => `on device ${device}`,
		filterLabel: "Filter history",
		more: "Show older",
		save: "Save as a file",
		saved: (/** @type {string} */ name) => `Saved as ${name}`,
		saveHint:
			"The file contains the request, unencrypted. Check it anywhere with: countersign verify FILE",
		unverified: "not verified",
		scopes: {
			once: "this request",
			timebox: "for a time",
			session: "for the session",
		},
		validUntil: "Valid until",
		scope: "Scope",
		decision: "Decision",
		device: "Device",
		noMatch: "No decisions match.",
		olderUses: "Older uses aren’t listed.",
	},

	devices: {
		title: "Devices",
		lead: "Each browser or terminal you decide with has its own keys. Any of them can decide.",
		add: "Add a device",
		standings: {
			own: "This device",
			trusted: "Active",
			unverified: "Not verified",
			revoked: "Revoked",
			ended: "Removed by the gateway",
		},
		added: "Added",
		by: "by",
		revokedAt: "Revoked",
		itself: "itself",
		former: (/** @type {number} */ n) =>
			count(n, "former device", "former devices"),
		unverifiedTitle: "A device isn’t verified",
		unverifiedText:
			"None of your trusted devices added it. If you don’t know it, revoke it.",
		revoke: "Revoke",
		revokeTitle: (/** @type {string} */ name) => `Revoke ${name}?`,
		addedStays: (/** @type {string} */ name, /** @type {string} */ id) =>
			`It added ${name} (${id}), which stays active. If you don’t know that device, revoke it too.`,
		revokeText:
			"This can’t be undone. Agents refuse its decisions within a minute.",
		revokeOwnText:
			"You’re using this device. It will no longer be able to decide. This can’t be undone.",
		revoked: (/** @type {string} */ name) => `${name} was revoked`,
		addTitle: "Add a device",
		addLead: "Scan this code with the new device, or open the link there.",
		qrLabel: "QR code with the link for the new device",
		offerLink: "Link for the new device",
		offerWaiting: "Waiting for the new device…",
		otherWay: "The new device already shows a link",
		otherWayLead:
			"Use this if you joined there with an invitation or signed in.",
		signInLead:
			"Sign in on the new device. It then shows a QR code and a link.",
		digits: "Digits",
		compareDigits:
			"Its screen must show the same name and digits. Once added, it can decide for you.",
		rename: "Rename",
		renameTitle: (/** @type {string} */ name) => `Rename ${name}`,
		renameText:
			"Only this device shows the new name. Agents and your other devices keep the name it joined with.",
		joinedAs: (/** @type {string} */ name) => `Joined as ${name}`,
		save: "Save",
		linkField: "The new device’s link",
		linkHint: "Or scan its QR code.",
		continue: "Continue",
		compareTitle: "Is this your new device?",
		compareText:
			"Its screen must show the same name and ID. Once added, it can decide for you.",
		confirm: "Yes, add it",
		deny: "No",
		adding: "Adding…",
		addedDone: (/** @type {string} */ name) => `${name} was added`,
		addedText:
			"Agents accept it within a minute, and it can open the requests they send from then on.",
		done: "Done",
		id: "ID",
		name: "Name",
	},

	settings: {
		title: "Settings",
		identity: "This device",
		approver: "Approver",
		tenant: "Tenant",
		name: "Name",
		id: "ID",
		joined: "Joined",
		appearance: "Appearance",
		theme: "Theme",
		themes: { system: "Automatic", light: "Light", dark: "Dark" },
		language: "Language",
		languageAutomatic: "Automatic",
		keyboard: "Keyboard",
		keyboardText: "Everything works without a mouse.",
		showKeys: "Show shortcuts",
		logout: "Log out",
		logoutText:
			"Removes the keys, the credential and the history from this browser. To use it again, you’ll need a new invitation.",
		logoutTitle: "Log out of this browser?",
		logoutRevoke:
			"Also revoke this device, so its signature no longer counts anywhere",
		logoutLast:
			"If this is your only device, an administrator has to reset your devices before you can join again.",
		logoutAction: "Log out",
		loggedOut: "Logged out. None of your data is left in this browser.",
		about: "About",
		aboutText:
			"This page came from your gateway and runs in your browser. Requests are decrypted and decisions are signed here, not on the gateway.",
	},

	help: {
		title: "Keyboard shortcuts",
		keys: [
			["j", "Next request"],
			["k", "Previous request"],
			["Enter", "Open"],
			["a", "Approve (in a request)"],
			["r", "Reject (in a request)"],
			["x", "Select (in the inbox)"],
			["/", "Filter, or find in a request"],
			["u", "Back to the inbox"],
			["g i", "Inbox"],
			["g a", "Agents"],
			["g h", "History"],
			["g d", "Devices"],
			["g s", "Settings"],
			["?", "Show this list"],
		],
	},
};

/** @typedef {typeof texts} Translation */

await translate(texts);
