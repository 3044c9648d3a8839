// Every view of the page, in the order in which a person meets them. `look` is called in each.

import { COMMAND, DECEPTIVE, PATCH, PLAN, TOOL } from "./content.mjs";
import { until } from "./wait.mjs";

/**
 * @param {import('./gateway.mjs').Gateway} gateway
 * @param {import('./browser.mjs').Browser} browser
 * @param {(name: string, device: import('./browser.mjs').Device) => Promise<void>} look
 */
export async function walk(gateway, browser, look) {
	const device = await browser.device();
	await arrive(gateway, device, look);
	await pairing(gateway, device, look);
	await requests(gateway, device, look);
	await others(gateway, browser, device, look);
	return device;
}

/** A device that has joined and is paired, without looking around. */
export async function begin(gateway, browser) {
	const device = await browser.device();
	await device.join(gateway.link(gateway.ready.invitation));
	await device.see(".empty");
	await pair(gateway, device);
	return device;
}

async function pair(gateway, device, look = async () => {}) {
	const { link, ended } = await gateway.pair("build-bot");
	await device.show(new URL(link).hash);
	await device.see("h1", "An agent wants to pair");
	await look("pair, link opened", device);
	await device.press(".button.primary");
	await device.see(".sign.good");
	await look("paired", device);
	await ended;
}

/** Welcome, joining, and everything empty. */
async function arrive(gateway, device, look) {
	await device.go(gateway.page);
	await device.see("h1");
	await look("welcome", device);
	await device.go(`${gateway.page}/#/join/${"A".repeat(43)}`);
	await device.press('button[type="submit"]');
	await device.see(".note.bad");
	await look("join refused", device);
	await device.go(gateway.link(gateway.ready.invitation));
	await device.see('button[type="submit"]');
	await look("join", device);
	await device.press('button[type="submit"]');
	await device.see(".empty");
	await device.gone(".toast");
	await look("inbox, nothing paired", device);
	for (const name of ["agents", "history"]) {
		await device.show(`#/${name}`);
		await device.see(".empty");
		await look(`${name}, empty`, device);
	}
}

async function pairing(gateway, device, look) {
	await device.show("#/pair");
	await device.see("form");
	await look("pair by link", device);
	await device.press(".segments button:nth-child(2)");
	await look("pair by camera", device);
	const coded = await gateway.pair("release-bot");
	await device.press(".segments button:nth-child(3)");
	await look("pair by code", device);
	await device.type("input.code", coded.code);
	await device.press('button[type="submit"]');
	await device.see(".digits");
	await look("pair, digits", device);
	await device.press(".button.bad-quiet");
	await device.see(".note.warn");
	await coded.ended;
	await pair(gateway, device, look);
	await device.show("#/inbox");
	await device.see(".sample");
	await look("inbox, empty", device);
}

async function requests(gateway, device, look) {
	const withdrawn = await gateway.ask(
		"plan",
		"Upgrade the database on Friday.",
	);
	await device.see(".request-entry", "Upgrade");
	await open(device, "Upgrade");
	withdrawn.stop();
	await device.see(".outcome");
	await look("request, withdrawn", device);
	await gateway.askUnsealed();
	await gateway.ask("command", COMMAND);
	await gateway.ask("command", DECEPTIVE);
	await gateway.ask("patch", PATCH);
	await gateway.ask("plan", PLAN);
	await gateway.ask(null, TOOL);
	const choices = [
		"approve:staging:To staging",
		"approve:production:To production",
		"reject:no:Not today",
	];
	await gateway.ask(
		"task",
		"Release 2.4.0",
		choices.flatMap((choice) => ["--action", choice]),
	);
	await device.show("#/inbox");
	await until("all requests", () =>
		device.page.evaluate(
			() => document.querySelectorAll(".request-entry").length === 7,
		),
	);
	await look("inbox", device);
	for (const [name, words] of [
		["command", "git push"],
		["deceptive command", "set -e"],
		["plan", "Move settlement"],
		["tool call", "mcp__"],
		["choices", "Release"],
		["unreadable", "can’t be approved"],
	]) {
		await open(device, words);
		await look(`request, ${name}`, device);
	}
	await patch(device, look);
	await deciding(device, look);
}

/** Opens a request from the inbox. */
export async function open(device, words) {
	await device.show("#/inbox");
	await device.press(".request-entry", words);
	await device.see(".request .decision, .request .outcome");
	await device.gone(".decision[inert]");
}

async function patch(device, look) {
	await open(device, "invoice.rs");
	await look("request, patch", device);
	await device.press(".file-details summary");
	await device.see(".file-list button");
	await look("request, patch with its files", device);
	await device.press(".segments button", "Side by side");
	await device.see(".pair");
	await look("request, patch side by side", device);
	await device.press(".segments button", "Unified");
	await device.page.keyboard.press("/");
	await device.page.keyboard.type("rounded");
	await device.see(".found");
	await look("request, searching", device);
}

async function deciding(device, look) {
	await open(device, "git push");
	await device.page.keyboard.press("?");
	await device.see("dialog");
	await look("keys", device);
	await device.page.keyboard.press("Escape");
	await device.press(".decision .button.plain");
	await device.see("dialog");
	await device.press("dialog .radio", "Commands of this kind");
	await look("approve for longer", device);
	await device.page.keyboard.press("Escape");
	await device.gone("dialog");
	await device.page.keyboard.press("r");
	await device.see("dialog");
	await look("reject", device);
	await device.page.keyboard.type("Not on a Friday.");
	await device.press('dialog button[type="submit"]');
	await device.see(".outcome .steps .done:last-child");
	await look("request, rejected", device);
	await open(device, "Move settlement");
	await device.page.keyboard.press("a");
	await device.see(".outcome .steps .done:last-child");
	await look("request, approved", device);
	await device.show("#/inbox");
	await device.see(".section");
	await look("inbox, with what just ended", device);
}

async function others(gateway, browser, device, look) {
	for (const [name, selector] of [
		["agents", ".list"],
		["history", ".list"],
		["devices", ".entry"],
		["settings", ".card"],
		["device", "form"],
		["nowhere", ".empty"],
	]) {
		await device.show(`#/${name}`);
		await device.see(selector);
		await look(
			name === "device"
				? "add a device"
				: name === "nowhere"
					? "no such page"
					: name,
			device,
		);
	}
	await device.show("#/agents");
	await device.press(".list a");
	await device.see("textarea");
	await look("agent", device);
	await device.show("#/settings");
	await device.press(".button.bad-quiet");
	await device.see("dialog");
	await look("log out", device);
	await device.page.keyboard.press("Escape");
	const second = await browser.device();
	await second.join(await gateway.invite());
	await second.see(".qr");
	await look("join, a further device", second);
	const link = await second.page.$eval(
		".copy-field input",
		(input) => input.value,
	);
	await device.show(new URL(link).hash);
	await device.see(".compare");
	await look("add a device, compare", device);
	await device.press(".button.primary");
	await device.see(".sign.good");
	// Requests from before it was added are one line.
	await second.see(".details, .request-entry");
	await device.show("#/devices");
	await until("two devices", () =>
		device.page.evaluate(
			() => document.querySelectorAll(".entry").length === 2,
		),
	);
	await look("devices, two", device);
	await second.context.close();
	await device.show("#/inbox");
	await device.see(".request-entry");
	await device.page.setOfflineMode(true);
	await device.see(".banner");
	await look("offline", device);
	await device.page.setOfflineMode(false);
	await device.gone(".banner");
}
