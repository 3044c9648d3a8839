// Lighthouse's judgement of the inbox, as on a phone and on a desktop.

import { installed } from "./browser.mjs";
import { table } from "./table.mjs";

/**
 * A phone is simulated with 1.6 Mbit/s over HTTP/1.1, since the page comes over plain HTTP here:
 * six files at a time.
 */
const CATEGORIES = {
	performance: 90,
	accessibility: 100,
	"best-practices": 100,
};
const FORMS = {
	phone: {},
	desktop: {
		formFactor: "desktop",
		screenEmulation: {
			mobile: false,
			width: 1280,
			height: 800,
			deviceScaleFactor: 1,
			disabled: false,
		},
		throttling: {
			rttMs: 40,
			throughputKbps: 10_240,
			cpuSlowdownMultiplier: 1,
			requestLatencyMs: 0,
			downloadThroughputKbps: 0,
			uploadThroughputKbps: 0,
		},
	},
};

export async function run({ gateway, device, tools, found }) {
	const { default: lighthouse } = await import(
		installed(tools).resolve("lighthouse")
	);
	const rows = [];
	await device.show("#/inbox");
	for (const [form, settings] of Object.entries(FORMS)) {
		const flags = {
			logLevel: "error",
			output: "json",
			onlyCategories: Object.keys(CATEGORIES),
			disableStorageReset: true,
			...settings,
		};
		const { lhr } = await lighthouse(
			`${gateway.page}/#/inbox`,
			flags,
			undefined,
			device.page,
		);
		const row = { what: form };
		for (const [name, least] of Object.entries(CATEGORIES)) {
			const score = Math.round((lhr.categories[name].score ?? 0) * 100);
			row[name] = score;
			if (score >= least) continue;
			const failed = lhr.categories[name].auditRefs
				.filter(
					({ id, weight }) => weight > 0 && (lhr.audits[id].score ?? 1) < 0.9,
				)
				.map(({ id }) => `${id} ${lhr.audits[id].displayValue ?? ""}`);
			found.push(
				`lighthouse, ${form}, ${name}: ${score}, less than ${least}: ${failed.join(", ")}`,
			);
		}
		for (const [name, id] of [
			["first paint", "first-contentful-paint"],
			["largest paint", "largest-contentful-paint"],
			["blocked", "total-blocking-time"],
			["shift", "cumulative-layout-shift"],
		]) {
			row[name] = lhr.audits[id].displayValue ?? "";
		}
		rows.push(row);
	}
	return table("Lighthouse: the inbox", rows);
}
