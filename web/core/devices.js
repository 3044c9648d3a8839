// The devices of this approver. This one follows the statements from itself: what no known device
// has signed is shown as such.

import { parse, Reader } from "./canonical.js";
import { path } from "./gateway.js";
import { parseDeviceBundle } from "./keys.js";
import { Problem } from "./problem.js";
import { signStatement } from "./statements.js";

/** @typedef {import('./json.js').Node} Node */
/** @typedef {import('./keys.js').DeviceBundle} DeviceBundle */
/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./statements.js').DeviceTrust} DeviceTrust */
/** @typedef {import('./types.js').Device} Device */

/**
 * @typedef {object} Devices
 * @property {Device[]} listed
 * @property {DeviceBundle[]} bundles in force, as the gateway lists them
 * @property {DeviceTrust} trust what follows from this device
 * @property {string[]} statements byte for byte
 */

/** @param {Session} session */
function devicesPath({ identity }) {
	return path("v1", "approvers", identity.approverId, "devices");
}

/**
 * @param {Session} session
 * @returns {Promise<Devices>}
 */
export async function readDevices(session) {
	const reader = new Reader(
		"answer",
		await session.client.json({ path: devicesPath(session), expect: [200] }),
	);
	const statements = reader.array("statements");
	const trust = await session.trust();
	await trust.followAll(statements);
	await session.remember(trust);
	const lines = await Promise.all(reader.array("devices").map(readLine));
	// A malformed one has nothing that could be shown or trusted.
	const known = lines.flatMap((line) => (line === null ? [] : [line]));
	// The gateway need not list what it has shown statements about.
	const isListed = (/** @type {DeviceBundle} */ { deviceId }) =>
		known.some(({ bundle }) => bundle.deviceId === deviceId);
	const others = trust.inForce.filter(
		(bundle) =>
			bundle.deviceId !== session.identity.deviceId && !isListed(bundle),
	);
	const unlisted = others.map((bundle) => ({
		bundle,
		addedAt: null,
		addedBy: null,
		revokedAt: null,
	}));
	return {
		listed: [...known, ...unlisted].map((line) =>
			describe(line, trust, session.identity.deviceId),
		),
		bundles: known
			.filter(({ revokedAt }) => revokedAt === null)
			.map(({ bundle }) => bundle),
		trust,
		statements: statements.map(({ raw }) => raw),
	};
}

/**
 * @param {Node} node
 */
async function readLine(node) {
	try {
		const reader = new Reader("answer", node);
		return {
			bundle: await parseDeviceBundle(reader.string("bundle")),
			addedAt: reader.optionalString("addedAt"),
			addedBy: reader.optionalString("addedBy"),
			revokedAt: reader.optionalString("revokedAt"),
		};
	} catch (error) {
		if (error instanceof Problem) return null;
		throw error;
	}
}

/**
 * @param {{ bundle: DeviceBundle, addedAt: string | null, addedBy: string | null, revokedAt: string | null }} line
 * @param {DeviceTrust} trust
 * @param {string} own
 * @returns {Device}
 */
function describe({ bundle, addedAt, addedBy, revokedAt }, trust, own) {
	const { deviceId, name } = bundle;
	/** @returns {import('./types.js').DeviceStanding} */
	const stand = () => {
		if (trust.revoked.has(deviceId)) return "revoked";
		if (revokedAt !== null) return "ended";
		if (!trust.has(bundle)) return "unverified";
		return deviceId === own ? "own" : "trusted";
	};
	const standing = stand();
	const isInForce = standing !== "revoked" && standing !== "ended";
	return {
		deviceId,
		name,
		nickname: null,
		standing,
		isInForce,
		addedAt,
		addedBy: trust.adders.get(deviceId) ?? addedBy,
		revokedAt,
	};
}

/**
 * Publishes a signed statement that adds a device.
 * @param {Session} session
 * @param {string} signed
 */
export async function publish(session, signed) {
	await session.client.call({
		method: "POST",
		path: devicesPath(session),
		body: signed,
		expect: [200, 201],
	});
}

/**
 * Revokes a device, and whatever it has added that is not known here.
 * @param {Session} session
 * @param {string} deviceId
 */
export async function revokeDevice(session, deviceId) {
	const isOwn = deviceId === session.identity.deviceId;
	// Of another device: as they were shown. A device that the gateway lists only now is not kept.
	const trust = isOwn
		? (await readDevices(session)).trust
		: await session.trust();
	const keeps = trust.inForce
		.map((bundle) => bundle.deviceId)
		.filter((id) => id !== deviceId);
	const body = await signStatement(
		session.keys,
		session.subject,
		{ revoke: deviceId, keeps },
		session.timestamp(),
	);
	// Before the call, so that a gateway that drops the statement cannot hide it from this device.
	if (!isOwn) {
		await trust.followAll([parse("statement", body)]);
		await session.remember(trust);
	}
	const place = devicesPath(session) + path(deviceId);
	await session.client.call({
		method: "DELETE",
		path: place,
		body,
		expect: [200],
	});
}
