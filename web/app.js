// Starts the page: opens what this browser keeps, then shows the view that the address names.

import { Approver } from "./core/approver.js";
import { loaded } from "./core/gateway.js";
import { isForOthers } from "./core/item.js";
import { asProblem, Problem } from "./core/problem.js";
import { texts } from "./texts.js";
import { announce } from "./ui/announce.js";
import { closeDialogs } from "./ui/dialog.js";
import { listenToKeys } from "./ui/keyboard.js";
import {
	button,
	emptyPage,
	errorText,
	linkButton,
	waiting,
} from "./ui/parts.js";
import { Shell } from "./ui/shell.js";
import { applyTheme } from "./ui/theme.js";

/** @typedef {import('./ui/view.js').View} View */
/** @typedef {import('./ui/view.js').Context} Context */

/**
 * @typedef {object} Route
 * @property {import('./ui/shell.js').Tab | null} tab
 * @property {boolean} [open] also for a browser that has not joined
 * @property {() => Promise<{ view: (context: any) => View | Promise<View> }>} load
 */

const JUDGE_AFTER_MS = 500;

/** @type {Record<string, Route>} */
const ROUTES = {
	welcome: { tab: null, open: true, load: () => import("./views/welcome.js") },
	join: { tab: null, open: true, load: () => import("./views/join.js") },
	signin: { tab: null, open: true, load: () => import("./views/signin.js") },
	pair: { tab: "agents", load: () => import("./views/pair.js") },
	device: { tab: "devices", load: () => import("./views/device.js") },
	inbox: { tab: "inbox", load: () => import("./views/inbox.js") },
	next: { tab: "inbox", load: () => import("./views/next.js") },
	request: { tab: "inbox", load: () => import("./views/request.js") },
	several: { tab: "inbox", load: () => import("./views/several.js") },
	agents: { tab: "agents", load: () => import("./views/agents.js") },
	agent: { tab: "agents", load: () => import("./views/agent.js") },
	history: { tab: "history", load: () => import("./views/history.js") },
	devices: { tab: "devices", load: () => import("./views/devices.js") },
	team: { tab: "settings", load: () => import("./views/team.js") },
	teams: { tab: "settings", load: () => import("./views/teams.js") },
	settings: { tab: "settings", load: () => import("./views/settings.js") },
};

class App {
	#shell = new Shell();
	/** @type {Approver | null} */
	#approver = null;
	/** @type {View | null} */
	#view = null;
	/** @type {(() => void)[]} */
	#subscriptions = [];
	/**
	 * Why this device does not count, if it does not.
	 * @type {Problem | 'waiting' | null}
	 */
	#standing = null;
	/**
	 * Whether a request is from before this device was added; null while that is not known.
	 * @type {((item: import('./core/types.js').Item) => boolean) | null}
	 */
	#isEarlier = null;
	/** @type {object | null} */
	#grouping = null;
	#turn = 0;
	#title = "";
	#answer = takeAnswer();

	async start() {
		window.addEventListener("hashchange", () => this.show());
		listenToKeys(
			() => this.#view?.keys ?? {},
			(hash) => this.go(hash),
		);
		this.#shell.main.append(waiting());
		/** @type {Approver | null} */
		let approver = null;
		try {
			approver = await Approver.open(place());
			if (approver) this.#adopt(approver);
		} catch (thrown) {
			this.#shell.mark(null);
			this.#fail(thrown);
			return;
		}
		await this.show();
		// Modules that the first view does not need load after it. A person who joins or signs in
		// meanwhile is judged then.
		if (approver) setTimeout(() => this.#judge(), JUDGE_AFTER_MS);
	}

	/** @param {Approver} approver */
	#adopt(approver) {
		this.#approver = approver;
		this.#shell.identify(approver.identity);
		this.#subscriptions = [
			approver.inbox.subscribe(() => this.#status()),
			// Here or in another tab.
			approver.isLoggedOut.subscribe((isLoggedOut) => {
				if (isLoggedOut) this.#leave();
			}),
		];
		approver.start();
	}

