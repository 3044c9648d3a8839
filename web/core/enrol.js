// How a device comes into force: the first one by itself, each further one by a device in force.

import { parse } from "./canonical.js";
import { publish, readDevices } from "./devices.js";
import {
	endorse,
	endorsementLink,
	REQUEST_LASTS_MS,
	requestEndorsement,
} from "./endorsement.js";
import { isRefusedWith, loaded, sleep } from "./gateway.js";
import { checkDeviceName } from "./keys.js";
import { Problem } from "./problem.js";
import { signStatement } from "./statements.js";

/** @typedef {import('./devices.js').Devices} Devices */
/** @typedef {import('./session.js').Session} Session */

const POLL_MS = 1_000;
/** A name has at most 64 characters. */
const MAX_NUMBERED_CHARS = 60;

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

/** @param {string} time */
function isPast(time) {
	return Date.parse(time) <= Date.now();
}

/**
 * The name, with a number if a device in force has it already: two that are called the same cannot
 * be told apart.
 * @param {string} name
 * @param {Pick<Devices, 'listed'>} devices
 */
export function freeName(name, { listed }) {
	const taken = listed
		.filter(({ isInForce }) => isInForce)
		.map((device) => device.name);
	const short = [...name].slice(0, MAX_NUMBERED_CHARS).join("");
	let free = name;
	for (let number = 2; taken.includes(free); number += 1)
		free = `${short} ${number}`;
	return free;
}

/**
 * Brings this device into force, or says what it takes.
 * @param {Session} session
 * @returns {Promise<import('./types.js').Enrolment>}
 */
export async function enrol(session) {
	let devices = await readDevices(session);
	if (isInForce(session, devices)) return { state: "inForce" };
	const free = freeName(session.keys.bundle.name, devices);
	if (free !== session.keys.bundle.name) await session.rename(free);
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
	if (session.invited) {
		const { askInviter } = await loaded(import("./invite.js"));
		const asked = await askInviter(session, devices.bundles);
		if (asked.state === "confirming" && isPast(asked.validUntil))
			session.invited = null;
		else return asked;
	}
	const text = await requestEndorsement(
		session.keys,
		session.subject,
		session.timestamp(),
		devices.bundles,
	);
	const { name, deviceId } = session.keys.bundle;
	const validUntil = new Date(Date.now() + REQUEST_LASTS_MS).toISOString();
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
 * @param {Session['store']} store
 * @param {import('./types.js').Device[]} listed
 * @param {string} deviceId
 * @param {string} name
 */
export async function renameDevice(store, listed, deviceId, name) {
	checkDeviceName(name);
	const others = listed.filter((device) => device.deviceId !== deviceId);
	const isTaken = others.some(
		(device) =>
			device.isInForce && [device.name, device.nickname].includes(name),
	);
	if (isTaken) throw Problem.of("nameTaken", {});
	const own = listed.find((device) => device.deviceId === deviceId)?.name;
	await store.keepNickname(deviceId, name === own ? null : name);
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
