// Adding a device from a device: this one shows a link, the new one joins by it and leaves its
// request at the gateway, and a person compares digits on both screens. A secret of the link, which
// never reaches the gateway, proves the request.

import { fromBase64urlOf, toBase64url } from "./bytes.js";
import { canonical, isId } from "./canonical.js";
import {
	parseEndorsement,
	REQUEST_LASTS_MS,
	requestEndorsement,
} from "./endorsement.js";
import { path, sleep } from "./gateway.js";
import { readDeviceId, sign } from "./keys.js";
import { digitsOf, proofOf } from "./pairing.js";
import { Problem } from "./problem.js";
import { spellSigned } from "./statements.js";

/** @typedef {import('./keys.js').DeviceBundle} DeviceBundle */
/** @typedef {import('./session.js').Session} Session */

const MARK = "#/join/";
const PURPOSE = "countersign new device v1";
const POLL_MS = 1_000;
/** An offer that ends sooner is not shown again. */
const MIN_LEFT_MS = 2 * 60 * 1000;

/**
 * The new device signs for the device that invites, and for no other: a signature for another one
 * would let the gateway add a device of its own.
 * @typedef {{ code: string, secret: Bytes, inviter: string }} DeviceLink
 */

/**
 * @param {string} page
 * @param {DeviceLink} link
 */
export function spellDeviceLink(page, { code, secret, inviter }) {
	return `${page.replace(/\/+$/, "")}/${MARK}${code}/${toBase64url(secret)}/${inviter}`;
}

/**
 * The parts of a link after `#/join/`.
 * @param {string[]} parts
 * @returns {DeviceLink}
 */
export function readDeviceLink(parts) {
	const [code = "", secret = "", inviter = ""] = parts;
	try {
		if (parts.length !== 3) throw Problem.of("invitation", {});
		fromBase64urlOf("key", code, 32);
		return {
			code,
			secret: fromBase64urlOf("key", secret, 16),
			inviter: readDeviceId(inviter),
		};
	} catch (error) {
		throw Problem.of("invitation", {}, error);
	}
}

/**
 * The canonical text by which a device invites.
 * @param {import('./statements.js').Subject} subject
 * @param {string} at
 * @param {string} by
 */
export function spellInvitation({ tenantId, approverId }, at, by) {
	return canonical({
		v: 1,
		statement: "device.invite",
		tenantId,
		approverId,
		at,
		by,
	});
}

/**
 * On the new device: its request to the inviting one, of the devices that the gateway lists.
 * @param {import('./keys.js').DeviceKeys} keys
 * @param {import('./statements.js').Subject} subject
 * @param {string} at
 * @param {DeviceLink} link
 * @param {DeviceBundle[]} listed
 */
export async function requestByLink(keys, subject, at, link, listed) {
	const inviter = listed.find(({ deviceId }) => deviceId === link.inviter);
	if (inviter === undefined) throw Problem.of("inviterUnknown", {});
	const request = await requestEndorsement(keys, subject, at, [inviter]);
	return {
		request,
		proof: toBase64url(await proofOf(link.secret, PURPOSE + request)),
		digits: await digitsOf(request, link.code),
	};
}

/**
 * On the inviting device. A request that the secret does not prove is refused.
 * @param {DeviceLink} link
 * @param {string} request
 * @param {string} proof
 * @returns {Promise<import('./types.js').NewDevice>}
 */
export async function receiveRequest({ code, secret }, request, proof) {
	const expected = toBase64url(await proofOf(secret, PURPOSE + request));
	// A caller that measures the time of this comparison learns only about its own proof.
	if (proof !== expected) throw Problem.of("deviceProof", {});
	const { bundle, at } = await parseEndorsement(request);
	return {
		deviceId: bundle.deviceId,
		name: bundle.name,
		at,
		link: request,
		digits: await digitsOf(request, code),
	};
}

/**
 * @param {Session} session
 * @param {...string} more
 */
function invitationsPath({ identity }, ...more) {
	return path("v1", "approvers", identity.approverId, "invitations", ...more);
}

/**
 * Begins to add a device, or goes on with the link that was shown before.
 * @param {Session} session
 * @returns {Promise<import('./types.js').DeviceOffer>}
 */
