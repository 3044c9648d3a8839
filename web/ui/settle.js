// A time in which nothing can be clicked, so that a click that was meant for something else does
// not confirm what has just appeared.

const SETTLE_MS = 700;
const STEP_MS = 50;

/**
 * Makes what it is given usable once it has been on the screen, in a window with the focus, for a
 * moment.
 * @param {HTMLElement} element
 */
export function settling(element) {
	element.inert = true;
	/** @type {number | null} */
	let since = null;
	let wasShown = false;
	const timer = setInterval(() => {
		if (wasShown && !element.isConnected) return clearInterval(timer);
		wasShown ||= element.isConnected;
		if (!wasShown || !document.hasFocus()) since = null;
		else since ??= performance.now();
		if (since === null || performance.now() - since < SETTLE_MS) return;
		element.inert = false;
		clearInterval(timer);
	}, STEP_MS);
	return element;
}
