// Notifications on this device, by the browser's push service. They say that something waits, and
// nothing of what it is.

import { fromBase64url } from "./bytes.js";
import { path } from "./gateway.js";
import { Problem } from "./problem.js";

/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./types.js').Notifications} Notifications */
/** @typedef {import('./types.js').NotificationHindrance} NotificationHindrance */

/** The last registration, so that a change is noticed: `{ notificationId, endpoint }`. */
const KEPT = "countersign-notifications";

/**
 * The part of the browser that is needed; another one in tests.
 * @typedef {object} Browser
 * @property {boolean} isSecure
 * @property {boolean} needsHomeScreen iOS gives push to pages on the home screen only
 * @property {Pick<typeof Notification, 'permission' | 'requestPermission'> | null} notification
 * @property {() => Promise<PushManager | null>} pushManager
 * @property {Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>} storage
 */

/** @returns {Browser} */
export function thisBrowser() {
	const isApple =
		/iPhone|iPad|iPod/.test(navigator.userAgent) ||
		(navigator.platform === "MacIntel" && navigator.maxTouchPoints > 1);
	const isStandalone = matchMedia("(display-mode: standalone)").matches;
	return {
		isSecure: isSecureContext,
		needsHomeScreen: isApple && !isStandalone && !("PushManager" in window),
		notification: "Notification" in window ? Notification : null,
		// A worker that was never registered is never ready.
		pushManager: async () => {
			const registered =
				"PushManager" in window &&
				(await navigator.serviceWorker?.getRegistration());
			return registered
				? (await navigator.serviceWorker.ready).pushManager
				: null;
		},
		storage: localStorage,
	};
}

/**
 * Why this browser cannot be notified, if so.
 * @param {Browser} browser
 * @returns {Promise<NotificationHindrance | null>}
 */
async function hindranceOf(browser) {
	if (!browser.isSecure) return "insecure";
	if (browser.needsHomeScreen) return "homeScreen";
	if (browser.notification === null || (await browser.pushManager()) === null)
		return "unsupported";
	return browser.notification.permission === "denied" ? "denied" : null;
}

/** @param {Session} session */
function notificationsPath({ identity }) {
	return path("v1", "approvers", identity.approverId, "notifications");
}

/** @param {Session} session */
async function list(session) {
	const { members } = await session.client.members({
		path: notificationsPath(session),
		expect: [200],
	});
	const lines = Array.isArray(members.notifications)
		? members.notifications
		: [];
	return {
		isEnabled: members.enabled === true,
		reason: typeof members.reason === "string" ? members.reason : "",
		key: typeof members.vapidKey === "string" ? members.vapidKey : "",
		own:
			lines.find(
				(/** @type {any} */ line) =>
					line?.kind === "webpush" &&
					line.deviceId === session.identity.deviceId,
			) ?? null,
	};
}

/**
 * @param {Session} session
 * @param {Browser} [browser]
 * @returns {Promise<Notifications>}
 */
export async function readNotifications(session, browser = thisBrowser()) {
	const listed = await list(session);
	if (!listed.isEnabled)
		return { state: "hindered", hindrance: "gateway", reason: listed.reason };
	const hindrance = await hindranceOf(browser);
	if (hindrance !== null) return { state: "hindered", hindrance, reason: "" };
	const subscription = await (await browser.pushManager())?.getSubscription();
	if (!subscription || listed.own === null) return { state: "off" };
	const isFailing = listed.own.state !== "active";
	return {
		state: "on",
		notificationId: String(listed.own.notificationId),
		failure: isFailing ? String(listed.own.failure ?? listed.own.state) : null,
	};
}

/**
 * Asks for permission, subscribes, and tells the gateway. To be called when a person has just asked
 * for it.
 * @param {Session} session
 * @param {Browser} [browser]
 */
export async function notifyHere(session, browser = thisBrowser()) {
	const hindrance = await hindranceOf(browser);
	if (hindrance !== null) throw Problem.of("notNotified", { hindrance });
	const permission = await browser.notification?.requestPermission();
	if (permission !== "granted")
		throw Problem.of("notNotified", {
			hindrance: permission === "denied" ? "denied" : "dismissed",
		});
	const { isEnabled, key } = await list(session);
	if (!isEnabled) throw Problem.of("notNotified", { hindrance: "gateway" });
	await register(session, browser, key);
}

