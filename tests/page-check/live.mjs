// Two devices at the same time: what happens on one is soon seen on the other; a page that nobody
// sees asks nothing; and one that was away catches up at once.

import { table } from "./table.mjs";
import { until } from "./wait.mjs";
import { open } from "./walk.mjs";

const ROUNDS = 3;
const LIMIT_MS = 1_000;
const CATCH_UP_MS = 2_000;
/** How long a page is watched while it should be quiet, and what it may ask for meanwhile. */
const QUIET_MS = 6_000;
const OFFLINE_CALLS = 12;
const PROBE_MS = 5_000;

export async function run({ gateway, browser, device, found }) {
	const second = await further(gateway, browser, device);
	const rows = [];
	const say = (what, figure, limit) => {
		rows.push({ what, figure: Math.round(figure), limit });
		if (figure > limit)
			found.push(`live, ${what}: ${Math.round(figure)}, more than ${limit}`);
	};
	const times = [];
	for (let round = 0; round < ROUNDS; round += 1)
		times.push(
			await decidedElsewhere(gateway, device, second, `Round ${round}`),
		);
	say(
		"ms until a decision is seen elsewhere",
		times.sort((one, other) => one - other)[Math.floor(ROUNDS / 2)],
		LIMIT_MS,
	);
	say(
		"ms until a withdrawn request leaves",
		await withdrawn(gateway, second),
		LIMIT_MS,
	);
	say("calls while hidden", await hidden(second), 0);
	say(
		"ms until a page that was hidden is current",
		await seenAgain(gateway, device, second),
		CATCH_UP_MS,
	);
	const away = await offline(gateway, device, second);
	say("calls while offline", away.calls, OFFLINE_CALLS);
	say("ms until a page that was offline is current", away.ms, CATCH_UP_MS);
	for (const text of second.complaints) found.push(`live: ${text}`);
	await second.context.close();
	return table("Live", rows);
}

/** A further device of the same approver, endorsed by the first. */
async function further(gateway, browser, device) {
	const second = await browser.device();
	await second.join(await gateway.invite());
	await second.see(".qr");
	const link = await second.page.$eval(
		".copy-field input",
		(input) => input.value,
	);
	await device.show(new URL(link).hash);
	await device.see(".compare");
	await device.press(".button.primary");
	await device.see(".sign.good");
	await second.gone(".qr");
	await second.show("#/inbox");
	await second.see("h1", "Inbox");
	await known(gateway, second);
	return second;
}

/**
 * Waits until enforcers encrypt for this device too: they read the list of devices once a minute.
 */
async function known(gateway, device) {
	await until(
		"a request that the further device can read",
		async () => {
			const asked = await gateway.ask("plan", "Is it known?");
			try {
				await device.see(".request-entry", "", PROBE_MS);
				return await device
					.see(".request-entry", "Is it known?", PROBE_MS)
					.then(
						() => true,
						() => false,
					);
			} finally {
				asked.stop();
				await asked.ended;
				await device.gone(".request-entry");
			}
		},
		120_000,
	);
}

/** When an entry has left the list, by the clock of this machine. */
function leaves(device, words) {
	return device.page.evaluate(
		(text) =>
			new Promise((resolve) => {
				const look = () => {
					if (
						[...document.querySelectorAll(".request-entry")].some((one) =>
							one.textContent.includes(text),
						)
					)
						requestAnimationFrame(look);
					else resolve(Date.now());
				};
				look();
			}),
		words,
	);
}

async function decidedElsewhere(gateway, device, second, words) {
	const asked = await gateway.ask("plan", words);
	await second.see(".request-entry", words);
	await open(device, words);
	const left = leaves(second, words);
	const decided = Date.now();
	await device.page.keyboard.press("a");
	await asked.ended;
	return (await left) - decided;
}

async function withdrawn(gateway, second) {
	const asked = await gateway.ask("plan", "To be withdrawn");
	await second.see(".request-entry", "To be withdrawn");
	const left = leaves(second, "To be withdrawn");
	asked.stop();
	await asked.ended;
	// The process has told the gateway when it ends.
	const ended = Date.now();
	return Math.max((await left) - ended, 0);
}

/** Makes a page believe that nobody sees it. */
function see(device, state) {
	return device.page.evaluate((now) => {
		Object.defineProperty(document, "visibilityState", {
			configurable: true,
			get: () => now,
		});
		document.dispatchEvent(new Event("visibilitychange"));
	}, state);
}

/** Calls of the gateway that a page makes in some seconds. */
async function callsOf(device) {
	let calls = 0;
	const count = (request) => {
		if (request.url().includes("/v1/")) calls += 1;
	};
	device.page.on("request", count);
	await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
	device.page.off("request", count);
	return calls;
}

async function hidden(second) {
	await see(second, "hidden");
	// Calls under way may end.
	await new Promise((resolve) => setTimeout(resolve, 1_000));
	return callsOf(second);
}

async function seenAgain(gateway, device, second) {
	const asked = await gateway.ask("plan", "While hidden");
	await device.show("#/inbox");
	await device.see(".request-entry", "While hidden");
	await open(device, "While hidden");
	await device.page.keyboard.press("a");
	await asked.ended;
	const left = leaves(second, "While hidden");
	const begun = Date.now();
	await see(second, "visible");
	return (await left) - begun;
}

async function offline(gateway, device, second) {
	await second.page.setOfflineMode(true);
	await second.see(".banner");
	const calls = await callsOf(second);
	const asked = await gateway.ask("plan", "While offline");
	await device.show("#/inbox");
	await device.see(".request-entry", "While offline");
	const begun = Date.now();
	await second.page.setOfflineMode(false);
	await second.see(".request-entry", "While offline");
	await second.gone(".banner");
	const ms = Date.now() - begun;
	asked.stop();
	await asked.ended;
	return { calls, ms };
}
