// The inbox stays current: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "../core/canonical.js";
import { InboxModel } from "../core/inbox.js";
import { LiveValue } from "../core/live.js";
import { Problem } from "../core/problem.js";
import {
	pollPause,
	pollWhileClosed,
	turnOf,
	waitForEnds,
	waitForIntroductions,
	watchDelivery,
} from "../core/watching.js";
import { mockClock } from "./clock.mjs";

test("the inbox is read less and less often while the gateway is away", () => {
	assert.deepEqual(
		[0, 1, 2, 3, 4, 5, 6, 1000].map(pollPause),
		[3_000, 6_000, 12_000, 24_000, 48_000, 60_000, 60_000, 60_000],
	);
});

/** A model whose gateway cannot be reached, and that counts what it does. */
function model() {
	const client = {
		credential: "x",
		channelUrl: () => "ws://127.0.0.1:1/",
		leaveNode() {},
		json: async () => Promise.reject(Problem.of("unreachable", {})),
	};
	const made = new InboxModel(
		{ client, identity: { approverId: "a" } },
		() => {},
	);
	const calls = [];
	made.refresh = async () => calls.push("read");
	made.channel.reopen = () => calls.push("reopen");
	made.channel.check = () => calls.push("check");
	return { made, calls };
}

test("a network that came back is used at once", () => {
	const { made, calls } = model();
	made.reopen();
	assert.deepEqual(calls, ["reopen", "read"]);
});

test("a page that is seen again reads at once, a hidden one nothing", () => {
	const { made, calls } = model();
	globalThis.document = { visibilityState: "hidden" };
	made.check();
	assert.deepEqual(calls, []);
	globalThis.document = { visibilityState: "visible" };
	made.check();
	delete globalThis.document;
	assert.deepEqual(calls, ["check", "read"]);
});

test("a gateway that refuses the key once is asked again, and the channel reopened", async (t) => {
	const clock = mockClock(t);
	let isRight = false;
	const client = {
		credential: "x",
		present: async () => "x",
		channelUrl: () => "ws://127.0.0.1:1/",
		leaveNode() {},
		json: async () => {
			if (!isRight) throw Problem.of("credential", {});
			return parse(
				"answer",
				'{"msgId":"m","msgType":"inbox","requestId":"r","body":{"items":[],"nextCursor":null}}',
			);
		},
	};
	const made = new InboxModel(
		{ client, identity: { approverId: "a" } },
		() => {},
	);
	const channel = [];
	Object.defineProperty(made.channel, "isOpen", { value: false });
	made.channel.start = () => channel.push("start");
	made.channel.stop = () => channel.push("stop");
	made.isRunning = true;
	made.run = 1;
	await made.refresh();
	assert.equal(made.live.value.connection, "refused");
	assert.deepEqual(channel, ["stop"]);
	assert.equal(made.isRunning, true);
	const polling = pollWhileClosed(made, 1);
	isRight = true;
	for (let step = 0; step < 50; step += 1) {
		clock.tick(3_000);
		await new Promise(setImmediate);
	}
	assert.equal(made.live.value.connection, "polling");
	assert.equal(made.live.value.problem, null);
	assert.equal(channel[1], "start");
	made.isRunning = false;
	clock.tick(3_000);
	await polling;
});

/**
 * A model with pending requests, whose gateway answers waits as told: with ids that have ended,
 * with nothing, or with a refusal.
 * @param {string[]} pending
 * @param {(requestIds: string[], signal: AbortSignal) => Promise<string[] | Problem>} answer
 */
function waiting(pending, answer) {
	const calls = [];
	const made = {
		isRunning: true,
		run: 1,
		pending,
		live: new LiveValue({ connection: "live" }),
		stopping: new AbortController(),
		pendingIds: () => made.pending,
		find: (requestId) =>
			made.pending.includes(requestId) ? { state: "pending" } : null,
		askQuietly: async (requestId) => {
			calls.push(`ask ${requestId}`);
			made.pending = made.pending.filter(
				(one) => one !== requestId || made.isStubborn,
			);
		},
		refresh: async () => calls.push("read"),
		session: {
			client: {
				call: async ({ path, body, signal }) => {
					const { requestIds } = JSON.parse(body);
					calls.push(`wait ${requestIds}`);
					assert.equal(path, "/v1/waits?timeout=25");
					const ended = await answer(requestIds, signal);
					if (ended instanceof Problem) throw ended;
					if (ended.length === 0) return { status: 204, text: "" };
					return { status: 200, text: JSON.stringify({ requestIds: ended }) };
				},
			},
		},
	};
	return { made, calls };
}

