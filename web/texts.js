// Every text that a person reads, with those about requests and problems in `texts/`.
// `texts/language.js` chooses the language.

import { count } from "./texts/count.js";
import { translate } from "./texts/language.js";
import { notificationTexts } from "./texts/notifications.js";
import { problemTexts } from "./texts/problems.js";
import { requestTexts } from "./texts/requests.js";
import { signInTexts } from "./texts/signin.js";

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
		`${count(n, "request waits", "requests wait")}`,
	title: (/** @type {string} */ view, /** @type {number} */ waiting) =>
		`${waiting ? `(${waiting}) ` : ""}${view} – Countersign`,
	loading: "Loading …",
	cancel: "Cancel",
	close: "Close",
	copy: "Copy",
	copied: "Copied",
	notCopied:
		"The browser does not allow copying here. Select the text and copy it yourself.",
	tryAgain: "Try again",
	defect: {
		title: "Something is wrong with this page",
		text: "An unexpected error occurred. Load it again; if that does not help, tell your gateway’s operator.",
		reload: "Load again",
	},
	noSuchPage: {
		title: "There is no such page",
		text: "The link may be incomplete. Copy all of it, from start to end.",
		action: "Go to the inbox",
	},

	connection: {
		offline:
			"Offline. What you see may be out of date; it catches up by itself.",
		refused:
			"The gateway no longer accepts this device’s credential. Ask for a new invitation, then log out in the settings and join again.",
		waiting: "This device is not in force yet: another device has to add it.",
		finish: "Show how",
		revoked:
			"This device was revoked, so it cannot decide. Log out, and join again.",
		settings: "Settings",
	},

	welcome: {
		title: "Decide what your agents may do",
		lead: "Countersign shows you what an agent wants to do before it does it. You approve or reject with a key that stays in this browser.",
		field: "Invitation link",
		hint: "Your administrator sends it to you. It works once, for 24 hours.",
		placeholder: "https://…/#/join/…",
		action: "Continue",
		joinFirst:
			"The link you opened is for a browser that has joined. Join here first, then open it again.",
		points: [
			[
				"lock",
				"Requests are encrypted for your devices. The gateway cannot read them.",
			],
			["check", "Only your signature counts, for exactly what you were shown."],
			["devices", "Lost a phone? Revoke it from any other device of yours."],
		],
	},
	join: {
		title: "Join Countersign",
		lead: "This browser creates its own keys. They never leave it.",
		name: "Name of this device",
		nameHint: "You will see it in the list of your devices.",
		action: "Join",
		joining: "Creating keys and joining …",
		already: (/** @type {string} */ id) =>
			`This browser has joined as ${id} already.`,
		alreadyHint:
			"To use the new invitation here, log out first. This gives up the keys that this browser has.",
		toInbox: "Go to the inbox",
		toSettings: "Go to the settings",
		done: "You have joined",
		defaultName: (
			/** @type {string} */ browser,
			/** @type {string} */ system,
		) => `${browser} on ${system}`,
		aBrowser: "Browser",
		aComputer: "computer",
		notApprover: {
			title: "This invitation is not for an approver",
			text: "It made a credential for a program. Keep this key now: it is shown only once, and this page does not store it.",
			key: "API key",
		},
	},
	enrol: {
		title: "Add this device",
		lead: "You have a device already. Open this link there, or scan it with its camera, and confirm that it shows the same name and id.",
		name: "Name",
		id: "Id",
		link: "Link of this device",
		qrLabel: "QR code with the link of this device",
		noQr: "The link is too long for a QR code. Copy it to the other device.",
		waiting: "Waiting for the other device …",
		terminal: "In a terminal: countersign devices add LINK",
		valid: "Link valid until",
		expired: "The link has expired.",
		renew: "Make a new link",
		done: "This device is in force now",
	},

	pair: {
		title: "Pair an agent",
		lead: "On the agent’s machine run `countersign pair`. It prints a link, a QR code and a short code.",
		how: "How to pair",
		byLink: "Link",
		byCamera: "Camera",
		byCode: "Short code",
		linkField: "Pairing link",
		linkHint: "The safest way: the link proves who is at the other end.",
		codeField: "Short code",
		codeHint:
			"Eight letters and digits. You compare fifteen digits afterwards.",
		action: "Pair",
		opened: "An agent asks to be paired",
		openedText:
			"The link proves that it is from this agent. Pair only if you started this yourself, or expect it. The agent can then ask you for approvals.",
		agentId: "Agent",
		label: "Name, as its machine says",
		known: "This agent is paired with this device already, with the same key.",
		otherKeyTitle: "You know this agent with another key",
		otherKeyText:
			"The owner of the new key takes its place: requests with the old key no longer open here. This is right only if the agent was set up anew.",
		replace:
			"The agent was set up anew. Replace the key that this device knows.",
		reading: "Reading the link …",
		pairing: "Pairing …",
		done: (/** @type {string} */ who) => `Paired with ${who}`,
		doneText: "Its requests appear in your inbox. Nothing else is needed.",
		toAgent: "Show the agent",
		compareTitle: "Compare these digits",
		compareText:
			"An agent offers to pair. Its screen must show the same fifteen digits; until you have compared them, the name is only what the gateway says.",
		same: "They are the same",
		differ: "They differ",
		comparing: "Computing the digits …",
		aborted:
			"Not paired. If the digits differed, someone may be interfering: do not pair over this gateway again before you know why.",
		notNow: "Not now",
	},
	camera: {
		start: "Scan a QR code",
		label: "Picture of the camera",
		aim: "Point the camera at the QR code.",
		missing:
			"This browser cannot read QR codes. Scan it with the phone’s camera app, which opens the link here, or paste the link.",
		denied:
			"The camera cannot be used. Allow it in the browser’s settings for this page, or paste the link.",
		other: "This QR code has another kind of link.",
	},

	inbox: {
		title: "Inbox",
		filter: "Filter",
		filterLabel: "Filter requests",
		noMatch: "No request matches.",
		more: "There are more requests. They appear as you decide.",
		ended: "Just ended",
		left: (/** @type {string} */ who, /** @type {string} */ state) =>
			`${state}: a request from ${who}`,
		arrived: (/** @type {string} */ who, /** @type {string} */ kind) =>
			`New request: ${kind} from ${who}`,
		unpairedEmpty: {
			title: "Pair your first agent",
			text: "An agent asks you only after you have paired it with this device. It takes a minute.",
			action: "Pair an agent",
		},
		empty: {
			title: "Nothing waits for you",
			text: "Requests of your agents appear here by themselves. To try it, run on an agent’s machine:",
			command: "countersign run -- echo hello",
		},
	},
	who: {
		nobody: "unknown",
		asGatewaySays: "as the gateway says",
		notPaired: "not paired with this device",
	},
	kinds: {
		"command.review": "Command",
		"patch.review": "Patch",
		"plan.review": "Plan",
		"task.review": "Task",
		"checkpoint.review": "Checkpoint",
		tool: "Tool call",
		other: "Request",
		unknown: "Unreadable request",
	},
	headline: {
		patch: (/** @type {string[]} */ files) =>
			files.length ? files.join(", ") : "Patch",
		tool: (/** @type {string} */ tool) => tool,
	},
	time: {
		none: "no time given",
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
		deciding: "Sending …",
		decided: "Decided",
		delivered: "Delivered",
		expired: "Expired",
		withdrawn: "Withdrawn",
		cancelled: "Cancelled",
	},
	verdicts: { approve: "Approved", reject: "Rejected" },

	...requestTexts,
	signIn: signInTexts,
	problems: problemTexts,

	agents: {
		title: "Agents",
		pair: "Pair an agent",
		online: "Online",
		offline: "Offline",
		unknown: "Not seen yet",
		seen: "Last seen",
		empty: {
			title: "No agent is paired",
			text: "Run `countersign pair` on the agent’s machine, then open its link here or scan its QR code.",
			action: "Pair an agent",
		},
		sessions: "Sessions",
		noSessions:
			"No session yet. A session appears here with its first request.",
		snapshots: "Snapshots",
		since: "Since",
		updated: "Updated",
		ended: "Ended",
		sessionStates: {
			running: "Running",
			idle: "Idle",
			waiting: "Waiting",
			ended: "Ended",
			error: "Error",
			paused: "Paused",
		},
		paired: "Paired",
		introducedBy: "Introduced by",
		host: "Host",
		workspace: "Workspace",
		repo: "Repository",
		id: "Id",
		how: "Connection",
		transports: {
			websocket: "WebSocket",
			sse: "event stream",
			poll: "polling",
		},
		reported: "Reported by the agent, as the gateway says.",
		prompt: "Write to this agent",
		promptField: "Message",
		promptHint:
			"Only this agent can read it. It gets it at its next step, and decides what to do with it.",
		promptSession: "For the session",
		anySession: "Any session",
		send: "Send",
		sending: "Sending …",
		promptReason: (/** @type {string} */ reason) =>
			` Reason, as the gateway says: ${reason}`,
		promptStates: {
			queued: "Sent. The agent has not taken it yet.",
			delivered: "Delivered to the agent.",
			rejected: "The agent did not accept it.",
			error: "The agent could not use it.",
			expired: "It expired before the agent took it.",
		},
		unpair: "Unpair",
		unpairTitle: (/** @type {string} */ who) => `Unpair ${who}?`,
		unpairText:
			"Its requests can then no longer be opened or approved on this device. You can pair it again at any time.",
		unpaired: (/** @type {string} */ who) => `${who} is no longer paired`,
		gone: {
			title: "This agent is not paired",
			text: "Perhaps it was unpaired on this device.",
			action: "All agents",
		},
	},

	history: {
		title: "History",
		lead: "Decisions that this device made or saw. They are kept in this browser only.",
		empty: {
			title: "Nothing decided yet",
			text: "Your decisions appear here. You can save each one as a file that proves it.",
			action: "Go to the inbox",
		},
		byOther: (/** @type {string} */ device) => `on device ${device}`,
		filterLabel: "Filter history",
		more: "Show older",
		save: "Save as a file",
		saved: (/** @type {string} */ name) => `Saved as ${name}`,
		saveHint:
			"The file has the request in plain. Check it anywhere with: countersign verify FILE",
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
		noMatch: "Nothing matches.",
	},

	devices: {
		title: "Devices",
		lead: "Each browser or terminal you decide with has keys of its own. Any of them may decide.",
		add: "Add a device",
		standings: {
			own: "This device",
			trusted: "Active",
			unverified: "Not verified",
			revoked: "Revoked",
			ended: "Ended by the gateway",
		},
		added: "Added",
		by: "by",
		revokedAt: "Revoked",
		itself: "itself",
		former: (/** @type {number} */ n) =>
			count(n, "former device", "former devices"),
		unverifiedTitle: "A device is not verified",
		unverifiedText:
			"No device trusted here has added it. If you do not know it, revoke it.",
		revoke: "Revoke",
		revokeTitle: (/** @type {string} */ name) => `Revoke ${name}?`,
		addedStays: (/** @type {string} */ name, /** @type {string} */ id) =>
			`It has added ${name} (${id}), which stays in force. If you do not know that device, revoke it too.`,
		revokeText:
			"This is for ever. Agents refuse its decisions within a minute.",
		revokeOwnText:
			"This is the device you are using. It can then no longer decide, and this cannot be undone.",
		revoked: (/** @type {string} */ name) => `${name} was revoked`,
		addTitle: "Add a device",
		addLead:
			"On the new device open another invitation from your administrator, or sign in. It then shows a QR code and a link.",
		linkField: "Link of the new device",
		linkHint: "Or scan its QR code.",
		continue: "Continue",
		compareTitle: "Is this your new device?",
		compareText:
			"Its screen must show the same name and id. After this it can decide for you.",
		confirm: "Yes, add it",
		deny: "No",
		adding: "Adding …",
		addedDone: (/** @type {string} */ name) => `${name} was added`,
		addedText:
			"Agents accept it within a minute. It can also open their requests once they know it.",
		done: "Done",
		id: "Id",
		name: "Name",
	},

	settings: {
		title: "Settings",
		identity: "This device",
		approver: "Approver",
		tenant: "Tenant",
		name: "Name",
		id: "Id",
		joined: "Joined",
		appearance: "Appearance",
		theme: "Theme",
		themes: { system: "Automatic", light: "Light", dark: "Dark" },
		keyboard: "Keyboard",
		keyboardText: "All of it works without a mouse.",
		showKeys: "Show the keys",
		logout: "Log out",
		logoutText:
			"Removes keys, credential and history from this browser. To use it again, you need a new invitation.",
		logoutTitle: "Log out on this browser?",
		logoutRevoke:
			"Also revoke this device, so that its signature no longer counts anywhere",
		logoutLast:
			"If this is your only device, an administrator has to reset your devices before you can join again.",
		logoutAction: "Log out",
		loggedOut: "Logged out. This browser keeps none of your data.",
		about: "About",
		aboutText:
			"This page came from your gateway and runs in your browser. Requests are decrypted and decisions are signed here.",
	},

	help: {
		title: "Keys",
		keys: [
			["j", "Next request"],
			["k", "Previous request"],
			["Enter", "Open"],
			["a", "Approve (in a request)"],
			["r", "Reject (in a request)"],
			["/", "Filter, or find in a request"],
			["u", "Back to the inbox"],
			["g i", "Inbox"],
			["g a", "Agents"],
			["g h", "History"],
			["g d", "Devices"],
			["g s", "Settings"],
			["?", "These keys"],
		],
	},
};

/**
 * The part of the texts that a translation may replace.
 * @template T
 * @typedef {T extends (...args: any[]) => any ? T : T extends object ? { [K in keyof T]?: PartOf<T[K]> } : T} PartOf
 */
/** @typedef {PartOf<typeof texts>} Translation */

await translate(texts);
