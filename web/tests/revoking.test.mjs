// Revoking a device that a team still counts, as people see it: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../core/problem.js";
import {
	buttonsOf,
	dialogOf,
	fakeDocument,
	settled,
	shown,
} from "./elements.mjs";

fakeDocument();
globalThis.localStorage = { getItem: () => null, clear() {} };
const { view: devicesView } = await import("../views/devices.js");
const { view: deviceView } = await import("../views/device.js");
const { view: settingsView } = await import("../views/settings.js");

const { texts } = await import("../texts.js");

const NOT_REMOVED = Problem.of("deviceNotRemoved", {
	team: "payments",
	problem: Problem.of("slow", {}),
});
const STANDS_IN = Problem.of("standsInRevoked", {
	member: "bob",
	team: "payments",
});

test("a revoked device that a team still counts is reported, and it is revoked", async () => {
	const phone = {
		deviceId: "phone",
		name: "phone",
		nickname: null,
		standing: "trusted",
		isInForce: true,
		addedAt: null,
		addedBy: null,
		revokedAt: null,
	};
	let listed = [phone];
	const approver = {
		devices: async () => listed,
		revokeDevice: async () => {
			listed = [{ ...phone, standing: "revoked", isInForce: false }];
			return [NOT_REMOVED, STANDS_IN];
		},
	};
	const element = await shown(devicesView, approver);
	buttonsOf(element).get("Revoke").click();
	await buttonsOf(dialogOf("Revoke phone?")).get("Revoke").click();
	await settled();
	assert.ok(element.textContent.includes("The gateway took too long"));
	assert.ok(element.textContent.includes("You stand in for bob"));
	assert.equal(buttonsOf(element).get("Revoke"), undefined);
});

test("a new device that a team does not count yet is reported, and it is added", async () => {
	globalThis.history = { replaceState() {} };
	const approver = {
		readNewDevice: async (link) => ({
			deviceId: "phone",
			name: "phone",
			at: "2026-01-01T00:00:00Z",
			link,
		}),
		addDevice: async () => [
			Problem.of("deviceNotAdded", {
				team: "payments",
				problem: Problem.of("slow", {}),
			}),
		],
	};
	const element = await shown(deviceView, approver, ["abc"]);
	const [add] = element.all(
		({ tag, textContent }) =>
			tag === "button" && textContent === texts.devices.confirm,
	);
	await add.click();
	await settled();
	const text = element.textContent;
	assert.ok(text.includes(texts.devices.addedText), text);
	assert.ok(text.includes("The team payments doesn’t count your new device"));
	assert.ok(text.includes("The gateway took too long"));
});

test("before logging out, a team that still counts the device is reported", async () => {
	const calls = [];
	const approver = {
		identity: {
			approverId: "alice",
			tenantId: "t",
			deviceId: "phone",
			deviceName: "phone",
			joinedAt: "2026-01-01T00:00:00Z",
		},
		notifications: async () => ({ state: "off" }),
		revokeDevice: async (deviceId) => {
			calls.push(["revokeDevice", deviceId]);
			return [NOT_REMOVED];
		},
		logout: async () => {
			calls.push(["logout"]);
			return null;
		},
	};
	const element = await shown(settingsView, approver);
	buttonsOf(element).get("Log out").click();
	const dialog = dialogOf("Log out of this browser?");
	const [revoke] = dialog.all(({ tag }) => tag === "input");
	revoke.checked = true;
	await buttonsOf(dialog).get("Log out").click();
	assert.deepEqual(calls, [["revokeDevice", "phone"]]);
	assert.ok(dialog.textContent.includes("The gateway took too long"));
	await buttonsOf(dialog).get("Log out").click();
	assert.deepEqual(calls.slice(1), [["logout"]]);
});
