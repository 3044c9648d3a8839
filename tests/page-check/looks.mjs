// Looks at a view as it is on a phone and on a desktop, light and dark: axe's rules for WCAG 2.2
// AA, no scrolling to the side down to 320 px, targets of 24 px, nothing decisive covered; and a
// picture of each, if wanted.

import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { installed } from "./browser.mjs";

const SIZES = {
	phone: { width: 390, height: 844 },
	desktop: { width: 1280, height: 800 },
};
const NARROW = { width: 320, height: 640 };
const SCHEMES = ["light", "dark"];
const TAGS = [
	"wcag2a",
	"wcag2aa",
	"wcag21a",
	"wcag21aa",
	"wcag22aa",
	"best-practice",
];
const LEAST_TARGET_PX = 24;

export async function lookWith(tools, pictures, found) {
	const axe = await readFile(
		installed(tools).resolve("axe-core/axe.min.js"),
		"utf8",
	);
	if (pictures) await mkdir(pictures, { recursive: true });
	const rows = [];
	return {
		rows,
		async look(name, device) {
			const { page } = device;
			const counts = { name };
			const report = (where, text) => found.push(`${name}, ${where}: ${text}`);
			for (const [size, viewport] of Object.entries(SIZES)) {
				await page.setViewport(viewport);
				for (const scheme of SCHEMES) {
					await page.emulateMediaFeatures([
						{ name: "prefers-color-scheme", value: scheme },
					]);
					await settled(page);
					const where = `${size} ${scheme}`;
					const violations = await check(page, axe);
					counts[where] = violations.length;
					for (const text of violations) report(where, text);
					if (pictures) await picture(page, pictures, `${name} ${where}`);
				}
				for (const text of await targets(page, LEAST_TARGET_PX))
					report(size, text);
				for (const text of await overflow(page)) report(size, text);
			}
			await page.setViewport(NARROW);
			await page.emulateMediaFeatures([
				{ name: "prefers-color-scheme", value: "light" },
			]);
			await settled(page);
			const wide = await overflow(page);
			counts["320 px"] = wide.length;
			for (const text of wide) report("320 px", text);
			if (pictures) await picture(page, pictures, `${name} narrow`);
			await page.setViewport(SIZES.desktop);
			await page.emulateMediaFeatures([
				{ name: "prefers-color-scheme", value: "light" },
			]);
			await settled(page);
			for (const text of device.complaints.splice(0)) report("console", text);
			rows.push(counts);
		},
	};
}

/**
 * Two frames, since the first one may still be that of the size before, and the end of transitions.
 * Endless animations are not waited for.
 */
function settled(page) {
	return page.evaluate(async () => {
		await new Promise((resolve) =>
			requestAnimationFrame(() => requestAnimationFrame(resolve)),
		);
		const ending = document
			.getAnimations()
			.filter((one) => one.effect?.getTiming().iterations !== Infinity);
		await Promise.allSettled(ending.map((one) => one.finished));
	});
}

async function check(page, axe) {
	// Only the first time: the page stays the same.
	if (!(await page.evaluate(() => "axe" in globalThis)))
		await page.evaluate(axe);
	return page.evaluate(async (tags) => {
		const { violations } = await globalThis.axe.run(document, {
			runOnly: tags,
			resultTypes: ["violations"],
		});
		return violations.flatMap(({ id, help, nodes }) =>
			nodes.map(
				(node) =>
					`${id}: ${help}: ${node.target.join(" ")} (${node.any[0]?.message ?? ""})`,
			),
		);
	}, TAGS);
}

function overflow(page) {
	return page.evaluate(() => {
		const { scrollWidth, clientWidth } = document.documentElement;
		if (scrollWidth <= clientWidth) return [];
		const wide = [...document.querySelectorAll("body *")].filter(
			(one) =>
				one.checkVisibility() &&
				one.getBoundingClientRect().right > clientWidth + 1,
		);
		return [
			`scrolls to the side, ${scrollWidth} px: ${wide
				.slice(0, 3)
				.map((one) => `${one.tagName.toLowerCase()}.${one.className}`)
				.join(", ")}`,
		];
	});
}

function targets(page, least) {
	return page.evaluate(
		(px) =>
			[
				...document.querySelectorAll(
					"a, button, input, select, textarea, summary",
				),
			].flatMap((one) => {
				const { width, height } = one.getBoundingClientRect();
				const isInText =
					one.tagName === "A" && getComputedStyle(one).display === "inline";
				const label = one.closest("label")?.getBoundingClientRect();
				const isSmall =
					Math.min(label?.height ?? height, label?.width ?? width) < px;
				return one.checkVisibility() && !isInText && isSmall && width > 1
					? [
							`a target of ${Math.round(width)} × ${Math.round(height)} px: ${one.textContent.slice(0, 30) || one.className}`,
						]
					: [];
			}),
		least,
	);
}

async function picture(page, directory, name) {
	await page.screenshot({
		path: join(directory, `${name.replace(/[^a-z0-9]+/gi, "-")}.png`),
		optimizeForSpeed: true,
	});
}
