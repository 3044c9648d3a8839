// Signing in: PKCE, what is bound to this tab, discovery, the answer, and how tokens are renewed.
// The provider and the gateway are functions of this file.

import { toBase64url, utf8 } from "../core/bytes.js";
import { GatewayClient } from "../core/gateway.js";
import {
	begin,
	challengeOf,
	codeOf,
	discover,
	exchange,
	refresh,
	revoke,
	signOutUrl,
} from "../core/oidc.js";
import { Problem } from "../core/problem.js";
import { beginSignIn, finishSignIn } from "../core/signin.js";
import { isFresh, readSettings, TokenSource } from "../core/tokens.js";
import { assert, assertEqual, assertRefused } from "./support.js";

const ISSUER = "https://login.example.com/realms/acme";
const PAGE = "https://approve.example.com/";
const GATEWAY = "https://gateway.example.com";

/** @type {import('../core/oidc.js').Settings} */
const SETTINGS = {
	issuer: ISSUER,
	clientId: "page",
	scope: "openid offline_access",
	audience: null,
	resource: null,
};

const METADATA = {
	issuer: ISSUER,
	authorization_endpoint: `${ISSUER}/authorize?realm=acme`,
	token_endpoint: "https://api.example.com/token",
	revocation_endpoint: `${ISSUER}/revoke`,
	end_session_endpoint: `${ISSUER}/logout`,
};

/** @typedef {{ url: string, form: Record<string, string>, authorization: string | null }} Asked */

/**
 * Runs `act` with answers by the end of the address, and gives what was asked.
 * @param {Record<string, (asked: Asked) => [number, unknown] | null>} answers null: it cannot be
 *   reached
 * @param {() => Promise<void>} act
 * @returns {Promise<Asked[]>}
 */
async function answering(answers, act) {
	const before = globalThis.fetch;
	/** @type {Asked[]} */
	const asked = [];
	globalThis.fetch = /** @type {any} */ (
		async (/** @type {string} */ url, /** @type {any} */ options) => {
			assertEqual(
				[options.credentials, options.redirect, options.referrerPolicy],
				["omit", "error", "no-referrer"],
				url,
			);
			const one = {
				url,
				form: Object.fromEntries(new URLSearchParams(options.body ?? "")),
				authorization: options.headers.Authorization ?? null,
			};
			asked.push(one);
			const found = Object.entries(answers).find(([end]) => url.endsWith(end));
			const answer = found?.[1](one) ?? null;
			if (answer === null) throw new TypeError("Failed to fetch");
			return new Response(
				typeof answer[1] === "string" ? answer[1] : JSON.stringify(answer[1]),
				{ status: answer[0] },
			);
		}
	);
	try {
		await act();
	} finally {
		globalThis.fetch = before;
	}
	return asked;
}

/** @param {object} claims */
function idToken(claims) {
	return `e30.${toBase64url(utf8(JSON.stringify(claims)))}.c2ln`;
}

/** @param {object} [change] */
function metadata(change = {}) {
	return {
		"/.well-known/openid-configuration": () =>
			/** @type {[number, unknown]} */ ([200, { ...METADATA, ...change }]),
	};
}

/** @param {object} [change] */
async function provider(change) {
	/** @type {import('../core/oidc.js').Provider | null} */
	let found = null;
	await answering(metadata(change), async () => {
		found = await discover(ISSUER);
	});
	return /** @type {import('../core/oidc.js').Provider} */ (
		/** @type {unknown} */ (found)
	);
}

/** A tab's storage. */
function storage() {
	/** @type {Map<string, string>} */
	const items = new Map();
	return /** @type {any} */ ({
		items,
		getItem: (/** @type {string} */ key) => items.get(key) ?? null,
		setItem: (/** @type {string} */ key, /** @type {string} */ value) =>
			void items.set(key, value),
		removeItem: (/** @type {string} */ key) => void items.delete(key),
	});
}

/**
 * A browser's storage.
 * @param {any} tokens
 * @param {any} [profile]
 */
