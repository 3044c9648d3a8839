// Joining with an invitation: the code becomes a credential, keys are created, and both are kept
// before anything else happens.

import { isId } from "./canonical.js";
import { GatewayClient, isRefusedWith } from "./gateway.js";
import { readDeviceLink } from "./invite.js";
import { checkDeviceName, generateKeyPairs } from "./keys.js";
import { Problem } from "./problem.js";

/** @typedef {import('./store.js').Store} Store */
/** @typedef {import('./store.js').TokenRecord} TokenRecord */

const MARK = "#/join/";
const CODE = /^[A-Za-z0-9_-]{16,256}$/;
/** A credential goes into headers, and into the name of a subprotocol. */
const CREDENTIAL = /^[!-~]+$/;

/**
 * An invitation, from its link or its code alone. `link`: a device of the same approver has made it.
 * @param {string} text
 */
export function readInvitation(text) {
	const at = text.indexOf(MARK);
	const parts = (at < 0 ? text : text.slice(at + MARK.length))
		.trim()
		.split("/");
	const [code = ""] = parts;
	if (!CODE.test(code)) throw Problem.of("invitation", {});
	return { code, link: parts.length > 1 ? readDeviceLink(parts) : null };
}

/**
 * Uses the invitation: an approver's credential is kept with new keys; any other is only returned.
 * @param {Store} store
 * @param {string[]} gateways
 * @param {string} invitation
 * @param {string} deviceName
 * @returns {Promise<{ role: 'approver', invited: import('./session.js').Session['invited'] } | { role: 'enforcer' | 'admin', boundId: string | null, apiKey: string }>}
 */
export async function join(store, gateways, invitation, deviceName) {
	const { code, link } = readInvitation(invitation);
	checkDeviceName(deviceName);
	if ((await store.profile()) !== null) throw Problem.of("alreadyJoined", {});
	// The code works once: whatever could fail without it is done before.
	const keys = await generateKeyPairs();
	const { tenantId, role, boundId, apiKey, invitationId } = await redeem(
		gateways,
		code,
	);
	if (role === "enforcer" || role === "admin")
		return { role, boundId: boundId ?? null, apiKey };
	if (role !== "approver" || typeof boundId !== "string" || !isId(boundId))
		throw Problem.of("answer", { expected: "boundId" });
	await keepDevice(
		store,
		{ tenantId, approverId: boundId, deviceName, credential: apiKey },
		null,
		keys,
	);
	const isInvited = link !== null && typeof invitationId === "string";
	return { role, invited: isInvited ? { link, invitationId } : null };
}

/**
 * Makes this browser a device of an approver, with keys that never leave it.
 * @param {Store} store
 * @param {{ tenantId: string, approverId: string, deviceName: string, credential: string | null }} who
 * @param {TokenRecord | null} tokens of the person who has signed in
 * @param {import('./keys.js').KeyPairs | null} [made] keys that were created before
 */
export async function keepDevice(store, who, tokens, made = null) {
	const keys = made ?? (await generateKeyPairs());
	// Browsers remove what they were not asked to keep when they run out of space. Some ask the
	// person, which may take a while.
	void globalThis.navigator?.storage?.persist?.();
	await store.keepProfile(
		{ ...who, joinedAt: new Date().toISOString(), keys },
		tokens,
	);
}

/**
 * @param {string[]} gateways
 * @param {string} code
 */
async function redeem(gateways, code) {
	const client = new GatewayClient(gateways, null);
	try {
		// After a lost answer it could be used up.
		const body = JSON.stringify({ code });
		const { members } = await client.members({
			method: "POST",
			path: "/v1/join",
			body,
			once: true,
			expect: [201],
		});
		const { tenantId, apiKey } = members;
		const isCredential = typeof apiKey === "string" && CREDENTIAL.test(apiKey);
		if (typeof tenantId !== "string" || !isId(tenantId) || !isCredential)
			throw Problem.of("answer", { expected: "credential" });
		return members;
	} catch (error) {
		throw isRefusedWith(error, "NOT_FOUND")
			? Problem.of("noSuchInvitation", {}, error)
			: error;
	}
}
