// The texts about notifications. Those that are shown while the page is closed are in `sw.js`.

export const notificationTexts = {
	title: "Notifications",
	on: "This device tells you when a request waits, also while the page is closed.",
	off: "This device can tell you when a request waits, also while the page is closed. Notifications never include the request.",
	failing: (/** @type {string} */ why) =>
		`The last notification did not get through: ${why}. It is tried again. If this stays so, turn notifications off and on.`,
	turnOn: "Turn on",
	turnOff: "Turn off",
	test: "Send a test",
	tested:
		"A test is on its way. If it does not appear, look at your system’s settings for notifications of this browser.",
	turnedOn: "Notifications are on",
	turnedOff: "Notifications are off",
};

/** @type {Record<string, (values: Record<string, any>) => string>} */
const words = {
	unsupported: () =>
		"This browser cannot be notified. In a private window, or before the page is installed, some browsers do not allow it.",
	denied: () =>
		"This browser does not allow notifications of this page. Allow them in the browser’s settings for this site, then load the page again.",
	dismissed: () =>
		"The browser’s question was not answered, so nothing has changed.",
	insecure: () => "Notifications need a page that was loaded over https.",
	homeScreen: () =>
		"On iPhone and iPad, add this page to the home screen first (Share, then “Add to Home Screen”), and open it from there.",
	gateway: (v) =>
		`This gateway sends no notifications${v.reason ? `: ${v.reason}` : ""}. Ask its operator.`,
	service: () =>
		"The browser’s push service did not answer. Check the connection; some browsers and networks block it.",
	failed: (v) => `The test did not get through: ${v.cause}.`,
};

/** @type {(values: Record<string, any>) => string} */
export const hindranceText = (values) =>
	(words[String(values.hindrance)] ?? words.unsupported)(values);