	#leave() {
		closeDialogs();
		for (const end of this.#subscriptions) end();
		this.#subscriptions = [];
		this.#approver = null;
		this.#standing = null;
		this.#forgetEarlier();
		this.#shell.identify(null);
		this.#shell.count(0);
		badge(0);
		this.#shell.warn(null);
		this.go("#/welcome", true);
	}

	async renewNotifications() {
		await this.#approver?.renewNotifications();
	}

	/** Whether this device is in force. Being offline says nothing about that. */
	async #judge() {
		const approver = this.#approver;
		try {
			const enrolment = await approver?.enrol();
			const isInForce = (enrolment?.state ?? "inForce") === "inForce";
			this.#standing = isInForce ? null : "waiting";
		} catch (thrown) {
			const isFinal =
				thrown instanceof Problem &&
				(thrown.code === "deviceRevoked" || thrown.code === "noDeviceInForce");
			this.#standing = isFinal ? thrown : null;
		}
		if (approver !== this.#approver) return;
		// It may be in force only now.
		this.#forgetEarlier();
		this.#status();
	}

	/**
	 * The requests that wait for this device. It cannot open those from before it was added.
	 * @param {import('./core/types.js').Item[]} items
	 */
	#countWaiting(items) {
		const isEarlier = this.#isEarlier ?? isForOthers;
		if (!this.#isEarlier && items.some(isForOthers)) void this.#group();
		return items.filter((item) => item.state === "pending" && !isEarlier(item))
			.length;
	}

	async #group() {
		const approver = this.#approver;
		if (this.#grouping || !approver) return;
		const mine = {};
		this.#grouping = mine;
		try {
			const { earlierRequests } = await loaded(import("./views/earlier.js"));
			const { isEarlier } = await earlierRequests(approver);
			if (mine !== this.#grouping) return;
			this.#isEarlier = isEarlier;
			this.#status();
		} catch (error) {
			// It is tried again when the inbox changes.
			asProblem(error);
		} finally {
			if (mine === this.#grouping) this.#grouping = null;
		}
	}

	#forgetEarlier() {
		this.#isEarlier = null;
		this.#grouping = null;
	}

	#status() {
		const inbox = this.#approver?.inbox.value;
		if (!inbox) return;
		const waits = this.#countWaiting(inbox.items);
		this.#shell.count(waits);
		badge(waits);
		document.title = texts.title(this.#title || texts.product, waits);
		const settings = { href: "#/settings", text: texts.connection.settings };
		const isSigningIn = location.hash.startsWith("#/signin");
		if (inbox.connection === "refused" && this.#approver?.isSignIn) {
			this.#shell.warn(isSigningIn ? null : texts.signIn.ended, {
				href: "#/signin",
				text: texts.signIn.again,
			});
		} else if (inbox.connection === "refused")
			this.#shell.warn(texts.connection.refused, settings);
		else if (this.#standing instanceof Problem)
			this.#shell.warn(texts.connection.revoked, settings);
		else if (inbox.connection === "offline")
			this.#shell.warn(texts.connection.offline);
		else if (
			this.#standing === "waiting" &&
			!location.hash.startsWith("#/join")
		)
			this.#shell.warn(texts.connection.waiting, {
				href: "#/join",
				text: texts.connection.finish,
			});
		else this.#shell.warn(null);
	}

	/**
	 * @param {string} hash
	 * @param {boolean} [replace]
	 */
	go(hash, replace = false) {
		if (location.hash === hash) this.show();
		else if (replace) location.replace(hash);
		else location.hash = hash;
	}

	/** @returns {{ route: Route | null, args: string[] }} */
	#address() {
		const [name, ...args] = location.hash
			.replace(/^#\/?/, "")
			.split("/")
			.map(decode);
		const known = Object.hasOwn(ROUTES, name || "inbox")
			? ROUTES[name || "inbox"]
			: null;
		if (!this.#approver && !known?.open)
			return { route: ROUTES.welcome, args: [name, ...args] };
		if (name === "agents" && args.length > 0)
			return { route: ROUTES.agent, args };
		return { route: known, args };
	}

	async show() {
		const turn = ++this.#turn;
		closeDialogs();
		const { route, args } = this.#address();
		this.#view?.dispose?.();
		this.#view = null;
		/** @type {Context} */
		const context = {
			approver: this.#approver,
			place: place(),
			args,
			go: (hash, replace) => this.go(hash, replace),
			joined: (approver) => {
				this.#adopt(approver);
				void this.#judge();
			},
			answer: () => {
				const answer = this.#answer;
				this.#answer = null;
				return answer;
			},
			enrolled: () => this.#judge(),
		};
		try {
			const loaded = route && (await route.load());
			const view = loaded && (await loaded.view(context));
			if (turn !== this.#turn) {
				view?.dispose?.();
				return;
			}
			this.#shell.mark(route?.tab ?? (this.#approver ? "inbox" : null));
			this.#present(view ?? missing());
		} catch (thrown) {
			if (turn === this.#turn) this.#fail(thrown);
		}
	}

	/** @param {View} view */
	#present(view) {
		this.#view = view;
		this.#title = view.title;
		document.title = texts.title(view.title, 0);
		this.#status();
		this.#shell.main.classList.toggle("wide", view.wide ?? false);
		// Of a phone's screen all is needed then. (No `:has` in CSS: it makes every change of a
		// long list slow.)
		document.body.classList.toggle("reading", view.wide ?? false);
		this.#shell.main.replaceChildren(view.element);
		window.scrollTo(0, 0);
		// Screen readers read the heading of the new view; the keyboard goes on from there.
		view.element.querySelector("h1")?.focus({ preventScroll: true });
		announce(view.title);
	}

	/** @param {unknown} thrown */
	#fail(thrown) {
		const again = button(texts.defect.reload, {
			kind: "primary",
			on: () => location.reload(),
		});
		this.#present({
			title: texts.defect.title,
			element: emptyPage(
				"unknown",
				texts.defect.title,
				errorText(thrown),
				again,
			),
		});
	}
}

