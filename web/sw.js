// Keeps the page itself, so that it opens without a network. What the gateway says is never kept here.

// `keep.js` has the same name.
const CACHE = 'countersign-page';
/** Their names change with their content. */
const VERSIONED = /^page\/[0-9a-f]+\//;
const OTHERS = /^$|^(manifest\.webmanifest|icon[^/]*\.(svg|png))$/;

/**
 * What TypeScript knows of workers excludes what it knows of pages.
 * @type {any}
 */
const worker = self;

worker.addEventListener('install', () => worker.skipWaiting());
worker.addEventListener('activate', (/** @type {any} */ event) => event.waitUntil(worker.clients.claim()));

worker.addEventListener('fetch', (/** @type {any} */ event) => {
  const request = /** @type {Request} */ (event.request);
  const [address] = request.url.split(/[?#]/);
  const scope = /** @type {string} */ (worker.registration.scope);
  if (request.method !== 'GET' || !address?.startsWith(scope)) return;
  const name = address.slice(scope.length);
  if (VERSIONED.test(name)) event.respondWith(keptFirst(request));
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
 * The network first, so that a new version of the page takes effect at once. The page itself says when it has all its files
 * and may be kept.
 * @param {Request} request
 */
async function networkFirst(request) {
  try {
    return await fetch(request);
  } catch (error) {
    const cache = await caches.open(CACHE);
    const kept = await cache.match(request, { ignoreSearch: true, ignoreVary: true });
    if (kept) return kept;
    throw error;
  }
}
