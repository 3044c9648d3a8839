// The frame of every view: navigation, banner, the place for the view.

import { texts } from "../texts.js";
import { announcements } from "./announce.js";
import { el, fill } from "./dom.js";
import { brand, icon } from "./icons.js";

/** @typedef {'inbox' | 'agents' | 'history' | 'devices' | 'settings'} Tab */

/** @type {Tab[]} */
const TABS = ["inbox", "agents", "history", "devices", "settings"];

export class Shell {
	#badge = el("span", { class: "badge", hidden: true });
	#whoami = el("div", { class: "whoami" });
	/** @type {Map<Tab, HTMLAnchorElement>} */
	#links = new Map();
	banner = el("div", { class: "banner", role: "status", hidden: true });
	main = el("main", { class: "main", id: "main", tabindex: "-1" });

	constructor() {
		const items = TABS.map((tab) => {
			const link = el(
				"a",
				{ href: `#/${tab}` },
				icon(tab),
				texts.nav[tab],
				tab === "inbox" && this.#badge,
			);
			this.#links.set(tab, link);
			return el("li", null, link);
		});
		const skip = el(
			"a",
			{
				class: "skip",
				href: "#main",
				on: {
					click: (/** @type {Event} */ event) => {
						// The address belongs to the router.
						event.preventDefault();
						this.main.focus();
					},
				},
			},
			texts.skip,
		);
		const home = el(
			"a",
			{ class: "brand", href: "#/inbox" },
			brand(),
			texts.product,
		);
		const nav = el(
			"nav",
			{ class: "nav", "aria-label": texts.mainNavigation },
			home,
			el("ul", null, items),
			this.#whoami,
		);
		document.body.replaceChildren(
			skip,
			nav,
			this.banner,
			this.main,
			...announcements,
		);
	}

	/** @param {Tab | null} tab */
	mark(tab) {
		for (const [name, link] of this.#links) {
			if (name === tab) link.setAttribute("aria-current", "page");
			else link.removeAttribute("aria-current");
		}
		document.body.classList.toggle("bare", tab === null);
	}

	/** @param {number} waiting */
	count(waiting) {
		this.#badge.hidden = waiting === 0;
		fill(
			this.#badge,
			waiting > 99 ? "99+" : waiting,
			el("span", { class: "unseen" }, ` ${texts.waitingBadge(waiting)}`),
		);
	}

	/** @param {{ approverId: string, deviceName: string } | null} identity */
	identify(identity) {
		fill(
			this.#whoami,
			identity && [
				el("strong", null, identity.approverId),
				el("span", null, identity.deviceName),
			],
		);
	}

	/**
	 * @param {string | null} text
	 * @param {{ href: string, text: string } | null} [link]
	 */
	warn(text, link = null) {
		this.banner.hidden = text === null;
		fill(
			this.banner,
			text !== null && [
				icon("offline", "small"),
				el("span", null, text),
				link && el("a", { href: link.href }, link.text),
			],
		);
	}
}
