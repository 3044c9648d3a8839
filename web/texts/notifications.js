// The texts about notifications.

export const notificationTexts = {
	title: "Notifications",
	on: "You’ll get a notification on this device when a request arrives, even while the page is closed.",
	off: "Get a notification on this device when a request arrives, even while the page is closed. It never contains the request itself.",
	failing: (/** @type {string} */ why) =>
		`The last notification didn’t get through: ${why}. Countersign keeps trying. If this doesn’t go away, turn notifications off and on.`,
	turnOn: "Turn on",
	turnOff: "Turn off",
	test: "Send a test",
	tested:
		"A test is on its way. If it doesn’t appear, check your system’s notification settings for this browser.",
	turnedOn: "Notifications are on",
	turnedOff: "Notifications are off",
	/** Shown while the page is closed. `sw.js` has them too, in case it cannot read these. */
	notices: {
		waiting: "A request is waiting for your decision.",
		test: "Notifications work on this device.",
		changed: "Open this page once to keep getting notifications.",
		approve: "Approve…",
		reject: "Reject…",
	},
	/** Why this device gets none. */
	hindrances:
		/** @type {Record<import('../core/types.js').NotificationHindrance, (values: Record<string, any>) => string>} */ ({
			unsupported: () =>
				"This browser can’t show notifications here. Some browsers don’t allow them in a private window or before the page is installed.",
			denied: () =>
				"This browser blocks notifications from this page. Allow them in the browser’s settings for this site, then reload the page.",
			dismissed: () =>
				"You didn’t answer the browser’s question, so nothing has changed.",
			insecure: () =>
				"Notifications only work if the page was loaded over https.",
			homeScreen: () =>
				"On an iPhone or iPad, first add this page to the home screen (Share, then “Add to Home Screen”) and open it from there.",
			gateway: (v) =>
				`This gateway doesn’t send notifications${v.reason ? `: ${v.reason}` : ""}. Ask its operator.`,
			service: () =>
				"The browser’s push service didn’t answer. Check your connection; some browsers and networks block it.",
			failed: (v) => `The test didn’t get through: ${v.cause}.`,
		}),
};

/** @param {Record<string, any>} values */
export function hindranceText(values) {
	const hindrance =
		/** @type {import('../core/types.js').NotificationHindrance} */ (
			values.hindrance
		);
	const { hindrances } = notificationTexts;
	return (hindrances[hindrance] ?? hindrances.unsupported)(values);
}
