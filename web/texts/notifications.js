// The texts about notifications. Those that are shown while the page is closed are in `sw.js`.

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
};

/** @type {Record<string, (values: Record<string, any>) => string>} */
const words = {
	unsupported: () =>
		"This browser can’t show notifications here. Some browsers don’t allow them in a private window or before the page is installed.",
	denied: () =>
		"This browser blocks notifications from this page. Allow them in the browser’s settings for this site, then reload the page.",
	dismissed: () =>
		"You didn’t answer the browser’s question, so nothing has changed.",
	insecure: () => "Notifications only work if the page was loaded over https.",
	homeScreen: () =>
		"On an iPhone or iPad, first add this page to the home screen (Share, then “Add to Home Screen”) and open it from there.",
	gateway: (v) =>
		`This gateway doesn’t send notifications${v.reason ? `: ${v.reason}` : ""}. Ask its operator.`,
	service: () =>
		"The browser’s push service didn’t answer. Check your connection; some browsers and networks block it.",
	failed: (v) => `The test didn’t get through: ${v.cause}.`,
};

/** @type {(values: Record<string, any>) => string} */
export const hindranceText = (values) =>
	(words[String(values.hindrance)] ?? words.unsupported)(values);
