// The service worker and what keeps the page, in a browser that is made up:
// `node --test web/tests/`.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { runInNewContext } from "node:vm";

const ROOT = "https://gateway.example.org/";
const OLD = `${ROOT}page/${"0".repeat(16)}/`;
const NEW = `${ROOT}page/${"1".repeat(16)}/`;

/** A browser's cache. */
class MadeUpCache {
	kept = new Map();

	async match(request) {
		const found = this.kept.get((request.url ?? request).split(/[?#]/)[0]);
		return found?.clone();
	}

	async put(request, answer) {
		this.kept.set(request.url ?? request, answer);
	}

	async addAll(urls) {
		for (const url of urls) this.kept.set(url, await fetch(url));
	}

	async keys() {
		return [...this.kept.keys()].map((url) => ({ url }));
	}

	async delete(request) {
		return this.kept.delete(request.url);
	}
}

/** A network that counts, and can be cut. */
function network() {
	const net = {
		isUp: true,
		/** @type {string[]} */
		asked: [],
		index: `<script src="page/${"1".repeat(16)}/app.js">`,
		async fetch(request) {
			const url = String(request.url ?? request);
			net.asked.push(url);
			if (!net.isUp) throw new TypeError("no network");
			return new Response(url === ROOT ? net.index : url, {
				status: url.includes("missing") ? 404 : 200,
			});
		},
	};
	return net;
}

async function worker(scope = ROOT) {
	const [cache, net, listeners] = [new MadeUpCache(), network(), {}];
	const self = {
		registration: { scope },
		addEventListener: (name, listener) => {
			listeners[name] = listener;
		},
	};
	const code = await readFile(new URL("../sw.js", import.meta.url), "utf8");
	runInNewContext(code, {
		self,
		URL,
		location: new URL(scope),
		fetch: net.fetch,
		caches: { open: async () => cache },
	});
	/** The worker's answer; null if it leaves the request alone. */
	const ask = async (url, method = "GET") => {
		let answered = null;
		listeners.fetch({
			request: { url, method },
			respondWith: (answer) => {
				answered = answer;
			},
		});
		return answered;
	};
	return { cache, net, ask };
}

test("files of a version are asked for once", async () => {
	const { cache, net, ask } = await worker();
	for (let time = 0; time < 3; time++) {
		assert.equal(
			await (await ask(`${NEW}core/approver.js`)).text(),
			`${NEW}core/approver.js`,
		);
	}
	assert.deepEqual(net.asked, [`${NEW}core/approver.js`]);
	net.isUp = false;
	assert.equal((await ask(`${NEW}core/approver.js`)).status, 200);
	await assert.rejects(ask(`${NEW}other.js`));
	net.isUp = true;
	assert.equal((await ask(`${OLD}missing.js`)).status, 404);
	assert.equal(cache.kept.size, 1);
});

test("the page itself comes from the network, and from the cache without one", async () => {
	const { cache, net, ask } = await worker();
	await cache.put(ROOT, new Response("kept"));
	assert.equal(await (await ask(ROOT)).text(), net.index);
	net.isUp = false;
	for (const url of [ROOT, `${ROOT}?code=1`])
		assert.equal(await (await ask(url)).text(), "kept");
	assert.equal(await (await cache.match(ROOT)).text(), "kept");
	await assert.rejects(ask(`${ROOT}icon.svg`));
});

test("what the gateway says is left alone", async () => {
	const { cache, net, ask } = await worker();
	for (const path of [
		"v1/ws",
		"v1/status",
		"v1/approvers/a.js",
		"v1/approvers/alice/inbox",
		"v1/",
		"docs",
		"openapi.json",
		"sw.js",
		"v1/page/0/a.js",
		"platform/v1/tenants",
	]) {
		assert.equal(await ask(ROOT + path), null, path);
	}
	assert.equal(await ask("https://elsewhere.example/"), null);
	assert.equal(
		await ask(`https://elsewhere.example/page/${"1".repeat(16)}/app.js`),
		null,
	);
	assert.equal(await ask(ROOT, "POST"), null);
	assert.equal(await ask(`${NEW}app.js`, "HEAD"), null);
	assert.deepEqual([cache.kept.size, net.asked.length], [0, 0]);
});

test("it works below a path", async () => {
	const { ask } = await worker(`${ROOT}below/`);
	assert.ok(await ask(`${ROOT}below/page/${"1".repeat(16)}/app.js`));
	assert.ok(await ask(`${ROOT}below/`));
	assert.equal(await ask(ROOT), null);
	assert.equal(await ask(`${ROOT}below/v1/status`), null);
});

/** Runs `keep.js` as the page of one version does. */
async function keep(net, cache, loaded) {
	let code = await readFile(new URL("../keep.js", import.meta.url), "utf8");
	code = code
		.replace("export async function", "async function")
		.replaceAll("import.meta.url", JSON.stringify(`${NEW}keep.js`));
	const context = {
		URL,
		Response,
		setTimeout: (done) => done(),
		caches: { open: async () => cache },
		fetch: net.fetch,
		window: {},
		navigator: { serviceWorker: { register: async () => {}, ready: null } },
		performance: { getEntriesByType: () => loaded.map((name) => ({ name })) },
		document: {
			baseURI: `${ROOT}?x#/inbox`,
			querySelectorAll: () => [{ href: `${ROOT}icon.svg` }],
		},
	};
	globalThis.fetch = net.fetch;
	let all = 0;
	const keepPage = runInNewContext(`${code}; keepPage`, context);
	await keepPage(
		async () => {
			all += 1;
		},
		{ waiting: "Eine Anfrage wartet." },
	);
	assert.equal(all, 1);
}

test("a page keeps its own files and forgets those of older ones", async () => {
	const [cache, net] = [new MadeUpCache(), network()];
	await cache.put(ROOT, new Response("old"));
	await cache.put(`${OLD}app.js`, new Response("old"));
	await keep(net, cache, [
		`${NEW}app.js`,
		`${NEW}core/a.js`,
		`${ROOT}v1/status`,
		"https://elsewhere.example/x.js",
	]);
	assert.deepEqual(
		[...cache.kept.keys()].sort(),
		[
			ROOT,
			`${ROOT}icon.svg`,
			`${ROOT}notices`,
			`${ROOT}reload.js`,
			`${NEW}app.js`,
			`${NEW}core/a.js`,
		].sort(),
	);
	assert.equal(await (await cache.match(ROOT)).text(), net.index);
});

test("while a newer page is there, an older one keeps nothing but its notices", async () => {
	const [cache, net] = [new MadeUpCache(), network()];
	net.index = `<script src="page/${"2".repeat(16)}/app.js">`;
	await cache.put(`${OLD}app.js`, new Response("old"));
	await keep(net, cache, [`${NEW}app.js`]);
	assert.deepEqual([...cache.kept.keys()], [`${OLD}app.js`, `${ROOT}notices`]);
});
