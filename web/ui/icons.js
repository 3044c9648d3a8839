// The icons: strokes on a grid of 24, in the colour of the text.

import { svg } from "./dom.js";

const PATHS = {
	inbox:
		"M4 13h4l1.5 3h5L16 13h4M4 13l2.5-8h11L20 13v5.5A1.5 1.5 0 0 1 18.5 20h-13A1.5 1.5 0 0 1 4 18.5z",
	agents:
		"M7 8h10a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2v-7a2 2 0 0 1 2-2zM12 8V4.5M9.5 12.5v1.5M14.5 12.5v1.5M2.5 12v3M21.5 12v3",
	history: "M4 12a8 8 0 1 0 2.6-5.9L4 8.5M4 4v4.5h4.5M12 8v4.5l3 1.8",
	devices:
		"M4 17V6.5A1.5 1.5 0 0 1 5.5 5h11A1.5 1.5 0 0 1 18 6.5V8M2.5 19.5H12M15.5 11h5a1 1 0 0 1 1 1v7.5a1 1 0 0 1-1 1h-5a1 1 0 0 1-1-1V12a1 1 0 0 1 1-1z",
	settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.8v4.4M9 14.8v4.4",
	command: "M5 7l5 5-5 5M12.5 17H19",
	patch: "M12 4v9M7.5 8.5h9M7.5 19h9",
	plan: "M9 6h11M9 12h11M9 18h11M4.5 6h.01M4.5 12h.01M4.5 18h.01",
	tool: "M14.5 6.5a4 4 0 0 1 5-1.3l-2.7 2.7 1.3 1.3 2.7-2.7a4 4 0 0 1-5.3 5L9 18a2.1 2.1 0 0 1-3-3l6.5-6.5a4 4 0 0 1 2-2z",
	other:
		"M8 4.5C6 4.5 6 6 6 8s0 3.5-2 4c2 .5 2 2 2 4s0 3.5 2 3.5M16 4.5c2 0 2 1.5 2 3.5s0 3.5 2 4c-2 .5-2 2-2 4s0 3.5-2 3.5",
	unknown: "M12 3.5l9 16H3zM12 10v4M12 16.8h.01",
	check: "M5 12.5l4.5 4.5L19 7.5",
	cross: "M6.5 6.5l11 11M17.5 6.5l-11 11",
	warning: "M12 3.5l9 16H3zM12 10v4M12 16.8h.01",
	info: "M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17zM12 11v5.5M12 7.8h.01",
	back: "M14.5 5.5L8 12l6.5 6.5",
	next: "M9.5 5.5L16 12l-6.5 6.5",
	down: "M6 9.5l6 6 6-6",
	up: "M6 14.5l6-6 6 6",
	plus: "M12 5v14M5 12h14",
	camera:
		"M4 8.5A1.5 1.5 0 0 1 5.5 7H8l1.5-2h5L16 7h2.5A1.5 1.5 0 0 1 20 8.5v8.5a1.5 1.5 0 0 1-1.5 1.5h-13A1.5 1.5 0 0 1 4 17zM12 9.5a3.2 3.2 0 1 1 0 6.4 3.2 3.2 0 0 1 0-6.4z",
	copy: "M9 8.5h9.5a1 1 0 0 1 1 1V19a1 1 0 0 1-1 1H9a1 1 0 0 1-1-1V9.5a1 1 0 0 1 1-1zM5 15.5V5a1 1 0 0 1 1-1h9.5",
	save: "M12 4v11M7.5 10.5L12 15l4.5-4.5M5 19.5h14",
	link: "M10 14a4 4 0 0 0 5.7 0l3-3A4 4 0 0 0 13 5.3l-1 1M14 10a4 4 0 0 0-5.7 0l-3 3A4 4 0 0 0 11 18.7l1-1",
	search: "M11 4.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM16 16l4 4",
	help: "M9.2 9.2a2.9 2.9 0 1 1 4.3 2.5c-1 .6-1.5 1.2-1.5 2.3M12 17h.01M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17z",
	clock: "M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17zM12 7.5v5l3 2",
	offline:
		"M4 4l16 16M8.5 15.5a5 5 0 0 1 6 -.4M5.5 12a9 9 0 0 1 4.2-2.3M14.2 9.7a9 9 0 0 1 4.3 2.3M12 19h.01",
	folder:
		"M3.5 7A1.5 1.5 0 0 1 5 5.5h4.5l2 2.5H19A1.5 1.5 0 0 1 20.5 9.5v8A1.5 1.5 0 0 1 19 19H5a1.5 1.5 0 0 1-1.5-1.5z",
	send: "M4 12l16-7.5-5 15-3.5-6zM11.5 13.5L20 4.5",
	pause: "M9 6v12M15 6v12",
	lock: "M7 11h10a1 1 0 0 1 1 1v7a1 1 0 0 1-1 1H7a1 1 0 0 1-1-1v-7a1 1 0 0 1 1-1zM8.5 11V8a3.5 3.5 0 0 1 7 0v3",
};

/** @typedef {keyof typeof PATHS} IconName */

/**
 * @param {IconName} name
 * @param {string} [extra]
 */
export function icon(name, extra = "") {
	const path = svg("path", { d: PATHS[name] });
	return svg(
		"svg",
		{
			class: `icon ${extra}`.trim(),
			viewBox: "0 0 24 24",
			"aria-hidden": "true",
		},
		path,
	);
}

/** The product's own mark. */
export function brand() {
	return svg(
		"svg",
		{ class: "brand-mark", viewBox: "0 0 512 512", "aria-hidden": "true" },
		svg("rect", { width: 512, height: 512, rx: 116, class: "brand-ground" }),
		svg("path", { d: "M118 372h276", class: "brand-line" }),
		svg("path", {
			d: "M128 226l86 88c42-96 96-152 172-196",
			class: "brand-tick",
		}),
	);
}
