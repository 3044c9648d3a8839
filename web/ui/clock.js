// Times as a person reads them, kept current by one timer.

import { visibleText } from "../core/visible.js";
import { pageLocale } from "../texts/language.js";
import { texts } from "../texts.js";
import { el } from "./dom.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const SOON = 2 * MINUTE;

/** @type {Map<HTMLElement, () => void>} */
const shown = new Map();

setInterval(() => {
	for (const [element, update] of shown) {
		if (element.isConnected) update();
		else shown.delete(element);
	}
}, 1000);

/**
 * @param {HTMLElement} element
 * @param {() => void} update
 */
function keepCurrent(element, update) {
	update();
	// It is not connected yet.
	setTimeout(() => shown.set(element, update));
	return element;
}

/** @param {number} ms */
function duration(ms) {
	if (ms >= 2 * DAY) return texts.time.days(Math.floor(ms / DAY));
	if (ms >= 2 * HOUR) return texts.time.hours(Math.floor(ms / HOUR));
	const seconds = Math.floor(ms / 1000);
	return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/**
 * How long a request still waits.
 * @param {string | null} until
 */
export function timeLeft(until) {
	const end = until === null ? NaN : Date.parse(until);
	const element = el("span", {
		class: "time-left",
		title: until === null ? undefined : dateTime(until),
	});
	return keepCurrent(element, () => {
		const left = end - Date.now();
		const text = Number.isNaN(left)
			? texts.time.none
			: left <= 0
				? texts.time.expired
				: texts.time.left(duration(left));
		if (element.textContent !== text) element.textContent = text;
		element.classList.toggle("soon", left < SOON);
	});
}

/** @param {string} at */
export function ago(at) {
	const time = Date.parse(at);
	const element = el("time", { datetime: at, title: dateTime(at) });
	return keepCurrent(element, () => {
		const past = Date.now() - time;
		const { now, minutes, hours, days } = texts.time.ago;
		const text =
			past < MINUTE
				? now
				: past < HOUR
					? minutes(Math.floor(past / MINUTE))
					: past < DAY
						? hours(Math.floor(past / HOUR))
						: days(Math.floor(past / DAY));
		if (element.textContent !== text) element.textContent = text;
	});
}

/**
 * A time in full, in the reader's own time zone.
 * @param {string} at
 */
export function dateTime(at) {
	const time = new Date(at);
	if (Number.isNaN(time.getTime())) return visibleText(at);
	return time.toLocaleString(pageLocale(), {
		dateStyle: "medium",
		timeStyle: "medium",
	});
}
