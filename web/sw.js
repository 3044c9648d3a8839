// Keeps the page itself, so that it opens without a network, and shows notifications. Answers of
// the gateway are never kept here.

// `keep.js` has the same name.
const CACHE = "countersign-page";
/** Their names change with their content. */
const VERSIONED = /^page\/[0-9a-f]+\//;
/** The page starts after it, so the kept one is used; `keep.js` fetches it anew. */
const RELOAD = "reload.js";
const OTHERS = /^$|^(manifest\.webmanifest|icon[^/]*\.(svg|png))$/;

/**
 * TypeScript's types of workers exclude those of pages.
 * @type {any}
 */
const worker = self;

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (/** @type {any} */ event) =>
	event.waitUntil(worker.clients.claim()),
);

worker.addEventListener("fetch", (/** @type {any} */ event) => {
	const request = /** @type {Request} */ (event.request);
	const [address] = request.url.split(/[?#]/);
	const scope = /** @type {string} */ (worker.registration.scope);
	if (request.method !== "GET" || !address?.startsWith(scope)) return;
	const name = address.slice(scope.length);
	if (VERSIONED.test(name) || name === RELOAD)
		event.respondWith(keptFirst(request));
	else if (OTHERS.test(name)) event.respondWith(networkFirst(request));
});

/** @param {Request} request */
async function keptFirst(request) {
	const cache = await caches.open(CACHE);
	const kept = await cache.match(request, { ignoreVary: true });
	if (kept) return kept;
	const answer = await fetch(request);
	if (answer.ok) await cache.put(request, answer.clone());
	return answer;
}

/**
 * The network first, so that a new version of the page takes effect at once. The page itself says
 * when it has all its files and may be kept.
 * @param {Request} request
 */
async function networkFirst(request) {
	try {
		return await fetch(request);
	} catch (error) {
		const cache = await caches.open(CACHE);
		const kept = await cache.match(request, {
			ignoreSearch: true,
			ignoreVary: true,
		});
		if (kept) return kept;
		throw error;
	}
}

// A notification says that something waits, and nothing of it: the gateway knows no more, and a
// locked screen may be seen by others.

/** Until the page has said them in its own language; the same as in `texts/notifications.js`. */
const NOTICES = {
	waiting: "A request is waiting for your decision.",
	test: "Notifications work on this device.",
	changed: "Open this page once to keep getting notifications.",
	approve: "Approve…",
	reject: "Reject…",
};

/**
 * In the language of the page, which `keep.js` leaves here.
 * @returns {Promise<typeof NOTICES>}
 */
async function notices() {
	try {
		const cache = await caches.open(CACHE);
		const kept = await cache.match(
			new URL("notices", worker.registration.scope).href,
		);
		return { ...NOTICES, ...(await kept?.json()) };
	} catch {
		return NOTICES;
	}
}

/** @param {'waiting' | 'test' | 'changed'} type */
async function notify(type) {
	const texts = await notices();
	const options = {
		body: texts[type],
		tag: `countersign-${type}`,
		renotify: true,
		icon: "icon.svg",
		// They open the request. Nothing is decided that was not shown.
		actions:
			type === "waiting"
				? [
						{ action: "approve", title: texts.approve },
						{ action: "reject", title: texts.reject },
					]
				: [],
	};
	// How many there are, the page knows when it is opened.
	if (type === "waiting")
		void worker.navigator?.setAppBadge?.()?.catch(() => {});
	return worker.registration.showNotification("Countersign", options);
}

worker.addEventListener("push", (/** @type {any} */ event) => {
	// Browsers want something to be shown for every message, whatever it holds.
	let type = "waiting";
	try {
		type = event.data?.json()?.type;
	} catch {
		// Then it is not the gateway's.
	}
	event.waitUntil(notify(type === "test" ? "test" : "waiting"));
});

// Only the page has the credential to tell the gateway. It does when it is opened.
worker.addEventListener("pushsubscriptionchange", (/** @type {any} */ event) =>
	event.waitUntil(notify("changed")),
);

worker.addEventListener("notificationclick", (/** @type {any} */ event) => {
	event.notification.close();
	const isVerdict = ["approve", "reject"].includes(event.action);
	event.waitUntil(openPage(isVerdict ? `next/${event.action}` : "inbox"));
});

/** @param {string} view */
async function openPage(view) {
	const page = new URL(`./#/${view}`, worker.registration.scope).href;
	const [open] = await worker.clients.matchAll({ type: "window" });
	if (!open) return worker.clients.openWindow(page);
	await open.focus();
	return open.navigate(page);
}
