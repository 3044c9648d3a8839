// Keeps the page itself, so that it opens without a network. What the gateway says is never kept here.

const CACHE = 'countersign-page';
const PAGE_FILES = /\/$|\.(html|js|css|svg|webmanifest)$/;

/**
 * What TypeScript knows of workers excludes what it knows of pages.
 * @type {any}
 */
const worker = self;

worker.addEventListener('install', () => worker.skipWaiting());
worker.addEventListener('activate', (/** @type {any} */ event) => event.waitUntil(worker.clients.claim()));

worker.addEventListener('fetch', (/** @type {any} */ event) => {
  const request = /** @type {Request} */ (event.request);
  const { origin, pathname } = new URL(request.url);
  if (request.method === 'GET' && origin === location.origin && PAGE_FILES.test(pathname)) event.respondWith(fromNetwork(request));
});

/**
 * The network first: a new version of the page takes effect at once.
 * @param {Request} request
 */
async function fromNetwork(request) {
  const cache = await caches.open(CACHE);
  try {
    const answer = await fetch(request);
    if (answer.ok) await cache.put(request, answer.clone());
    return answer;
  } catch (error) {
    const kept = await cache.match(request);
    if (kept) return kept;
    throw error;
  }
}
