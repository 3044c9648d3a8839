// Notifications on a device, with a browser and a gateway of the test's own:
// `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	notifyHere,
	readNotifications,
	renewNotifications,
	silenceHere,
	testNotification,
} from "../core/notifications.js";
import { Problem } from "../core/problem.js";
import { problemText } from "../texts/problems.js";

const KEY =
	"BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8";
const OTHER_KEY =
	"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";

/** A gateway with the registrations of one approver, and what it was asked. */
function gateway() {
	const lines = [];
	const calls = [];
	const said = {
		enabled: true,
		vapidKey: KEY,
		reason: undefined,
		tested: { delivered: true, status: 201 },
	};
	const answer = ({ method = "GET", path, body }) => {
		calls.push(`${method} ${path}`);
		if (path.endsWith("/test")) return { status: 200, members: said.tested };
		if (method === "DELETE") {
			lines.splice(
				lines.findIndex((line) => path.endsWith(line.notificationId)),
				1,
			);
			return { status: 204, members: {} };
		}
		if (method === "GET")
			return { status: 200, members: { ...said, notifications: lines } };
		const { deviceId, endpoint, keys } = JSON.parse(body);
		assert.deepEqual(keys, { p256dh: "point", auth: "secret" });
		lines.splice(0, lines.length, {
			kind: "webpush",
			notificationId: `n-${calls.length}`,
			deviceId,
			endpoint,
			state: "active",
		});
		return {
			status: 201,
			members: { notificationId: lines[0].notificationId },
		};
	};
	const client = {
		members: async (call) => answer(call),
		call: async (call) => answer(call),
	};
	const session = {
		identity: { approverId: "al/ice", deviceId: "device" },
		client,
	};
	return { session, lines, calls, said };
}

/** A browser that can be notified. */
function browser(changes = {}) {
	const kept = new Map();
	let subscription = null;
	let count = 0;
	const manager = {
		getSubscription: async () => subscription,
		subscribe: async ({ userVisibleOnly, applicationServerKey }) => {
			assert.equal(userVisibleOnly, true);
			count += 1;
			const endpoint = `https://push.example.com/${count}`;
			subscription = {
				endpoint,
				options: { applicationServerKey: applicationServerKey.buffer.slice(0) },
				toJSON: () => ({
					endpoint,
					expirationTime: null,
					keys: { p256dh: "point", auth: "secret" },
				}),
				unsubscribe: async () => {
					subscription = null;
				},
			};
			return subscription;
		},
	};
	const notification = {
		permission: "default",
		requestPermission: async () => (notification.permission = "granted"),
	};
	return {
		isSecure: true,
		needsHomeScreen: false,
		notification,
		pushManager: async () => manager,
		storage: {
			getItem: (name) => kept.get(name) ?? null,
			setItem: (name, value) => kept.set(name, value),
			removeItem: (name) => kept.delete(name),
		},
		lose: () => {
			subscription = null;
		},
		get subscribed() {
			return subscription !== null;
		},
		...changes,
	};
}

test("they are turned on, tested and turned off", async () => {
	const { session, lines, calls, said } = gateway();
	const here = browser();
	assert.deepEqual(await readNotifications(session, here), { state: "off" });
	await notifyHere(session, here);
	assert.equal(lines[0].deviceId, "device");
	const { notificationId } = lines[0];
	assert.deepEqual(await readNotifications(session, here), {
		state: "on",
		notificationId,
		failure: null,
	});
	lines[0].state = "failing";
	lines[0].failure = "no answer in time";
	assert.deepEqual(await readNotifications(session, here), {
		state: "on",
		notificationId,
		failure: "no answer in time",
	});
	await testNotification(session, notificationId);
	assert.equal(
		calls.at(-1),
		`POST /v1/approvers/al%2Fice/notifications/${notificationId}/test`,
	);
	said.tested = { delivered: false, failure: "no connection" };
	await assert.rejects(testNotification(session, notificationId), (error) =>
		problemText(error).includes("no connection"),
	);
	await silenceHere(session, here);
	assert.deepEqual([lines, here.subscribed], [[], false]);
	assert.deepEqual(await readNotifications(session, here), { state: "off" });
});

test("a start of the page registers anew exactly if something has changed", async () => {
	const { session, lines, calls, said } = gateway();
	const here = browser();
	const posts = () => calls.filter((call) => call.startsWith("POST")).length;
	await renewNotifications(session, here);
	assert.equal(
		calls.length,
		0,
		"whoever did not turn them on is not asked for",
	);
	await notifyHere(session, here);
	await renewNotifications(session, here);
	assert.equal(posts(), 1);
	here.lose();
	await renewNotifications(session, here);
	assert.equal(posts(), 2, "the subscription was lost");
	said.vapidKey = OTHER_KEY;
	await renewNotifications(session, here);
	assert.equal(posts(), 3, "the gateway has another key");
	assert.equal(lines[0].endpoint, "https://push.example.com/3");
	lines[0].state = "stale";
	await renewNotifications(session, here);
	assert.equal(posts(), 4, "the gateway cannot use it any more");
	lines.splice(0);
	await renewNotifications(session, here);
	assert.equal(posts(), 5, "the gateway does not know it");
	await renewNotifications(session, here);
	assert.equal(posts(), 5);
	here.notification.permission = "denied";
	lines.splice(0);
	await renewNotifications(session, here);
	assert.equal(posts(), 5);
});

test("every hindrance is said in words", async () => {
	const cases = {
		insecure: browser({ isSecure: false }),
		homeScreen: browser({ needsHomeScreen: true }),
		unsupported: browser({ notification: null }),
		denied: browser({ notification: { permission: "denied" } }),
	};
	const texts = new Set();
	for (const [hindrance, here] of Object.entries(cases)) {
		const { session } = gateway();
		assert.equal((await readNotifications(session, here)).hindrance, hindrance);
		await assert.rejects(
			notifyHere(session, here),
			(error) =>
				error instanceof Problem && texts.add(problemText(error)).size > 0,
		);
	}
	const noWorker = browser({ pushManager: async () => null });
	assert.equal(
		(await readNotifications(gateway().session, noWorker)).hindrance,
		"unsupported",
	);
	const dismissed = browser();
	dismissed.notification.requestPermission = async () => "default";
	await assert.rejects(
		notifyHere(gateway().session, dismissed),
		(error) => texts.add(problemText(error)).size > 0,
	);
	const blocked = browser();
	(await blocked.pushManager()).subscribe = async () =>
		Promise.reject(new Error("push service"));
	await assert.rejects(
		notifyHere(gateway().session, blocked),
		(error) => texts.add(problemText(error)).size > 0,
	);
	const off = gateway();
	off.said.enabled = false;
	off.said.reason = "notifications.enabled is false";
	const read = await readNotifications(off.session, browser());
	assert.deepEqual(read, {
		state: "hindered",
		hindrance: "gateway",
		reason: "notifications.enabled is false",
	});
	await assert.rejects(
		notifyHere(off.session, browser()),
		(error) => texts.add(problemText(error)).size > 0,
	);
	assert.equal(texts.size, 7, "each has its own words");
});