export async function inviteDevice(session) {
	const { offer } = session;
	if (offer && Date.parse(offer.expiresAt) - Date.now() > MIN_LEFT_MS)
		return offer;
	const inviter = session.identity.deviceId;
	const text = spellInvitation(session.subject, session.timestamp(), inviter);
	const { members } = await session.client.members({
		method: "POST",
		path: invitationsPath(session),
		body: spellSigned(text, await sign(session.keys, text), null),
		expect: [201],
	});
	const { invitationId, code, expiresAt, page } = members;
	const isCode = typeof code === "string" && /^[\w-]{43}$/.test(code);
	if (!isCode || typeof invitationId !== "string" || !isId(invitationId))
		throw Problem.of("answer", { expected: "code" });
	const secret = crypto.getRandomValues(new Uint8Array(16));
	const link = { code, secret, inviter };
	session.offer = {
		link: spellDeviceLink(reachable(session.page, page), link),
		expiresAt: String(expiresAt),
		device: (signal) => awaitDevice(session, invitationId, link, signal),
		decline: () => endOffer(session, invitationId),
	};
	return session.offer;
}

/**
 * The address of this page for another device. Only where it is on this machine, the gateway says
 * where it is found: a gateway must not lead a new device to a page of its own.
 * @param {string} own
 * @param {unknown} told
 */
export function reachable(own, told) {
	const isLocal = /^(localhost|.*\.localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(
		new URL(own).hostname,
	);
	const isLink = typeof told === "string" && /^https?:\/\/[^?#]+$/.test(told);
	return isLocal && isLink ? told : own;
}

/**
 * The next attempt gets another link. The gateway revokes the credential of a device that used this
 * one.
 * @param {Session} session
 * @param {string} invitationId
 */
async function endOffer(session, invitationId) {
	session.offer = null;
	await session.client.call({
		method: "DELETE",
		path: invitationsPath(session, invitationId),
		expect: [204],
	});
}

/**
 * Waits until the new device has left its request. Null if `signal` ended it before, or nobody came.
 * @param {Session} session
 * @param {string} invitationId
 * @param {DeviceLink} link
 * @param {AbortSignal} signal
 */
async function awaitDevice(session, invitationId, link, signal) {
	while (!signal.aborted) {
		const { members } = await session.client.members({
			path: invitationsPath(session, invitationId),
			expect: [200],
		});
		const { request, proof, expiresAt, usedAt } = members;
		if (typeof request === "string" && typeof proof === "string")
			return receiveRequest(link, request, proof).catch(async (error) => {
				// Somebody joined who does not have the whole link.
				await endOffer(session, invitationId);
				throw error;
			});
		if (usedAt === undefined && !(Date.parse(expiresAt) > Date.now()))
			return null;
		await sleep(POLL_MS);
	}
	return null;
}

/**
 * On a new device that joined by a link of another one: leaves its request there, once.
 * @param {Session} session
 * @param {DeviceBundle[]} listed
 * @returns {Promise<import('./types.js').Enrolment>}
 */
export async function askInviter(session, listed) {
	const { invited } = session;
	if (invited === null) throw Problem.of("invitation", {});
	// Another request would have other digits.
	invited.asked ??= sendRequest(session, invited, listed).catch((error) => {
		delete invited.asked;
		throw error;
	});
	return invited.asked;
}

/**
 * @param {Session} session
 * @param {NonNullable<Session['invited']>} invited
 * @param {DeviceBundle[]} listed
 * @returns {Promise<import('./types.js').Enrolment>}
 */
async function sendRequest(session, { link, invitationId }, listed) {
	const { request, proof, digits } = await requestByLink(
		session.keys,
		session.subject,
		session.timestamp(),
		link,
		listed,
	);
	await session.client.call({
		method: "PUT",
		path: invitationsPath(session, invitationId),
		body: JSON.stringify({ request, proof }),
		expect: [200],
	});
	const validUntil = new Date(Date.now() + REQUEST_LASTS_MS).toISOString();
	const { name } = session.keys.bundle;
	return { state: "confirming", name, digits, validUntil };
}
