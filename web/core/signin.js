// Signing in with the gateway's OpenID Connect provider. The state for the person's return is kept
// in this tab and used once. The first time, keys are created, as by joining.

import { isId } from "./canonical.js";
import { GatewayClient } from "./gateway.js";
import { keepDevice } from "./join.js";
import { checkDeviceName } from "./keys.js";
import {
	begin,
	codeOf,
	discover,
	exchange,
	revoke,
	signOutUrl,
} from "./oidc.js";
import { Problem } from "./problem.js";
import { alone, readSettings, tellTabs } from "./tokens.js";

/** @typedef {import('./oidc.js').Attempt} Attempt */
/** @typedef {import('./store.js').Store} Store */
/** @typedef {import('./store.js').TokenRecord} TokenRecord */

const KEY = "countersign.sign-in";

/** @typedef {Attempt & { deviceName: string | null }} Pending */

/**
 * Begins a sign-in. The person has to go to the address that it returns.
 * @param {{ gateways: string[], page: string }} place
 * @param {string | null} deviceName of a new device; null: this device signs in again
 * @param {Storage} [storage]
 */
export async function beginSignIn(
	place,
	deviceName,
	storage = globalThis.sessionStorage,
) {
	if (deviceName !== null) checkDeviceName(deviceName);
	const settings = await readSettings(place.gateways);
	if (settings === null) throw Problem.of("noSignIn", {});
	const { url, attempt } = await begin(
		await discover(settings.issuer),
		settings,
		place.page,
	);
	try {
		storage.setItem(KEY, JSON.stringify({ ...attempt, deviceName }));
	} catch (error) {
		throw Problem.of("storage", { cause: String(error) }, error);
	}
	return url;
}

/**
 * Takes the attempt that this tab has begun, so that it counts once.
 * @param {Storage} storage
 * @returns {Pending | null}
 */
function takePending(storage) {
	const text = storage.getItem(KEY);
	storage.removeItem(KEY);
	return text === null ? null : JSON.parse(text);
}

/**
 * Ends a sign-in with what the provider has put into the page's address.
 * @param {Store} store
 * @param {string[]} gateways
 * @param {URLSearchParams} answer
 * @param {Storage} [storage]
 * @returns {Promise<{ isNew: boolean }>}
 */
export async function finishSignIn(
	store,
	gateways,
	answer,
	storage = globalThis.sessionStorage,
) {
	const pending = takePending(storage);
	if (pending === null) throw Problem.of("signInUnknown", {});
	const provider = await discover(pending.settings.issuer);
	const tokens = await exchange(
		provider,
		pending,
		codeOf(answer, pending, provider),
	);
	try {
		const isNew = await keep(
			store,
			await whoami(gateways, tokens.accessToken),
			tokens,
			pending.deviceName,
		);
		tellTabs();
		return { isNew };
	} catch (error) {
		// Nobody will use them.
		await revoke(provider, tokens).catch(() => {});
		throw error;
	}
}

/**
 * @param {string[]} gateways
 * @param {string} token
 */
async function whoami(gateways, token) {
	try {
		const { members } = await new GatewayClient(gateways, token).members({
			path: "/v1/whoami",
			expect: [200],
		});
		const { tenantId, role, boundId } = members;
		if (role !== "approver" || typeof boundId !== "string")
			throw Problem.of("notAnApprover", {});
		if (typeof tenantId !== "string" || !isId(tenantId) || !isId(boundId))
			throw Problem.of("answer", { expected: "boundId" });
		return { tenantId, approverId: boundId };
	} catch (error) {
		throw error instanceof Problem && error.code === "credential"
			? Problem.of("signInRefused", {}, error)
			: error;
	}
}

/**
 * @param {Store} store
 * @param {{ tenantId: string, approverId: string }} who
 * @param {TokenRecord} tokens
 * @param {string | null} deviceName
 */
async function keep(store, who, tokens, deviceName) {
	const profile = await store.profile();
	if (profile === null) {
		// It has logged out since it began to sign in again.
		if (deviceName === null) throw Problem.of("signInUnknown", {});
		await keepDevice(store, { ...who, deviceName, credential: null }, tokens);
		return true;
	}
	if (profile.credential !== null) throw Problem.of("alreadyJoined", {});
	const isSame =
		profile.tenantId === who.tenantId && profile.approverId === who.approverId;
	if (!isSame)
		throw Problem.of("otherPerson", {
			approverId: who.approverId,
			expected: profile.approverId,
		});
	await alone(() => store.keepTokens(tokens));
	return false;
}

/**
 * Ends the tokens at the provider, as far as it can be reached, and says where the person is signed
 * out there.
 * @param {TokenRecord} tokens
 * @param {string} page
 * @returns {Promise<string | null>}
 */
export async function signOut(tokens, page) {
	try {
		const provider = await discover(tokens.issuer);
		await revoke(provider, tokens).catch(() => {});
		return signOutUrl(provider, tokens, page);
	} catch (error) {
		if (error instanceof Problem) return null;
		throw error;
	}
}
