// How fast the page is: its first load, and the largest patches from the click to the first screen,
// and while they are scrolled. Each figure is the median of several, since other programs run too.

import { cpus, loadavg } from "node:os";
import { LARGE } from "./content.mjs";
import { table } from "./table.mjs";
import { until } from "./wait.mjs";

/** More than an encrypted request can hold by default. */
const PATCH_BYTES = 2 << 20;
const ROUNDS = 5;
/** The text that the entries of these patches in the inbox share. */
const ENTRY = "part_";
/**
 * Milliseconds are those of a machine with nothing else to do; the heading of the table says how
 * busy this one was.
 */
const LIMITS = {
	bytes: 100 * 1024,
	interactive: 500,
	shown: 200,
	frame: 50,
	jump: 50,
	nodes: 5000,
};

export async function run({ gateway, device, found }) {
	const rows = [await firstLoad(gateway, device, found)];
	for (const [shape, make] of Object.entries(LARGE)) {
		const asked = await gateway.ask("patch", make(PATCH_BYTES));
		await device.show("#/inbox");
		await Promise.race([
			device.see(".request-entry", ENTRY),
			asked.ended.then((code) => {
				throw new Error(`asking ended with ${code}: ${asked.output()}`);
			}),
		]);
		rows.push(await large(device, shape, found));
		asked.stop();
		await asked.ended;
	}
	return table(
		`Speed: medians of ${ROUNDS} (load ${loadavg()[0].toFixed(1)} on ${cpus().length} processors)`,
		rows,
	);
}

/** Tells how many milliseconds the page's own thread has worked. */
async function threadTime(session) {
	await session.send("Performance.enable", { timeDomain: "threadTicks" });
	return async () =>
		(await session.send("Performance.getMetrics")).metrics.find(
			({ name }) => name === "TaskDuration",
		).value * 1000;
}

function median(values) {
	return [...values].sort((one, other) => one - other)[
		Math.floor(values.length / 2)
	];
}

/** From the address to an inbox that answers, with an empty cache. */
async function firstLoad(gateway, device, found) {
	const { page } = device;
	await page.setViewport({ width: 1280, height: 800 });
	const session = await page.createCDPSession();
	await session.send("Network.enable");
	await session.send("Network.setCacheDisabled", { cacheDisabled: true });
	await session.send("Network.setBypassServiceWorker", { bypass: true });
	const spent = await threadTime(session);
	const [sizes, times, work] = [[], [], []];
	for (let round = 0; round < ROUNDS; round += 1) {
		await page.goto("about:blank");
		const before = await spent();
		await page.goto(`${gateway.page}/#/inbox`);
		await page.waitForSelector("main h1");
		// The first view is shown, its listeners are there, and the browser is free to call them.
		// Later loading does not count.
		const shown = await page.evaluate(
			() =>
				new Promise((resolve) => {
					requestAnimationFrame(() =>
						setTimeout(() => {
							const entries = [
								...performance.getEntriesByType("navigation"),
								...performance.getEntriesByType("resource"),
							];
							const files = entries.filter(
								({ name }) => !name.includes("/v1/"),
							);
							resolve({
								at: performance.now(),
								bytes: files.reduce(
									(sum, entry) => sum + entry.encodedBodySize,
									0,
								),
							});
						}),
					);
				}),
		);
		times.push(shown.at);
		sizes.push(shown.bytes);
		work.push((await spent()) - before);
	}
	await session.detach();
	const row = {
		what: "first load",
		KiB: (median(sizes) / 1024).toFixed(0),
		"ms until shown": median(times).toFixed(0),
		"ms of work": median(work).toFixed(0),
	};
	if (median(sizes) > LIMITS.bytes)
		found.push(
			`speed: the first load has ${median(sizes)} bytes, more than ${LIMITS.bytes}`,
		);
	if (median(times) > LIMITS.interactive)
		found.push(
			`speed: interactive after ${median(times).toFixed(0)} ms, more than ${LIMITS.interactive}`,
		);
	return row;
}

async function large(device, shape, found) {
	const { page } = device;
	const times = [];
	for (let round = 0; round < ROUNDS; round += 1) {
		await device.show("#/inbox");
		await device.see(".request-entry", ENTRY);
		times.push(await page.evaluate(clickToPainted, ENTRY));
	}
	await until("the whole of it", () =>
		page.evaluate(() => document.querySelector(".patch-total") !== null),
	);
	const scrolled = await scrollThrough(page);
	const row = {
		what: shape,
		"ms until shown": median(times).toFixed(0),
		elements: scrolled.elements,
		"ms for the slowest frame while scrolling": scrolled.scroll.toFixed(0),
		"and for a jump": scrolled.jump.toFixed(0),
	};
	if (median(times) > LIMITS.shown)
		found.push(
			`speed, ${shape}: shown after ${median(times).toFixed(0)} ms, more than ${LIMITS.shown}`,
		);
	if (scrolled.scroll > LIMITS.frame)
		found.push(
			`speed, ${shape}: ${scrolled.scroll.toFixed(0)} ms for a frame while scrolling, more than ${LIMITS.frame}`,
		);
	if (scrolled.jump > LIMITS.jump)
		found.push(
			`speed, ${shape}: ${scrolled.jump.toFixed(0)} ms for a jump, more than ${LIMITS.jump}`,
		);
	if (scrolled.elements > LIMITS.nodes)
		found.push(`speed, ${shape}: ${scrolled.elements} elements`);
	return row;
}

/** Runs in the page: from the click on a request until its first lines are painted. */
function clickToPainted(words) {
	return new Promise((resolve) => {
		const entry = [...document.querySelectorAll(".request-entry")].find((one) =>
			one.textContent.includes(words),
		);
		let clicked = 0;
		entry.addEventListener(
			"click",
			() => {
				clicked = performance.now();
			},
			{ once: true },
		);
		const seen = new MutationObserver(() => {
			if (!document.querySelector(".patch .line")) return;
			seen.disconnect();
			// The task after the frame: it has been painted then.
			requestAnimationFrame(() => {
				const { port1, port2 } = new MessageChannel();
				port1.onmessage = () => resolve(performance.now() - clicked);
				port2.postMessage(null);
			});
		});
		seen.observe(document.body, { childList: true, subtree: true });
		entry.click();
	});
}

/**
 * Scrolls like a person in a hurry, and jumps. A frame's cost is measured as time of the page's
 * thread, which other programs do not make longer.
 */
async function scrollThrough(page) {
	const session = await page.createCDPSession();
	const spent = await threadTime(session);
	const steps = [
		...Array(150).fill(120),
		...Array(20).fill("jump"),
		...Array(40).fill(-400),
	];
	const longest = { scroll: 0, jump: 0 };
	let elements = 0;
	let before = await spent();
	for (const step of steps) {
		const count = await page.evaluate(scrollOnce, step);
		const now = await spent();
		const kind = step === "jump" ? "jump" : "scroll";
		longest[kind] = Math.max(longest[kind], now - before);
		elements = Math.max(elements, count);
		before = now;
	}
	await session.detach();
	return { ...longest, elements };
}

/** Runs in the page: one step, until it is painted. */
function scrollOnce(step) {
	scrollBy({
		top: step === "jump" ? document.documentElement.scrollHeight / 22 : step,
		behavior: "instant",
	});
	return new Promise((resolve) => {
		requestAnimationFrame(() =>
			setTimeout(() => resolve(document.getElementsByTagName("*").length)),
		);
	});
}
