// Chromium, and one approver's device in it.

import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "./wait.mjs";

const ARGUMENTS = [
	"--disable-gpu",
	"--disable-quic",
	"--no-first-run",
	"--disable-background-networking",
	"--disable-component-update",
	"--disable-sync",
	"--accept-lang=en-US",
];

/** Resolves packages that npm has installed under `target`. */
export function installed(tools) {
	return createRequire(join(tools, "package.json"));
}

export class Browser {
	static async start(tools, executablePath) {
		const { default: puppeteer } = await import(
			installed(tools).resolve("puppeteer-core")
		);
		const browser = new Browser();
		browser.profile = await mkdtemp(join(tmpdir(), "page-check-browser-"));
		browser.chromium = await puppeteer.launch({
			executablePath,
			userDataDir: browser.profile,
			headless: true,
			// Chromium refuses to run as root with its sandbox.
			args: [
				...ARGUMENTS,
				...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
			],
		});
		return browser;
	}

	get port() {
		return Number(new URL(this.chromium.wsEndpoint()).port);
	}

	/** A device with a storage of its own. */
	async device() {
		const context = await this.chromium.createBrowserContext();
		return Device.open(context);
	}

	async stop() {
		await this.chromium.close();
		await rm(this.profile, { recursive: true, force: true });
	}
}

export class Device {
	/** @type {string[]} */
	complaints = [];

	static async open(context) {
		const device = new Device();
		device.context = context;
		device.page = await context.newPage();
		device.page.on("pageerror", (error) =>
			device.complaints.push(String(error)),
		);
		device.page.on("console", (message) => {
			// The network's failures are part of the check, and the page cannot suppress the
			// browser's messages about them.
			const isNetwork =
				/^(Failed to load resource|WebSocket connection to)/.test(
					message.text(),
				);
			if (message.type() === "error" && !isNetwork)
				device.complaints.push(message.text());
		});
		await device.page.setViewport({ width: 1280, height: 800 });
		return device;
	}

	/** Loads the page, also if only what follows `#` is new. */
	async go(url) {
		await this.page.goto("about:blank");
		await this.page.goto(url, { waitUntil: "load" });
	}

	/** Another view of the page that is open. */
	async show(hash) {
		await this.page.evaluate((to) => {
			location.hash = to;
		}, hash);
	}

	/** Waits until a selector matches something visible, if `text` is given with that text. */
	async see(selector, text = "", within = undefined) {
		try {
			await until(
				`${selector} ${text}`,
				() =>
					this.page.evaluate(
						(wanted, words) =>
							[...document.querySelectorAll(wanted)].some(
								(one) =>
									one.checkVisibility() && one.textContent.includes(words),
							),
						selector,
						text,
					),
				within,
			);
		} catch (error) {
			// biome-ignore lint/performance/useDomNodeTextContent: hidden text would mislead.
			const shown = await this.page.evaluate(() => document.body.innerText);
			throw new Error(`${error.message}; the page shows:\n${shown}`);
		}
	}

	async gone(selector) {
		return until(`no ${selector}`, () =>
			this.page.evaluate(
				(wanted) =>
					![...document.querySelectorAll(wanted)].some((one) =>
						one.checkVisibility(),
					),
				selector,
			),
		);
	}

	/** Presses what has this text, as a person would: it must be there and enabled. */
	async press(selector, text = "") {
		await until(`${selector} ${text}`, async () => {
			const found = await this.page.evaluateHandle(
				(wanted, words) =>
					[...document.querySelectorAll(wanted)].find(
						(one) =>
							one.checkVisibility() &&
							one.textContent.includes(words) &&
							!one.closest("[inert]") &&
							!one.disabled,
					) ?? null,
				selector,
				text,
			);
			// It fails if the element is replaced meanwhile.
			await found.asElement()?.click();
			return found.asElement() !== null;
		});
	}

	async type(selector, text) {
		await this.see(selector);
		await this.page.type(selector, text);
	}

	async join(link) {
		await this.go(link);
		await this.press('button[type="submit"]');
	}
}
