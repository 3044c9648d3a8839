// Loads the page again if files of its version are missing: while a gateway is upgraded, another
// node may not have them. Its own name is the same in every version.

const TRIES = "countersign-reloads";
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

const app = document.querySelector('script[src$="app.js"]');
app?.addEventListener("load", () => sessionStorage.removeItem(TRIES));
app?.addEventListener("error", () => {
	const tries = Number(sessionStorage.getItem(TRIES));
	sessionStorage.setItem(TRIES, String(tries + 1));
	setTimeout(
		() => location.reload(),
		Math.min(FIRST_PAUSE_MS * 2 ** tries, LONGEST_PAUSE_MS),
	);
});
