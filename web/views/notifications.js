// The part of the settings about notifications on this device.

import { visibleText } from "../core/visible.js";
import { hindranceText } from "../texts/notifications.js";
import { texts } from "../texts.js";
import { toast } from "../ui/announce.js";
import { el } from "../ui/dom.js";
import { busy, button, errorText, note, waiting } from "../ui/parts.js";

/**
 * @param {import('../core/approver.js').Approver} approver
 * @returns {HTMLElement}
 */
export function notificationSettings(approver) {
	const place = el("div", { class: "stack" }, waiting());
	void show(approver, place);
	return place;
}

/**
 * @param {import('../core/approver.js').Approver} approver
 * @param {HTMLElement} place
 */
async function show(approver, place) {
	try {
		const found = await approver.notifications();
		place.replaceChildren(...describe(approver, place, found));
	} catch (thrown) {
		place.replaceChildren(el("p", { class: "quiet" }, errorText(thrown)));
	}
}

/**
 * @param {import('../core/approver.js').Approver} approver
 * @param {HTMLElement} place
 * @param {import('../core/types.js').Notifications} found
 * @returns {HTMLElement[]}
 */
function describe(approver, place, found) {
	const { notifications } = texts;
	if (found.state === "hindered") {
		return [
			el(
				"p",
				{ class: "quiet" },
				hindranceText({
					hindrance: found.hindrance,
					reason: visibleText(found.reason),
				}),
			),
		];
	}
	const problems = el("div");
	/** @type {(text: string, kind: string, done: string, action: () => Promise<void>) => HTMLElement} */
	const control = (text, kind, done, action) => {
		const one = button(text, {
			kind,
			on: () =>
				void busy(one, problems, async () => {
					await action();
					toast(done);
					await show(approver, place);
				}),
		});
		return one;
	};
	if (found.state === "off") {
		const on = control(
			notifications.turnOn,
			"primary small",
			notifications.turnedOn,
			() => approver.notifyHere(),
		);
		return [
			el("p", { class: "quiet" }, notifications.off),
			el("div", { class: "row" }, on),
			problems,
		];
	}
	const { notificationId, failure } = found;
	const off = control(
		notifications.turnOff,
		"small",
		notifications.turnedOff,
		() => approver.silenceHere(),
	);
	const test = control(notifications.test, "small", notifications.tested, () =>
		approver.testNotification(notificationId),
	);
	const failing =
		failure === null
			? []
			: [note("warn", notifications.failing(visibleText(failure)))];
	return [
		el("p", { class: "quiet" }, notifications.on),
		...failing,
		el("div", { class: "row" }, test, off),
		problems,
	];
}
