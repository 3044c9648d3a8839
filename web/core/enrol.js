// How a device comes into force: the first one by itself, each further one by a device in force.

import { parse } from "./canonical.js";
import { publish, readDevices } from "./devices.js";
import { endorse, endorsementLink, requestEndorsement } from "./endorsement.js";
import { isRefusedWith, sleep } from "./gateway.js";
import { Problem } from "./problem.js";
import { signStatement } from "./statements.js";

/** @typedef {import('./devices.js').Devices} Devices */
/** @typedef {import('./session.js').Session} Session */

const POLL_MS = 1_000;
/** The gateway takes a statement for ten minutes. */
const LINK_LASTS_MS = 9.5 * 60 * 1000;

/**
 * Whether this device is in force.
 * @param {Session} session
 * @param {Devices} devices
 */
function isInForce({ identity }, { listed }) {
	const own = listed.find(({ deviceId }) => deviceId === identity.deviceId);
	if (own !== undefined && !own.isInForce)
		throw Problem.of("deviceRevoked", {});
	return own !== undefined;
}

/**
 * Brings this device into force, or says what it takes.
 * @param {Session} session
 * @returns {Promise<import('./types.js').Enrolment>}
 */
export async function enrol(session) {
	let devices = await readDevices(session);
	if (isInForce(session, devices)) return { state: "inForce" };
	if (devices.bundles.length === 0) {
		try {
			const change = { add: session.keys.bundle };
			await publish(
				session,
				await signStatement(
					session.keys,
					session.subject,
					change,
					session.timestamp(),
				),
			);
			return { state: "inForce" };
		} catch (error) {
			// Another device was first, or there were devices before.
			if (!isRefusedWith(error, "FORBIDDEN")) throw error;
		}
		devices = await readDevices(session);
	}
	if (devices.bundles.length === 0) throw Problem.of("noDeviceInForce", {});
	const text = await requestEndorsement(
		session.keys,
		session.subject,
		session.timestamp(),
		devices.bundles,
	);
	const { name, deviceId } = session.keys.bundle;
	const validUntil = new Date(Date.now() + LINK_LASTS_MS).toISOString();
	return {
		state: "waiting",
		link: endorsementLink(session.page, text),
		name,
		deviceId,
		validUntil,
	};
}

/**
 * An enforcer must not pin a device whose decisions the gateway would refuse.
 * @param {Session} session
 */
export async function requireInForce(session) {
	if ((await enrol(session)).state !== "inForce")
		throw Problem.of("deviceNotInForce", {});
}

/**
 * @param {Session} session
 * @param {AbortSignal} signal
 */
export async function untilInForce(session, signal) {
	while (!signal.aborted) {
		try {
			if (isInForce(session, await readDevices(session))) return true;
		} catch (error) {
			if (!(error instanceof Problem && error.isUnavailable)) throw error;
		}
		await sleep(POLL_MS);
	}
	return false;
}

/**
 * @param {Session} session
 * @param {import('./endorsement.js').EndorsementRequest} request
 */
export async function addDevice(session, request) {
	const endorsed = await endorse(session.keys, session.subject, request);
	for (const signed of endorsed) await publish(session, signed);
	// A later revocation keeps the devices that this one knows.
	const trust = await session.trust();
	await trust.followAll(endorsed.map((signed) => parse("statement", signed)));
	await session.remember(trust);
}
