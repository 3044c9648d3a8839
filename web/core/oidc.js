// OpenID Connect, as far as a public client in a browser needs it: discovery, the code flow with
// PKCE, refreshing, revoking, and signing out. The provider's answers are used only where they are
// checked.

import { fromBase64url, fromUtf8, toBase64url, utf8 } from "./bytes.js";
import { Problem } from "./problem.js";
import { visibleText } from "./visible.js";

/** @typedef {import('./store.js').TokenRecord} TokenRecord */

/**
 * The gateway's settings of the provider.
 * @typedef {object} Settings
 * @property {string} issuer
 * @property {string} clientId
 * @property {string} scope
 * @property {string | null} audience
 * @property {string | null} resource
 */

/**
 * @typedef {object} Provider
 * @property {string} issuer
 * @property {string} authorization
 * @property {string} token
 * @property {string | null} revocation
 * @property {string | null} endSession
 * @property {boolean} namesItself each answer to an authorization request says who gives it (RFC
 *   9207)
 */

/**
 * A sign-in until the provider has sent the person back.
 * @typedef {object} Attempt
 * @property {Settings} settings
 * @property {string} redirectUri
 * @property {string} state
 * @property {string} nonce
 * @property {string} verifier
 */

const ANSWER_WITHIN_MS = 10_000;
/** A credential goes into headers. */
const TOKEN = /^[!-~]+$/;

function random() {
	return toBase64url(crypto.getRandomValues(new Uint8Array(32)));
}

/** @param {string} verifier */
export async function challengeOf(verifier) {
	return toBase64url(
		new Uint8Array(await crypto.subtle.digest("SHA-256", utf8(verifier))),
	);
}

/**
 * Nothing is sent where it could be read on the way, and a person is sent to no address that is no
 * web page.
 * @param {unknown} value
 * @param {string} name
 */
function endpoint(value, name) {
	const refused = Problem.of("provider", { expected: name });
	if (typeof value !== "string") throw refused;
	try {
		const { protocol, hostname, username, password, hash, href } = new URL(
			value,
		);
		const isHere =
			hostname === "localhost" ||
			hostname === "[::1]" ||
			/^127\.\d+\.\d+\.\d+$/.test(hostname);
		const isSafe = protocol === "https:" || (protocol === "http:" && isHere);
		if (isSafe && username === "" && password === "" && hash === "")
			return href;
	} catch {
		// Then it is no URL.
	}
	throw refused;
}

/**
 * @param {string} url
 * @param {URLSearchParams | null} form null: it is only read
 * @returns {Promise<{ status: number, members: any }>}
 */
async function request(url, form) {
	const aborter = new AbortController();
	const timer = setTimeout(() => aborter.abort(), ANSWER_WITHIN_MS);
	/** @type {Record<string, string>} */
	const headers = { Accept: "application/json" };
	if (form !== null)
		headers["Content-Type"] = "application/x-www-form-urlencoded";
	const away = (/** @type {unknown} */ cause) =>
		Problem.of("providerAway", { host: new URL(url).host }, cause);
	try {
		const response = await fetch(url, {
			method: form === null ? "GET" : "POST",
			headers,
			body: form === null ? null : form.toString(),
			signal: aborter.signal,
			credentials: "omit",
			cache: "no-store",
			redirect: "error",
			referrerPolicy: "no-referrer",
		});
		const text = await response.text();
		if (response.status >= 500 || response.status === 429)
			throw away(response.status);
		return { status: response.status, members: objectOf(text) };
	} catch (error) {
		throw error instanceof Problem ? error : away(error);
	} finally {
		clearTimeout(timer);
	}
}

/**
 * @param {string} text
 * @returns {any} an object, empty if the text is something else
 */
function objectOf(text) {
	try {
		const value = JSON.parse(text);
		return typeof value === "object" && value !== null ? value : {};
	} catch {
		return {};
	}
}

/**
 * Where the provider's endpoints are. It must be the one that was asked for, to the letter.
 * @param {string} issuer
 * @returns {Promise<Provider>}
 */
export async function discover(issuer) {
	const { status, members } = await request(
		`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`,
		null,
	);
	if (status !== 200)
		throw Problem.of("provider", {
			expected: "200 .well-known/openid-configuration",
		});
	if (members.issuer !== issuer)
		throw Problem.of("providerIssuer", {
			expected: issuer,
			found: visibleText(String(members.issuer)),
		});
	const optional = (/** @type {string} */ name) =>
		members[name] === undefined ? null : endpoint(members[name], name);
	return {
		issuer,
		authorization: endpoint(
			members.authorization_endpoint,
			"authorization_endpoint",
		),
		token: endpoint(members.token_endpoint, "token_endpoint"),
		revocation: optional("revocation_endpoint"),
		endSession: optional("end_session_endpoint"),
		namesItself:
			members.authorization_response_iss_parameter_supported === true,
	};
}

/**
 * Where the person signs in, and what has to be known when the provider sends them back.
 * @param {Provider} provider
 * @param {Settings} settings
 * @param {string} redirectUri
 * @returns {Promise<{ url: string, attempt: Attempt }>}
 */
export async function begin(provider, settings, redirectUri) {
	const attempt = {
		settings,
		redirectUri,
		state: random(),
		nonce: random(),
		verifier: random(),
	};
	const url = new URL(provider.authorization);
	const parameters = {
		response_type: "code",
		client_id: settings.clientId,
		redirect_uri: redirectUri,
		scope: settings.scope,
		state: attempt.state,
		nonce: attempt.nonce,
		code_challenge: await challengeOf(attempt.verifier),
		code_challenge_method: "S256",
		audience: settings.audience,
		resource: settings.resource,
	};
	for (const [name, value] of Object.entries(parameters))
		if (value !== null) url.searchParams.set(name, value);
	return { url: url.href, attempt };
}

