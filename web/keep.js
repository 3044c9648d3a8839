// Keeps the page in this browser, so that it opens without a network. Without that everything else
// works.

/** Once there is nothing better to do, the rest of the page is loaded. */
const KEEP_AFTER_MS = 4000;
// `sw.js` has the same name.
const CACHE = "countersign-page";

/** Where the files of this version are. */
const FILES = new URL(".", import.meta.url).href;

/**
 * @param {() => Promise<unknown>} loadAll loads every module that is loaded when it is needed
 * @param {Record<string, string>} notices what the service worker says, in the page's language
 */
export async function keepPage(loadAll, notices) {
	const types = /** @type {any} */ (window).trustedTypes;
	// This policy knows one script and no other; the page's headers allow no further policy.
	const policy = types?.createPolicy("countersign-worker", {
		createScriptURL: () => new URL("sw.js", document.baseURI).href,
	});
	if (!navigator.serviceWorker) return;
	await navigator.serviceWorker.register(
		policy ? policy.createScriptURL("") : "sw.js",
	);
	await navigator.serviceWorker.ready;
	const page = new URL(".", document.baseURI).href;
	const cache = await caches.open(CACHE);
	await cache.put(`${page}notices`, new Response(JSON.stringify(notices)));
	await new Promise((resolve) => setTimeout(resolve, KEEP_AFTER_MS));
	await loadAll();
	const index = await fetch(page, { cache: "no-cache" });
	// A newer page keeps itself, when it is opened.
	if (
		!index.ok ||
		!(await index.clone().text()).includes(FILES.slice(page.length))
	)
		return;
	// Also what was loaded before the worker was there.
	const loaded = performance
		.getEntriesByType("resource")
		.map(({ name }) => name)
		.filter((name) => name.startsWith(FILES));
	const links = document.querySelectorAll("link[rel=icon], link[rel=manifest]");
	await cache.addAll(
		new Set([
			...loaded,
			new URL("reload.js", page).href,
			...Array.from(
				links,
				(link) => /** @type {HTMLLinkElement} */ (link).href,
			),
		]),
	);
	await cache.put(page, index);
	const kept = await cache.keys();
	await Promise.all(
		kept
			.filter(
				({ url }) =>
					/\/page\/[0-9a-f]+\/[^?]*$/.test(url) && !url.startsWith(FILES),
			)
			.map((request) => cache.delete(request)),
	);
}