/** @returns {View} */
function missing() {
	const { title, text, action } = texts.noSuchPage;
	return {
		title,
		element: emptyPage(
			"unknown",
			title,
			text,
			linkButton(action, "#/inbox", "primary"),
		),
	};
}

/**
 * On the icon of the installed page.
 * @param {number} waits
 */
function badge(waits) {
	// Zero removes it. Where nothing is installed, there is nothing to do.
	const { setAppBadge } = /** @type {any} */ (navigator);
	setAppBadge?.call(navigator, waits).catch(() => {});
}

/** @param {string} part */
function decode(part) {
	try {
		return decodeURIComponent(part);
	} catch {
		return part;
	}
}

/**
 * Takes the sign-in service's answer out of the page's address, and so out of the history.
 * @returns {URLSearchParams | null}
 */
function takeAnswer() {
	const answer = new URLSearchParams(location.search);
	if (!answer.has("state") || !(answer.has("code") || answer.has("error")))
		return null;
	history.replaceState(null, "", `${location.pathname}#/signin`);
	return answer;
}

/**
 * A page that is hosted elsewhere says where the gateway is.
 * @returns {import('./core/approver.js').Place}
 */
function place() {
	const named = document
		.querySelector('meta[name="countersign-gateways"]')
		?.getAttribute("content")
		?.split(/\s+/)
		.filter(Boolean);
	return named?.length ? { gateways: named } : {};
}

/** Loads the views that are otherwise loaded on demand. */
function loadAll() {
	return Promise.all([
		...Object.values(ROUTES).map((route) => route.load()),
		import("./views/inboxlist.js"),
		import("./views/rejectall.js"),
		import("./views/patch.js"),
		import("./views/plan.js"),
		import("./views/question.js"),
		import("./views/longer.js"),
		import("./core/syntax.js"),
	]);
}

applyTheme();
const app = new App();
app
	.start()
	.then(() => import("./keep.js"))
	.then(({ keepPage }) => keepPage(loadAll, texts.notifications.notices))
	.catch(console.warn)
	.then(() => app.renewNotifications())
	.catch(console.warn);