/**
 * @param {Session} session
 * @param {Browser} browser
 * @param {string} key the gateway's
 */
async function register(session, browser, key) {
	const manager = await browser.pushManager();
	if (manager === null)
		throw Problem.of("notNotified", { hindrance: "unsupported" });
	const subscription = await subscribe(manager, key);
	const { endpoint, keys } = subscription.toJSON();
	const body = JSON.stringify({
		kind: "webpush",
		deviceId: session.identity.deviceId,
		endpoint,
		keys: { p256dh: keys?.p256dh, auth: keys?.auth },
	});
	const { members } = await session.client.members({
		method: "POST",
		path: notificationsPath(session),
		body,
		expect: [200, 201],
	});
	browser.storage.setItem(
		KEPT,
		JSON.stringify({ notificationId: members.notificationId, endpoint }),
	);
}

/**
 * A subscription under this key. One under another key, from before the gateway's secret changed,
 * is of no use.
 * @param {PushManager} manager
 * @param {string} key
 */
async function subscribe(manager, key) {
	const bytes = fromBase64url("key", key);
	const known = await manager.getSubscription();
	if (known && isSame(known.options.applicationServerKey, bytes)) return known;
	await known?.unsubscribe();
	try {
		return await manager.subscribe({
			userVisibleOnly: true,
			applicationServerKey: bytes,
		});
	} catch (error) {
		throw Problem.of("notNotified", { hindrance: "service" }, error);
	}
}

/**
 * @param {ArrayBuffer | null} found
 * @param {Bytes} expected
 */
function isSame(found, expected) {
	if (found === null || found.byteLength !== expected.length) return false;
	return new Uint8Array(found).every((byte, index) => byte === expected[index]);
}

/**
 * Registers anew if this device is to be notified and the key, the endpoint or the registration has
 * changed. For every start of the page.
 * @param {Session} session
 * @param {Browser} [browser]
 */
export async function renewNotifications(session, browser = thisBrowser()) {
	const kept = readKept(browser);
	if (
		kept === null ||
		browser.notification?.permission !== "granted" ||
		(await hindranceOf(browser)) !== null
	)
		return;
	const { isEnabled, key, own } = await list(session);
	if (!isEnabled) return;
	const subscription = await (await browser.pushManager())?.getSubscription();
	const stands =
		own !== null &&
		own.notificationId === kept.notificationId &&
		own.state !== "disabled" &&
		own.state !== "stale";
	const isCurrent =
		subscription &&
		subscription.endpoint === kept.endpoint &&
		isSame(
			subscription.options.applicationServerKey,
			fromBase64url("key", key),
		);
	if (!stands || !isCurrent) await register(session, browser, key);
}

/** @param {Browser} browser */
function readKept({ storage }) {
	try {
		const { notificationId, endpoint } =
			JSON.parse(storage.getItem(KEPT) ?? "null") ?? {};
		return typeof notificationId === "string" && typeof endpoint === "string"
			? { notificationId, endpoint }
			: null;
	} catch {
		return null;
	}
}

/**
 * Ends the notifications of this device: the browser's subscription first, so that nothing arrives
 * even if the gateway is away.
 * @param {Session} session
 * @param {Browser} [browser]
 */
export async function silenceHere(session, browser = thisBrowser()) {
	browser.storage.removeItem(KEPT);
	const subscription = await (await browser.pushManager())?.getSubscription();
	await subscription?.unsubscribe();
	const { own } = await list(session);
	if (own === null) return;
	await session.client.call({
		method: "DELETE",
		path: notificationsPath(session) + path(String(own.notificationId)),
		expect: [204, 404],
	});
}

/**
 * Sends a notification to this device now.
 * @param {Session} session
 * @param {string} notificationId
 */
export async function testNotification(session, notificationId) {
	const call = {
		method: /** @type {'POST'} */ ("POST"),
		path: notificationsPath(session) + path(notificationId, "test"),
		expect: [200],
		once: true,
	};
	const { members } = await session.client.members(call);
	if (members.delivered !== true)
		throw Problem.of("notNotified", {
			hindrance: "failed",
			cause: String(members.failure ?? ""),
		});
}