test("what has ended is asked about, and the others are waited for", async () => {
	const { made, calls } = waiting(["a", "b", "c"], async (requestIds) => {
		if (requestIds.length < 2) made.isRunning = false;
		return [requestIds[0], "never asked about"];
	});
	await waitForEnds(made, 1);
	assert.deepEqual(calls, [
		"wait a,b,c",
		"ask a",
		"wait b,c",
		"ask b",
		"wait c",
	]);
});

test("a request that comes meanwhile is waited for too", async () => {
	const { made, calls } = waiting(
		["a"],
		(requestIds, signal) =>
			new Promise((resolve) => {
				if (requestIds.length === 2) {
					made.isRunning = false;
					resolve([]);
					return;
				}
				signal.addEventListener("abort", () => resolve(Problem.of("slow", {})));
				made.pending = ["a", "b"];
				made.live.set({ connection: "live" });
			}),
	);
	await waitForEnds(made, 1);
	assert.deepEqual(calls, ["wait a", "wait a,b"]);
});

test("of many, all are waited for in turn, and the first each time", () => {
	const pending = Array.from({ length: 450 }, (_, at) => `r${at}`);
	const waited = new Set();
	let from = 0;
	for (let round = 0; round < 3; round += 1) {
		const { waitedFor, next } = turnOf(pending, from);
		assert.equal(waitedFor[0], "r0");
		assert.equal(new Set(waitedFor).size, 200);
		for (const requestId of waitedFor) waited.add(requestId);
		from = next;
	}
	assert.equal(waited.size, 450);
	assert.deepEqual(turnOf(["a", "b"], 5).waitedFor, ["a", "b"]);
});

test("a page that is left waits no longer", async () => {
	const { made, calls } = waiting(
		["a"],
		(_, signal) =>
			new Promise((resolve) => {
				signal.addEventListener("abort", () => resolve(Problem.of("slow", {})));
				made.isRunning = false;
				made.stopping.abort();
			}),
	);
	await waitForEnds(made, 1);
	assert.deepEqual(calls, ["wait a"]);
});

test("a gateway that knows no waits, answers too soon, or names what has not ended, is not asked in a tight loop", async (context) => {
	const clock = mockClock(context);
	for (const answer of [Problem.of("refused", { status: 404 }), [], ["a"]]) {
		const { made, calls } = waiting(["a"], async () => answer);
		made.isStubborn = true;
		const waits = () => calls.filter((call) => call === "wait a").length;
		const ended = waitForEnds(made, 1);
		const settle = async () => {
			for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
		};
		await settle();
		assert.equal(waits(), 1);
		clock.tick(1_000);
		await settle();
		assert.equal(waits(), 1);
		clock.tick(5_000);
		await settle();
		assert.equal(waits(), 2);
		assert.ok(calls.includes("read"));
		made.isRunning = false;
		made.stopping.abort();
		clock.tick(100_000);
		await ended;
	}
});

test("delivery is asked about less and less often, until it is confirmed", async (context) => {
	const clock = mockClock(context);
	const { made, calls } = waiting([], async () => []);
	let state = "decided";
	made.find = () => ({ state });
	const ended = watchDelivery(made, "a");
	for (let second = 0; second < 600; second += 1) {
		clock.tick(1_000);
		for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
	}
	assert.ok(calls.length > 8 && calls.length < 25, `${calls.length}`);
	state = "delivered";
	clock.tick(60_000);
	await ended;
});

test("a request of an enforcer that is not known yet is read again, until it is", async (context) => {
	const clock = mockClock(context);
	const { made, calls } = waiting([], async () => []);
	made.items = new Map([
		[
			"a",
			{
				requestId: "a",
				strangers: [],
				content: { opened: false, problem: Problem.of("notPaired", {}) },
			},
		],
	]);
	const ended = waitForIntroductions(made, 1);
	const settle = async () => {
		for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
	};
	const pass = async (seconds) => {
		await settle();
		for (let second = 0; second < seconds; second += 1) {
			clock.tick(1_000);
			await settle();
		}
	};
	await pass(5);
	assert.equal(calls.length, 1);
	await pass(600);
	assert.ok(calls.length > 6 && calls.length < 30, `${calls.length}`);
	const before = calls.length;
	made.items.set("b", {
		requestId: "b",
		strangers: [],
		content: { opened: false, problem: Problem.of("notPaired", {}) },
	});
	made.live.set({ connection: "live" });
	await pass(5);
	assert.equal(calls.length, before + 1);
	made.items = new Map([["a", { strangers: [], content: { opened: true } }]]);
	await pass(120);
	const { length } = calls;
	await pass(600);
	assert.equal(calls.length, length);
	made.isRunning = false;
	await pass(120);
	await ended;
});
