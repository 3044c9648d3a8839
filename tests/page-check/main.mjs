// Checks the approvers' page in Chromium, against a gateway with data: `make page-check`. Prints
// tables, and ends with 1 if anything was found.

import { parseArgs } from "node:util";
import { Browser } from "./browser.mjs";
import { Gateway } from "./gateway.mjs";
import { lookWith } from "./looks.mjs";
import { table } from "./table.mjs";
import { begin, walk } from "./walk.mjs";
import { which } from "./which.mjs";

const { values: options } = parseArgs({
	options: {
		binary: { type: "string", default: "target/debug/countersign" },
		tools: { type: "string", default: "target/page-check" },
		browser: { type: "string", default: "chromium" },
		only: { type: "string" },
		pictures: { type: "string" },
	},
});
const PARTS = ["views", "live", "speed", "lighthouse"];
const wanted = options.only?.split(",") ?? PARTS;
const unknown = wanted.filter((part) => !PARTS.includes(part));
if (unknown.length > 0)
	throw new Error(
		`--only: ${unknown.join(", ")}: not one of ${PARTS.join(", ")}`,
	);

/** The problems, one line each. @type {string[]} */
const found = [];
const tools = new URL(`${options.tools}/`, `file://${process.cwd()}/`).pathname;
const gateway = await Gateway.start(which(options.binary));
let browser = null;
try {
	browser = await Browser.start(tools, which(options.browser));
	let device = null;
	if (wanted.includes("views")) {
		const views = await lookWith(tools, options.pictures ?? null, found);
		device = await walk(gateway, browser, views.look);
		console.log(table("Views: violations", views.rows));
	}
	device ??= await begin(gateway, browser);
	for (const part of wanted.filter((one) => one !== "views")) {
		const { run } = await import(`./${part}.mjs`);
		console.log(await run({ gateway, browser, device, tools, found }));
	}
} finally {
	await browser?.stop();
	await gateway.stop();
}
for (const line of found) console.log(`FOUND ${line}`);
console.log(
	found.length === 0
		? "page-check: nothing found"
		: `page-check: ${found.length} found`,
);
process.exitCode = found.length === 0 ? 0 : 1;
