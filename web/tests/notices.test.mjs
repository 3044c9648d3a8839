// Notifications of the service worker, and where a click leads: `node --test web/tests/`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";

/** Runs the worker, and lets events happen to it. */
function worker(windows = [], caches = {}) {
	const handlers = {};
	const shown = [];
	const opened = [];
	const self = {
		addEventListener: (name, handler) => {
			handlers[name] = handler;
		},
		skipWaiting: () => {},
		registration: {
			scope: "https://page.example.org/approve/",
			showNotification: async (title, options) =>
				shown.push({ title, ...options }),
		},
		clients: {
			claim: async () => {},
			matchAll: async () => windows,
			openWindow: async (url) => opened.push(url),
		},
		location: new URL("https://page.example.org/approve/sw.js"),
	};
	const source = readFileSync(new URL("../sw.js", import.meta.url), "utf8");
	vm.runInNewContext(source, {
		...self,
		self,
		URL,
		caches,
		fetch: () => {},
	});
	const happen = async (name, event = {}) => {
		const works = [];
		handlers[name]({ ...event, waitUntil: (work) => works.push(work) });
		await Promise.all(works);
	};
	return { happen, shown, opened };
}

const data = (text) => ({ data: { json: () => JSON.parse(text) } });

test("whatever a message holds, only our own words are shown", async () => {
	const { happen, shown } = worker();
	const messages = [
		'{"type":"waiting"}',
		'{"type":"<b>rm -rf</b>","body":"rm -rf"}',
		"not JSON",
		"null",
		'{"type":"changed"}',
	];
	for (const text of messages) await happen("push", data(text));
	await happen("push", { data: null });
	assert.equal(shown.length, messages.length + 1);
	for (const one of shown) {
		assert.equal(one.title, "Countersign");
		assert.equal(one.body, "A request is waiting for your decision.");
		assert.equal(one.tag, "countersign-waiting");
	}
	await happen("push", data('{"type":"test"}'));
	assert.match(shown.at(-1).body, /work/);
	await happen("pushsubscriptionchange");
	assert.match(shown.at(-1).body, /Open this page/);
});

test("notices are in the page's language, where it has left them", async () => {
	const kept = new Map();
	const cache = { match: async (url) => kept.get(url) };
	const caches = { open: async () => cache };
	const { happen, shown } = worker([], caches);
	const address = "https://page.example.org/approve/notices";
	const told = async () => {
		await happen("push", data('{"type":"waiting"}'));
		return shown.at(-1).body;
	};
	assert.match(await told(), /^A request/);
	kept.set(address, new Response('{"waiting":"Eine Anfrage wartet."}'));
	assert.equal(await told(), "Eine Anfrage wartet.");
	kept.set(address, new Response("not JSON"));
	assert.match(await told(), /^A request/);
});

test("the buttons of a notification open the request, and decide nothing", async () => {
	const { happen, shown, opened } = worker();
	await happen("push", data('{"type":"waiting"}'));
	assert.deepEqual(
		[...shown[0].actions].map(({ action }) => action),
		["approve", "reject"],
	);
	await happen("push", data('{"type":"test"}'));
	assert.equal(shown[1].actions.length, 0);
	const notification = { close: () => {} };
	for (const action of ["approve", "reject", "other", ""])
		await happen("notificationclick", { notification, action });
	const at = "https://page.example.org/approve/#/";
	assert.deepEqual(opened, [
		`${at}next/approve`,
		`${at}next/reject`,
		`${at}inbox`,
		`${at}inbox`,
	]);
});

test("a click opens the inbox, in a window that is open if there is one", async () => {
	let closed = 0;
	const notification = { close: () => (closed += 1) };
	const without = worker();
	await without.happen("notificationclick", { notification });
	assert.deepEqual(without.opened, [
		"https://page.example.org/approve/#/inbox",
	]);
	const led = [];
	const window = {
		focus: async () => led.push("focus"),
		navigate: async (url) => led.push(url),
	};
	const within = worker([window]);
	await within.happen("notificationclick", { notification });
	assert.deepEqual(
		[led, within.opened, closed],
		[["focus", "https://page.example.org/approve/#/inbox"], [], 2],
	);
});
