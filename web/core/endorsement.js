// How a new device asks a device in force to add it: one text, carried by the person from the new
// to the old device. The new device signs in advance what both will say about each other, so that
// nothing has to travel back.
//
// The list of devices comes from the gateway and may be a lie. The signatures of the new device
// about foreign devices are therefore in this text alone, and the old device publishes only what is
// about itself.

import { fromBase64url, toBase64url, utf8 } from "./bytes.js";
import { canonical, parseCanonical, Reader } from "./canonical.js";
import {
	hasSameKeys,
	parseDeviceBundle,
	readDeviceId,
	sign,
	verifies,
} from "./keys.js";
import { Problem } from "./problem.js";
import {
	MAX_DEVICES,
	readSignature,
	spellSigned,
	spellStatement,
} from "./statements.js";

/** @typedef {import('./keys.js').DeviceBundle} DeviceBundle */
/** @typedef {import('./keys.js').DeviceKeys} DeviceKeys */
/** @typedef {import('./statements.js').Subject} Subject */

/** The gateway takes a statement for ten minutes. */
export const REQUEST_LASTS_MS = 9.5 * 60 * 1000;

const WHAT = "endorsement";
const MARK = "#/device/";

/**
 * The new device's signatures for one device in force: `possession` over the statement by which
 * that one adds the new one, `signature` over the statement by which the new one adds that one.
 * @typedef {object} Signed
 * @property {string} deviceId
 * @property {string} possession
 * @property {string} signature
 */

/**
 * A new device's request to be added. Well formed, nothing more.
 * @typedef {object} EndorsementRequest
 * @property {Subject} subject
 * @property {DeviceBundle} bundle
 * @property {string} at
 * @property {Signed[]} by
 */

/**
 * On the new device: the text that carries its request. `devices` are those in force, as the
 * gateway lists them.
 * @param {DeviceKeys} keys
 * @param {Subject} subject
 * @param {string} at
 * @param {DeviceBundle[]} devices
 */
export async function requestEndorsement(keys, subject, at, devices) {
	if (devices.length > MAX_DEVICES)
		throw Problem.of("tooManyDevices", { limit: MAX_DEVICES });
	const { bundle } = keys;
	const by = devices.map(async (device) => ({
		deviceId: device.deviceId,
		possession: await sign(
			keys,
			spellStatement(subject, { add: bundle }, at, device.deviceId),
		),
		signature: await sign(
			keys,
			spellStatement(subject, { add: device }, at, bundle.deviceId),
		),
	}));
	const { tenantId, approverId } = subject;
	const members = {
		v: 1,
		tenantId,
		approverId,
		bundle: bundle.text,
		at,
		by: await Promise.all(by),
	};
	return toBase64url(utf8(canonical(members)));
}

/**
 * @param {string} page
 * @param {string} text
 */
export function endorsementLink(page, text) {
	return `${page.replace(/\/+$/, "")}/${MARK}${text}`;
}

/**
 * Reads a link, or only the text at its end.
 * @param {string} link
 * @returns {Promise<EndorsementRequest>}
 */
export async function parseEndorsement(link) {
	const at = link.lastIndexOf(MARK);
	const text = (at < 0 ? link : link.slice(at + MARK.length)).trim();
	/** @type {Bytes} */
	let bytes;
	try {
		bytes = fromBase64url(WHAT, text);
	} catch (error) {
		throw Problem.of("endorsementLink", {}, error);
	}
	const reader = new Reader(WHAT, parseCanonical(WHAT, bytes));
	reader.version();
	const by = reader.array("by");
	if (by.length > MAX_DEVICES) throw reader.invalid("by", `<= ${MAX_DEVICES}`);
	const request = {
		subject: {
			tenantId: reader.id("tenantId"),
			approverId: reader.id("approverId"),
		},
		bundle: await parseDeviceBundle(reader.string("bundle")),
		at: reader.time("at"),
		by: by.map((node) => {
			const entry = new Reader(WHAT, node, "/by");
			const [possession, signature] = [
				entry.string("possession"),
				entry.string("signature"),
			];
			readSignature(possession);
			readSignature(signature);
			const signed = {
				deviceId: readDeviceId(entry.string("deviceId")),
				possession,
				signature,
			};
			entry.finish();
			return signed;
		}),
	};
	reader.finish();
	return request;
}

/**
 * On a device in force, after its person has said yes to the new device's name and id: the
 * statements to publish, in this order. The second one, by which the new device adds this one, is
 * missing if the new device was shown another bundle.
 * @param {DeviceKeys} keys
 * @param {Subject} subject
 * @param {EndorsementRequest} request
 * @returns {Promise<string[]>}
 */
export async function endorse(keys, subject, request) {
	const { bundle, at } = request;
	const own = keys.bundle;
	const isSame =
		request.subject.tenantId === subject.tenantId &&
		request.subject.approverId === subject.approverId;
	if (!isSame) throw Problem.of("otherApprover", {});
	const signed = request.by.find(({ deviceId }) => deviceId === own.deviceId);
	if (signed === undefined || hasSameKeys(bundle, own))
		throw Problem.of("notAsked", {});
	const addition = spellStatement(subject, { add: bundle }, at, own.deviceId);
	if (!(await verifies(bundle, addition, readSignature(signed.possession))))
		throw Problem.of("possession", {});
	const added = spellSigned(
		addition,
		await sign(keys, addition),
		signed.possession,
	);
	const back = spellStatement(subject, { add: own }, at, bundle.deviceId);
	if (!(await verifies(bundle, back, readSignature(signed.signature))))
		return [added];
	return [added, spellSigned(back, signed.signature, await sign(keys, back))];
}
