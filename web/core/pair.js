// Pairing with an enforcer: by the link that it printed, or by its short code and digits that a
// person compares. An enforcer is pinned only once it is authentic.

import { randomBytes, toBase64url } from "./bytes.js";
import { requireInForce } from "./enrol.js";
import { isRefusedWith, path } from "./gateway.js";
import { parseEnforcerBundle } from "./keys.js";
import { addOperators } from "./operators.js";
import {
	beginAnswer,
	checkFingerprint,
	digitsOf,
	parseCode,
	parsePairingLink,
	proveAnswer,
} from "./pairing.js";
import { asProblem, Problem } from "./problem.js";
import { heldPairings } from "./records.js";
import { ownSeat, readTeams } from "./teams.js";
import { revokePairing, tellUnpaired } from "./unpair.js";

/** @typedef {import('./keys.js').EnforcerBundle} EnforcerBundle */
/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./store.js').EnforcerRecord} EnforcerRecord */

const NONCE = /^[\w-]{43}$/;

/**
 * An enforcer's offer, as the gateway says.
 * @param {Session} session
 * @param {string} code
 */
async function resolve({ client }, code) {
	try {
		const { members } = await client.members({
			path: path("v1", "pairing", "resolve", code),
			expect: [200],
		});
		const { nonce, publicKey } = members;
		if (typeof publicKey !== "string") throw Problem.of("enforcerKey", {});
		if (typeof nonce !== "string" || !NONCE.test(nonce))
			throw Problem.of("answer", { expected: "nonce" });
		return { bundle: parseEnforcerBundle(publicKey), nonce };
	} catch (error) {
		throw isRefusedWith(error, "NOT_FOUND")
			? Problem.of("noSuchCode", {}, error)
			: error;
	}
}

/**
 * Returns the routing token. A lost answer is not asked for again: the pairing could be complete,
 * and would be refused.
 * @param {Session} session
 * @param {string} nonce
 * @param {string} publicKey
 * @param {string} [teamId]
 */
async function complete({ client, identity }, nonce, publicKey, teamId) {
	try {
		const body = JSON.stringify({
			nonce,
			approverId: identity.approverId,
			publicKey,
			teamId,
		});
		const call = {
			path: "/v1/pairing/complete",
			body,
			once: true,
			expect: [200],
		};
		const { routingToken } = (await client.members({ method: "POST", ...call }))
			.members;
		if (typeof routingToken !== "string")
			throw Problem.of("answer", { expected: "routingToken" });
		return routingToken;
	} catch (error) {
		throw isRefusedWith(error, "NOT_FOUND", "INVALID_STATE")
			? Problem.of("noSuchCode", {}, error)
			: error;
	}
}

/**
 * This device's knowledge of an enforcer that offers a key: nothing, this key, or another one.
 * @param {Session} session
 * @param {EnforcerBundle} bundle
 * @returns {import('./types.js').OfferStanding}
 */
function standingOf({ enforcers }, { enforcerId, encryptionKey }) {
	const known = enforcers.get(enforcerId);
	if (known === undefined) return "new";
	return known.key === toBase64url(encryptionKey) ? "known" : "otherKey";
}

/**
 * The teams with which this device may pair an enforcer.
 * @param {Session} session
 */
async function ownedTeams(session) {
	const teams = (await readTeams(session)).map(({ newest }) => newest);
	return teams.filter((team) => ownSeat(session, team)?.isOwner);
}

/**
 * Reads a link, and whom it authenticates. Nothing is paired before `accept`.
 * @param {Session} session
 * @param {string} text
 */
export async function readPairingLink(session, text) {
	const link = parsePairingLink(text);
	await requireInForce(session);
	const { bundle, nonce } = await resolve(session, link.code);
	await checkFingerprint(bundle, link.fingerprint);
	return {
		enforcerId: bundle.enforcerId,
		label: bundle.label,
		standing: standingOf(session, bundle),
		teams: await ownedTeams(session),
		accept: async (
			/** @type {boolean} */ replaces,
			/** @type {string[] | null} */ operators = null,
			/** @type {import('./types.js').TeamState | null} */ team = null,
		) => {
			requireReplacement(session, bundle, replaces);
			const head = team && {
				teamId: team.teamId,
				seq: team.seq,
				digest: team.digest,
			};
			const begun = beginAnswer(
				bundle,
				nonce,
				session.identity.approverId,
				session.keys.bundle,
				randomBytes(16),
				operators,
				head,
			);
			const routingToken = await complete(
				session,
				nonce,
				await proveAnswer(begun, link.secret),
				team?.teamId,
			);
			return pin(session, bundle, routingToken, operators, team?.teamId);
		},
	};
}

/**
 * A known enforcer's key is replaced only if a person has said so: otherwise anyone who makes a
 * person open a link could take its place.
 * @param {Session} session
 * @param {EnforcerBundle} bundle
 * @param {boolean} replaces
 */
function requireReplacement(session, bundle, replaces) {
	if (standingOf(session, bundle) === "otherKey" && !replaces)
		throw Problem.of("replacesKey", { enforcerId: bundle.enforcerId });
}

/**
 * Completes a pairing by its typed code. Nothing is pinned before `confirm`.
 * @param {Session} session
 * @param {string} text
 * @param {string[] | null} operators
 */
export async function pairByCode(session, text, operators = null) {
	const code = parseCode(text);
	if (code === null) throw Problem.of("pairingCode", {});
	await requireInForce(session);
	const { bundle, nonce } = await resolve(session, code);
	const begun = beginAnswer(
		bundle,
		nonce,
		session.identity.approverId,
		session.keys.bundle,
		randomBytes(16),
		operators,
	);
	const digits = await digitsOf(begun.transcript, nonce);
	const routingToken = await complete(session, nonce, begun.answer);
	return {
		digits,
		enforcerId: bundle.enforcerId,
		label: bundle.label,
		standing: standingOf(session, bundle),
		confirm: async (/** @type {boolean} */ replaces) => {
			requireReplacement(session, bundle, replaces);
			return pin(session, bundle, routingToken, operators);
		},
		abort: () => revokePairing(session, routingToken),
	};
}

/**
 * The pairings of an enforcer that a new one does not replace: each team has one, and this person alone.
 * @param {EnforcerRecord | undefined} known
 * @param {string | undefined} teamId of the new one
 */
function heldBeside(known, teamId) {
	const held = known === undefined ? [] : heldPairings(known);
	return held.filter((pairing) => pairing.teamId !== teamId);
}

/**
 * @param {Session} session
 * @param {EnforcerBundle} bundle
 * @param {string} routingToken
 * @param {string[] | null} operators
 * @param {string} [teamId]
 * @returns {Promise<EnforcerRecord>}
 */
async function pin(
	session,
	{ enforcerId, encryptionKey, label },
	routingToken,
	operators,
	teamId,
) {
	const known = session.enforcers.get(enforcerId);
	const others = heldBeside(known, teamId);
	const key = toBase64url(encryptionKey);
	const record = {
		enforcerId,
		key,
		label,
		pairedAt: session.timestamp(),
		routingToken,
		introducedBy: null,
		operators: addOperators(known?.operators, operators ?? []),
		...(teamId === undefined ? {} : { teamId }),
		...(others.length === 0 ? {} : { others }),
	};
	// The new pairing takes the place of what the gateway was not told of the old ones.
	await tellUnpaired(session).catch(asProblem);
	try {
		await session.pin(record);
	} catch (error) {
		// The enforcer must not wait for a device that does not know it.
		await revokePairing(session, routingToken).catch(() => undefined);
		throw error;
	}
	return record;
}
