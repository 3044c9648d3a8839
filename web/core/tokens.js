// The credential of a person who has signed in: an access token that is renewed before it ends, or
// when the gateway refuses it. Of all tabs one renews it, since a refresh token may work only once.

import { GatewayClient, loaded } from "./gateway.js";
import { Problem } from "./problem.js";

/** @typedef {import('./oidc.js').Settings} Settings */
/** @typedef {import('./store.js').TokenRecord} TokenRecord */

/** A token is renewed this long before its end, or for the last fifth of a shorter life. */
const EARLY_MS = 30_000;
const RETRY_AFTER_MS = 5_000;

/**
 * Changes to the tokens, one after another in all tabs.
 * @template T
 * @param {() => Promise<T>} act
 * @returns {Promise<T>}
 */
export async function alone(act) {
	const locks = globalThis.navigator?.locks;
	return locks ? locks.request("countersign-tokens", act) : act();
}

/** Tells all tabs, this one too, that there are other tokens, or none. */
export function tellTabs() {
	const tabs = new BroadcastChannel("countersign");
	tabs.postMessage("tokens");
	tabs.close();
}

/**
 * How people sign in at this gateway; null if they do not.
 * @param {string[]} gateways
 * @returns {Promise<Settings | null>}
 */
export async function readSettings(gateways) {
	const { members } = await new GatewayClient(gateways, null).members({
		path: "/v1/page",
		expect: [200],
	});
	const { oidc } = members;
	if (oidc === null || oidc === undefined) return null;
	const { issuer, clientId, scope, audience, resource } = oidc;
	if (![issuer, clientId, scope].every((value) => typeof value === "string"))
		throw Problem.of("answer", { expected: "oidc" });
	return {
		issuer,
		clientId,
		scope,
		audience: audience ?? null,
		resource: resource ?? null,
	};
}

/**
 * @param {TokenRecord} tokens
 * @param {number} now
 */
export function isFresh({ issuedAt, expiresAt }, now) {
	return (
		expiresAt === null ||
		now < expiresAt - Math.min(EARLY_MS, (expiresAt - issuedAt) / 5)
	);
}

/** A `Credential` of `gateway.js`. */
export class TokenSource {
	/**
	 * @param {import('./store.js').Store} store
	 * @param {string[]} gateways
	 */
	constructor(store, gateways) {
		this.store = store;
		this.gateways = gateways;
		/** @type {TokenRecord | null} */
		this.held = null;
		/** @type {Promise<string> | null} */
		this.renewing = null;
		this.retryAt = 0;
	}

	/** The next use reads the store, since another tab may have changed it. */
	forget() {
		this.held = null;
		this.retryAt = 0;
	}

	/** @returns {Promise<string>} */
	async current() {
		this.held ??= await this.store.tokens();
		if (this.held === null) throw Problem.of("signInEnded", {});
		const { held } = this;
		if (isFresh(held, Date.now())) return held.accessToken;
		const isValid = held.expiresAt !== null && Date.now() < held.expiresAt;
		if (isValid && Date.now() < this.retryAt) return held.accessToken;
		try {
			return await this.renew(held.accessToken);
		} catch (error) {
			const isAway = error instanceof Problem && error.isUnavailable;
			if (!isAway) throw error;
			this.retryAt = Date.now() + RETRY_AFTER_MS;
			if (isValid) return held.accessToken;
			throw error;
		}
	}

	/**
	 * Another token than this one.
	 * @param {string} former
	 * @returns {Promise<string>}
	 */
	renew(former) {
		this.renewing ??= alone(() => this.renewAlone(former)).finally(() => {
			this.renewing = null;
		});
		return this.renewing;
	}

	/** @param {string} former */
	async renewAlone(former) {
		const kept = await this.store.tokens();
		if (kept === null) {
			this.held = null;
			throw Problem.of("signInEnded", {});
		}
		const isOther = kept.accessToken !== former && isFresh(kept, Date.now());
		this.held = isOther ? kept : await this.refreshed(kept);
		return this.held.accessToken;
	}

	/** @param {TokenRecord} kept */
	async refreshed(kept) {
		try {
			const settings = await readSettings(this.gateways);
			// Where people sign in may have changed since.
			if (
				settings?.issuer !== kept.issuer ||
				settings.clientId !== kept.clientId
			)
				throw Problem.of("signInEnded", {});
			const { discover, refresh } = await loaded(import("./oidc.js"));
			const tokens = await refresh(await discover(kept.issuer), kept);
			await this.store.keepTokens(tokens);
			return tokens;
		} catch (error) {
			if (error instanceof Problem && error.code === "signInEnded") {
				this.held = null;
				await this.store.removeTokens();
				tellTabs();
			}
			throw error;
		}
	}
}