function keeping(tokens, profile = null) {
	const store = {
		kept: tokens,
		kind: profile,
		tokens: async () => store.kept,
		keepTokens: async (/** @type {any} */ record) => {
			store.kept = record;
		},
		removeTokens: async () => {
			store.kept = null;
		},
		profile: async () => store.kind,
		keepProfile: async (/** @type {any} */ made, /** @type {any} */ record) => {
			store.kind = made;
			store.kept = record;
		},
	};
	return /** @type {any} */ (store);
}

/** @param {object} [change] */
function tokens(change) {
	return {
		issuer: ISSUER,
		clientId: "page",
		resource: null,
		accessToken: "first",
		issuedAt: Date.now() - 1000,
		expiresAt: Date.now() + 1000,
		refreshToken: "again",
		idToken: null,
		name: "alice",
		...change,
	};
}

const GIVEN = { access_token: "second", token_type: "Bearer", expires_in: 300 };
const OFFERED = {
	"/v1/page": () =>
		/** @type {[number, unknown]} */ ([
			200,
			{ oidc: { issuer: ISSUER, clientId: "page", scope: "openid" } },
		]),
};

/** @type {import('./support.js').Tests} */
export const tests = {
	async "the challenge of PKCE, as RFC 7636 has it"() {
		assertEqual(
			await challengeOf("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
			"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
		);
	},

	async "an authorization request says what is asked, and each has secrets of its own"() {
		const settings = {
			...SETTINGS,
			audience: "https://gateway.example.com",
			resource: "urn:gateway",
		};
		const { url, attempt } = await begin(await provider(), settings, PAGE);
		const { origin, pathname, searchParams } = new URL(url);
		assertEqual(origin + pathname, `${ISSUER}/authorize`);
		assertEqual(Object.fromEntries(searchParams), {
			realm: "acme",
			response_type: "code",
			client_id: "page",
			redirect_uri: PAGE,
			scope: "openid offline_access",
			state: attempt.state,
			nonce: attempt.nonce,
			code_challenge: await challengeOf(attempt.verifier),
			code_challenge_method: "S256",
			audience: "https://gateway.example.com",
			resource: "urn:gateway",
		});
		const other = await begin(await provider(), SETTINGS, PAGE);
		const secrets = [attempt, other.attempt].flatMap(
			({ state, nonce, verifier }) => [state, nonce, verifier],
		);
		assertEqual(new Set(secrets).size, 6);
		assert(
			secrets.every((secret) => secret.length === 43),
			"256 bits",
		);
		assert(
			!other.url.includes("audience") && !other.url.includes("resource"),
			"not sent unless configured",
		);
	},

	async "the provider is the one that was asked for, and its endpoints are safe to use"() {
		const asked = await answering(
			metadata(),
			async () => void (await discover(ISSUER)),
		);
		assertEqual(asked[0]?.url, `${ISSUER}/.well-known/openid-configuration`);
		const slash = "https://tenant.auth0.example/";
		const there = await answering(
			metadata({ issuer: slash }),
			async () => void (await discover(slash)),
		);
		assertEqual(
			there[0]?.url,
			"https://tenant.auth0.example/.well-known/openid-configuration",
		);
		for (const issuer of [
			`${ISSUER}/`,
			ISSUER.toUpperCase(),
			"https://evil.example.com",
			undefined,
			null,
		]) {
			await assertRefused(() => provider({ issuer }), "providerIssuer");
		}
		for (const name of [
			"authorization_endpoint",
			"token_endpoint",
			"revocation_endpoint",
			"end_session_endpoint",
		]) {
			for (const value of [
				"javascript:alert(1)",
				"http://login.example.com/x",
				"https://me:word@login.example.com/",
				"/token",
				7,
				null,
			]) {
				await assertRefused(() => provider({ [name]: value }), "provider");
			}
			await provider({ [name]: "http://127.0.0.1:8090/x" });
		}
		await assertRefused(
			() =>
				answering(
					{ configuration: () => [404, "no"] },
					async () => void (await discover(ISSUER)),
				),
			"provider",
		);
		for (const answer of [
			() => /** @type {[number, unknown]} */ ([503, {}]),
			() => null,
		]) {
			await assertRefused(
				() =>
					answering(
						{ configuration: answer },
						async () => void (await discover(ISSUER)),
					),
				"providerAway",
			);
		}
	},

	async "an answer counts for the attempt of this tab, from the provider that was asked"() {
		const [known, naming] = [
			await provider(),
			await provider({ authorization_response_iss_parameter_supported: true }),
		];
		const { attempt } = await begin(known, SETTINGS, PAGE);
		const code = (
			/** @type {string} */ text,
			own = /** @type {typeof attempt | null} */ (attempt),
			from = known,
		) => codeOf(new URLSearchParams(text), own, from);
		const good = `code=abc&state=${attempt.state}`;
		assertEqual(
			[code(good), code(`${good}&iss=${ISSUER}`, attempt, naming)],
			["abc", "abc"],
		);
		for (const bad of [
			"code=abc",
			"code=abc&state=",
			"code=abc&state=other",
			`${good}&state=other`,
			`${good}&state=${attempt.state}`,
		]) {
			await assertRefused(() => code(bad), "signInUnknown");
		}
		await assertRefused(() => code(good, null), "signInUnknown");
		await assertRefused(
			() => code("error=access_denied&state=other"),
			"signInUnknown",
		);
		await assertRefused(
			() => code(`${good}&iss=https://evil.example.com`),
			"signInIssuer",
		);
		await assertRefused(
			() => code(`${good}&iss=${ISSUER}&iss=${ISSUER}`),
			"signInIssuer",
		);
		await assertRefused(() => code(good, attempt, naming), "signInIssuer");
		await assertRefused(() => code(`state=${attempt.state}`), "provider");
		try {
			code(
				`error=access_denied&error_description=Not%20today&state=${attempt.state}`,
			);
			assert(false, "refused");
		} catch (error) {
			if (!(error instanceof Problem)) throw error;
			assertEqual(
				[error.code, error.values],
				["signInDenied", { error: "access_denied", description: "Not today" }],
			);
		}
	},

	async "a code becomes tokens, with the verifier and for this client"() {
		const known = await provider();
		const { attempt } = await begin(
			known,
			{ ...SETTINGS, resource: "urn:gateway" },
			PAGE,
		);
		const claims = {
			iss: ISSUER,
			aud: "page",
			nonce: attempt.nonce,
			email: "alice@example.com",
		};
		const given = (/** @type {object} */ change) => ({
			"/token": () =>
				/** @type {[number, unknown]} */ ([
					200,
					{ ...GIVEN, id_token: idToken(claims), ...change },
				]),
		});
		/** @type {any} */
		let record = null;
		const asked = await answering(
			given({ refresh_token: "again" }),
			async () => {
				record = await exchange(known, attempt, "abc");
			},
		);
		assertEqual(asked[0]?.form, {
			grant_type: "authorization_code",
			code: "abc",
			redirect_uri: PAGE,
			client_id: "page",
			code_verifier: attempt.verifier,
			resource: "urn:gateway",
		});
		assertEqual(
			[record.accessToken, record.refreshToken, record.name, record.resource],
			["second", "again", "alice@example.com", "urn:gateway"],
		);
		assertEqual(record.expiresAt - record.issuedAt, 300_000);
		const refused = (/** @type {object} */ change) => () =>
			answering(
				given(change),
				async () => void (await exchange(known, attempt, "abc")),
			);
		for (const wrong of [
			{ iss: "https://evil.example.com" },
			{ aud: "other" },
			{ aud: ["other"] },
			{ nonce: "other" },
			{ nonce: undefined },
		]) {
			await assertRefused(
				refused({ id_token: idToken({ ...claims, ...wrong }) }),
				"provider",
			);
		}
		await assertRefused(refused({ id_token: "nonsense" }), "provider");
		await refused({
			id_token: idToken({ ...claims, aud: ["other", "page"] }),
		})();
		await refused({ id_token: undefined })();
		for (const wrong of [
			{ access_token: undefined },
			{ access_token: "a b" },
			{ access_token: 7 },
			{ token_type: "DPoP" },
			{ token_type: undefined },
		]) {
			await assertRefused(refused(wrong), "provider");
		}
		await assertRefused(
			() =>
				answering(
					{ "/token": () => [400, { error: "invalid_grant" }] },
					async () => void (await exchange(known, attempt, "abc")),
				),
			"signInDenied",
		);
		await assertRefused(
			() =>
				answering(
					{ "/token": () => null },
					async () => void (await exchange(known, attempt, "abc")),
				),
			"providerAway",
		);
	},

	async "tokens are refreshed, revoked and signed out"() {
		const known = await provider();
		const kept = tokens({ idToken: "e30.e30.e30" });
		/** @type {any} */
		let next = null;
		const asked = await answering(
			{ "/token": () => [200, GIVEN], "/revoke": () => [200, ""] },
			async () => {
				next = await refresh(known, kept);
				await revoke(known, kept);
			},
		);
		assertEqual(
			asked.map(({ form }) => form),
			[
				{
					grant_type: "refresh_token",
					refresh_token: "again",
					client_id: "page",
				},
				{ token: "again", token_type_hint: "refresh_token", client_id: "page" },
			],
		);
		assertEqual(
			[next.accessToken, next.refreshToken, next.idToken, next.name],
			["second", "again", "e30.e30.e30", "alice"],
		);
		const rotated = {
			"/token": () =>
				/** @type {[number, unknown]} */ ([
					200,
					{ ...GIVEN, refresh_token: "third" },
				]),
		};
		await answering(rotated, async () =>
			assertEqual((await refresh(known, kept)).refreshToken, "third"),
		);
		for (const status of [400, 401, 403]) {
			await assertRefused(
				() =>
					answering(
						{ "/token": () => [status, {}] },
						async () => void (await refresh(known, kept)),
					),
				"signInEnded",
			);
		}
		await assertRefused(
			() =>
				answering(
					{ "/token": () => [502, ""] },
					async () => void (await refresh(known, kept)),
				),
			"providerAway",
		);
		await assertRefused(
			() => refresh(known, tokens({ refreshToken: null })),
			"signInEnded",
		);
		const url = new URL(String(signOutUrl(known, kept, PAGE)));
		assertEqual(Object.fromEntries(url.searchParams), {
			client_id: "page",
			post_logout_redirect_uri: PAGE,
			id_token_hint: "e30.e30.e30",
		});
		const poor = await provider({
			revocation_endpoint: undefined,
			end_session_endpoint: undefined,
		});
		assertEqual(
			[signOutUrl(poor, kept, PAGE), await revoke(poor, kept)],
			[null, undefined],
		);
	},

	async "what a gateway offers"() {
		await answering(OFFERED, async () =>
			assertEqual(await readSettings([GATEWAY]), {
				...SETTINGS,
				scope: "openid",
			}),
		);
		await answering({ "/v1/page": () => [200, { oidc: null }] }, async () =>
			assertEqual(await readSettings([GATEWAY]), null),
		);
		await assertRefused(
			() =>
				answering(
					{ "/v1/page": () => [200, { oidc: { issuer: ISSUER } }] },
					async () => void (await readSettings([GATEWAY])),
				),
			"answer",
		);
	},

	async "a sign-in makes a device, once, and for whoever the gateway says"() {
		const tab = storage();
		const place = { gateways: [GATEWAY], page: PAGE };
		await assertRefused(() => beginSignIn(place, " ", tab), "deviceName");
		await assertRefused(
			() =>
				answering(
					{ "/v1/page": () => [200, { oidc: null }] },
					async () => void (await beginSignIn(place, "Laptop", tab)),
				),
			"noSignIn",
		);
		const who = { tenantId: "t", role: "approver", boundId: "alice" };
		/**
		 * @param {any} store
		 * @param {[number, unknown]} answered
		 * @param {string | null} deviceName
		 */
		const signIn = async (store, answered, deviceName) => {
			/** @type {{ isNew: boolean } | null} */
			let finished = null;
			let refused = "";
			const asked = await answering(
				{
					...OFFERED,
					...metadata(),
					"/token": () => [200, GIVEN],
					"/revoke": () => [200, ""],
					"/v1/whoami": () => answered,
				},
				async () => {
					const state = new URL(
						await beginSignIn(place, deviceName, tab),
					).searchParams.get("state");
					const answer = new URLSearchParams({
						code: "abc",
						state: String(state),
					});
					try {
						finished = await finishSignIn(store, [GATEWAY], answer, tab);
					} catch (error) {
						if (!(error instanceof Problem)) throw error;
						refused = error.code;
					}
					assertEqual(tab.items.size, 0);
					await assertRefused(
						() => finishSignIn(store, [GATEWAY], answer, tab),
						"signInUnknown",
					);
				},
			);
			const isRevoked = asked.some(({ url }) => url.endsWith("/revoke"));
			const presented = asked.find(({ url }) =>
				url.endsWith("/v1/whoami"),
			)?.authorization;
			assertEqual(presented, "Bearer second");
			return { finished, refused, isRevoked };
		};
		const store = keeping(null);
		assertEqual(await signIn(store, [200, who], "Laptop"), {
			finished: { isNew: true },
			refused: "",
			isRevoked: false,
		});
		const { tenantId, approverId, deviceName, credential } = store.kind;
		assertEqual(
			[tenantId, approverId, deviceName, credential, store.kept.accessToken],
			["t", "alice", "Laptop", null, "second"],
		);
		const { keys } = store.kind;
		store.kept = null;
		assertEqual(await signIn(store, [200, who], null), {
			finished: { isNew: false },
			refused: "",
			isRevoked: false,
		});
		assert(
			store.kind.keys === keys && store.kept.accessToken === "second",
			"the keys are kept",
		);
		assertEqual(
			(await signIn(keeping(null), [200, who], null)).refused,
			"signInUnknown",
		);
		for (const [
			answered,
			code,
		] of /** @type {[[number, unknown], string][]} */ ([
			[[200, { ...who, boundId: "bob" }], "otherPerson"],
			[[200, { ...who, tenantId: "other" }], "otherPerson"],
			[[200, { ...who, role: "admin" }], "notAnApprover"],
			[[200, { tenantId: "t", role: "approver" }], "notAnApprover"],
			[[401, {}], "signInRefused"],
			[[200, { ...who, tenantId: 7 }], "answer"],
		])) {
			const kept = keeping("before", store.kind);
			assertEqual(
				await signIn(kept, answered, null),
				{ finished: null, refused: code, isRevoked: true },
				code,
			);
			assertEqual(kept.kept, "before");
		}
		assertEqual(
			(
				await signIn(
					keeping(null, { ...store.kind, credential: "key" }),
					[200, who],
					null,
				)
			).refused,
			"alreadyJoined",
		);
	},

	"a token is renewed early, and no earlier than its life allows"() {
		const at = 1_000_000;
		const fresh = (/** @type {number | null} */ expiresAt) =>
			isFresh(/** @type {any} */ ({ issuedAt: at, expiresAt }), at + 300_000);
		assertEqual(
			[
				fresh(null),
				fresh(at + 331_000),
				fresh(at + 329_000),
				fresh(at + 300_000),
			],
			[true, true, false, false],
		);
		assert(
			isFresh(
				/** @type {any} */ ({ issuedAt: at, expiresAt: at + 5_000 }),
				at + 3_900,
			),
			"a short life",
		);
	},

	async "a token that ends soon is renewed once, whoever asks"() {
		const store = keeping(
			tokens({ issuedAt: Date.now() - 10_000, expiresAt: Date.now() + 1_000 }),
		);
		const source = new TokenSource(store, [GATEWAY]);
		const asked = await answering(
			{ ...OFFERED, ...metadata(), "/token": () => [200, GIVEN] },
			async () => {
				assertEqual(
					await Promise.all([
						source.current(),
						source.current(),
						source.current(),
					]),
					["second", "second", "second"],
				);
				assertEqual(await source.current(), "second");
			},
		);
		assertEqual(asked.filter(({ url }) => url.endsWith("/token")).length, 1);
		assertEqual(
			[store.kept.accessToken, store.kept.refreshToken],
			["second", "again"],
		);
		// Another tab has renewed it: nothing is asked.
		store.kept = tokens({
			accessToken: "other",
			expiresAt: Date.now() + 600_000,
		});
		assertEqual(await source.current(), "second");
		source.forget();
		assertEqual(await source.current(), "other");
		store.kept = tokens({
			accessToken: "third",
			expiresAt: Date.now() + 600_000,
		});
		assertEqual(
			await answering({}, async () =>
				assertEqual(await source.renew("second"), "third"),
			),
			[],
		);
	},

	async "while the provider is away a token serves to its end, and no longer"() {
		const store = keeping(
			tokens({ issuedAt: Date.now() - 10_000, expiresAt: Date.now() + 1_000 }),
		);
		const source = new TokenSource(store, [GATEWAY]);
		const asked = await answering(
			{ ...OFFERED, "/configuration": () => null },
			async () => {
				assertEqual(
					[await source.current(), await source.current()],
					["first", "first"],
				);
			},
		);
		assertEqual(asked.length, 2, "not asked again at once");
		store.kept = tokens({ expiresAt: Date.now() - 1 });
		const late = new TokenSource(store, [GATEWAY]);
		await assertRefused(
			() =>
				answering(
					{ ...OFFERED, "/configuration": () => null },
					async () => void (await late.current()),
				),
			"providerAway",
		);
		assertEqual(store.kept.refreshToken, "again");
	},

	async "a refresh that is refused ends the sign-in, and so does another provider"() {
		const changed = {
			"/v1/page": () =>
				/** @type {[number, unknown]} */ ([
					200,
					{ oidc: { issuer: ISSUER, clientId: "other", scope: "openid" } },
				]),
		};
		const none = {
			"/v1/page": () =>
				/** @type {[number, unknown]} */ ([200, { oidc: null }]),
		};
		for (const [answers, count] of /** @type {[any, number][]} */ ([
			[
				{
					...OFFERED,
					...metadata(),
					"/token": () => [400, { error: "invalid_grant" }],
				},
				3,
			],
			[changed, 1],
			[none, 1],
		])) {
			const store = keeping(tokens({ expiresAt: Date.now() - 1 }));
			const source = new TokenSource(store, [GATEWAY]);
			const asked = await answering(answers, async () => {
				await assertRefused(() => source.current(), "signInEnded");
				await assertRefused(() => source.current(), "signInEnded");
			});
			assertEqual([asked.length, store.kept], [count, null]);
		}
	},

	async "a call whose token is refused is made again with a fresh one, once"() {
		const store = keeping(tokens({ expiresAt: Date.now() + 600_000 }));
		const client = new GatewayClient(
			[GATEWAY],
			new TokenSource(store, [GATEWAY]),
		);
		const call = { path: "/v1/pairings", expect: [200] };
		/** @param {string[]} accepted */
		const gateway = (accepted) => ({
			...OFFERED,
			...metadata(),
			"/token": () => /** @type {[number, unknown]} */ ([200, GIVEN]),
			"/v1/pairings": (/** @type {Asked} */ { authorization }) =>
				/** @type {[number, unknown]} */ ([
					accepted.includes(String(authorization)) ? 200 : 401,
					{},
				]),
		});
		const asked = await answering(
			gateway(["Bearer second"]),
			async () => void (await client.call(call)),
		);
		assertEqual(
			asked
				.filter(({ url }) => url.endsWith("/v1/pairings"))
				.map(({ authorization }) => authorization),
			["Bearer first", "Bearer second"],
		);
		await assertRefused(
			() => answering(gateway([]), async () => void (await client.call(call))),
			"signInRefused",
		);
		const invited = new GatewayClient([GATEWAY], "key");
		await assertRefused(
			() => answering(gateway([]), async () => void (await invited.call(call))),
			"credential",
		);
	},
};