/**
 * The code in an answer. An answer that this tab did not ask for, or from another provider, is
 * refused before anything is sent.
 * @param {URLSearchParams} answer
 * @param {Attempt | null} attempt
 * @param {Provider} provider
 */
export function codeOf(answer, attempt, provider) {
	const one = (/** @type {string} */ name) =>
		answer.getAll(name).length === 1 ? answer.get(name) : null;
	if (attempt === null || one("state") !== attempt.state)
		throw Problem.of("signInUnknown", {});
	const isNamed = answer.has("iss") || provider.namesItself;
	if (isNamed && one("iss") !== attempt.settings.issuer)
		throw Problem.of("signInIssuer", {});
	const error = answer.get("error");
	if (error !== null) {
		throw Problem.of("signInDenied", {
			error: visibleText(error),
			description: visibleText(answer.get("error_description") ?? ""),
		});
	}
	const code = one("code");
	if (code === null || code === "")
		throw Problem.of("provider", { expected: "code" });
	return code;
}

/**
 * @param {Provider} provider
 * @param {Attempt} attempt
 * @param {string} code
 * @returns {Promise<TokenRecord>}
 */
export async function exchange(provider, attempt, code) {
	const { settings, redirectUri, verifier, nonce } = attempt;
	const form = new URLSearchParams({
		grant_type: "authorization_code",
		code,
		redirect_uri: redirectUri,
		client_id: settings.clientId,
		code_verifier: verifier,
	});
	if (settings.resource !== null) form.set("resource", settings.resource);
	const { status, members } = await request(provider.token, form);
	if (status !== 200) {
		throw Problem.of("signInDenied", {
			error: visibleText(String(members.error ?? status)),
			description: visibleText(String(members.error_description ?? "")),
		});
	}
	const record = tokensOf(members, settings);
	if (record.idToken === null) return record;
	const claims = claimsOf(record.idToken);
	const isOurs =
		claims.iss === settings.issuer &&
		[claims.aud].flat().includes(settings.clientId) &&
		claims.nonce === nonce;
	if (!isOurs) throw Problem.of("provider", { expected: "id_token" });
	const name = [claims.preferred_username, claims.email, claims.name].find(
		(claim) => typeof claim === "string",
	);
	return { ...record, name: name ?? null };
}

/**
 * Fresh tokens. `signInEnded`: the person has to sign in again.
 * @param {Provider} provider
 * @param {TokenRecord} tokens
 * @returns {Promise<TokenRecord>}
 */
export async function refresh(provider, tokens) {
	if (tokens.refreshToken === null) throw Problem.of("signInEnded", {});
	const form = new URLSearchParams({
		grant_type: "refresh_token",
		refresh_token: tokens.refreshToken,
		client_id: tokens.clientId,
	});
	if (tokens.resource !== null) form.set("resource", tokens.resource);
	const { status, members } = await request(provider.token, form);
	if (status !== 200) throw Problem.of("signInEnded", {});
	const next = tokensOf(members, tokens);
	return {
		...next,
		refreshToken: next.refreshToken ?? tokens.refreshToken,
		idToken: next.idToken ?? tokens.idToken,
		name: tokens.name,
	};
}

/**
 * @param {any} members the answer of a token endpoint
 * @param {{ issuer: string, clientId: string, resource: string | null }} from
 * @returns {TokenRecord}
 */
function tokensOf(members, { issuer, clientId, resource }) {
	const {
		access_token: accessToken,
		token_type: type,
		expires_in: seconds,
	} = members;
	const isToken = (/** @type {unknown} */ value) =>
		typeof value === "string" && TOKEN.test(value);
	if (!isToken(accessToken) || String(type).toLowerCase() !== "bearer")
		throw Problem.of("provider", { expected: "access_token" });
	const issuedAt = Date.now();
	const lifetime = Number(seconds);
	return {
		issuer,
		clientId,
		resource,
		accessToken,
		issuedAt,
		expiresAt: lifetime > 0 ? issuedAt + lifetime * 1000 : null,
		refreshToken: isToken(members.refresh_token) ? members.refresh_token : null,
		idToken: isToken(members.id_token) ? members.id_token : null,
		name: null,
	};
}

/**
 * The claims of an ID token. It came from the token endpoint itself, over TLS, so its signature
 * need not be verified.
 * @param {string} token
 */
function claimsOf(token) {
	try {
		return objectOf(
			fromUtf8(fromBase64url("answer", String(token.split(".")[1]))) ?? "",
		);
	} catch {
		return {};
	}
}

/**
 * Ends the tokens at the provider, where it offers that.
 * @param {Provider} provider
 * @param {TokenRecord} tokens
 */
export async function revoke(
	provider,
	{ clientId, refreshToken, accessToken },
) {
	if (provider.revocation === null) return;
	await request(
		provider.revocation,
		new URLSearchParams({
			token: refreshToken ?? accessToken,
			token_type_hint: refreshToken === null ? "access_token" : "refresh_token",
			client_id: clientId,
		}),
	);
}

/**
 * Where the person is signed out at the provider, which then sends them back to `page`; null if it
 * offers no such place.
 * @param {Provider} provider
 * @param {TokenRecord} tokens
 * @param {string} page
 */
export function signOutUrl(provider, { clientId, idToken }, page) {
	if (provider.endSession === null) return null;
	const url = new URL(provider.endSession);
	url.searchParams.set("client_id", clientId);
	url.searchParams.set("post_logout_redirect_uri", page);
	if (idToken !== null) url.searchParams.set("id_token_hint", idToken);
	return url.href;
}
