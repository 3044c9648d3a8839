// Enforcers that another device of this approver has authenticated. This device believes a
// signature of a device that it trusts, and nothing that the gateway adds: what disagrees, or was
// ended here, is not taken over.

import { toBase64url } from "./bytes.js";
import { canonical, canonicalNode, Reader, readTime } from "./canonical.js";
import { readDevices } from "./devices.js";
import { isRefusedWith, path } from "./gateway.js";
import {
	isLabel,
	readDeviceId,
	readEncryptionKey,
	readLabel,
	sign,
	verifies,
} from "./keys.js";
import { addOperators, MAX_OPERATORS, readOperators } from "./operators.js";
import { asProblem, Problem } from "./problem.js";
import { readSignature, spellSigned } from "./statements.js";
import { learnTeams, ownSeat, readTeams, teamPath } from "./teams.js";

/** @typedef {import('./json.js').Node} Node */
/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./statements.js').DeviceTrust} DeviceTrust */
/** @typedef {import('./statements.js').Subject} Subject */
/** @typedef {import('./store.js').EnforcerRecord} EnforcerRecord */

const WHAT = "introduction";
const INTRODUCE = "enforcer.introduce";
/** More than the gateway keeps: one that lists without end is not followed. */
const MAX_LISTED = 4_096;

/**
 * A well-formed introduction. It is only its signer's claim; nobody has verified it yet.
 * @typedef {object} Introduction
 * @property {Subject} subject
 * @property {string} enforcerId
 * @property {string} key in base64url
 * @property {string | null} label
 * @property {string[] | null} operators
 * @property {string | null} teamId whose members it is for, if it is not for the signer's other devices
 * @property {string} at when the enforcer was paired, on whichever device that was
 * @property {string} by
 * @property {string} text what the signature covers
 * @property {Bytes} signature
 */

/**
 * The canonical text of an introduction. A label that may not be shown is left out.
 * @param {Subject} subject
 * @param {{ enforcerId: string, key: string, label: string | null, pairedAt: string, operators?: string[] }} enforcer
 * @param {string} by
 * @param {string} [teamId] of the team that it is for
 */
export function spellIntroduction(
	{ tenantId, approverId },
	{ enforcerId, key, label, pairedAt, operators = [] },
	by,
	teamId,
) {
	/** @type {import('./types.js').JsonObject} */
	const members = {
		v: 1,
		statement: INTRODUCE,
		tenantId,
		approverId,
		enforcerId,
		x25519: key,
		at: pairedAt,
		by,
	};
	if (label !== null && isLabel(label)) members.label = label;
	if (operators.length > 0)
		members.operators = operators.slice(0, MAX_OPERATORS);
	if (teamId !== undefined) members.teamId = teamId;
	return canonical(members);
}

/**
 * @param {Node} node
 * @returns {Introduction}
 */
export function parseIntroduction(node) {
	const outer = new Reader(WHAT, node);
	const inner = outer.object("statement");
	const signature = readSignature(outer.string("signature"));
	outer.finish();
	const reader = new Reader(WHAT, inner, "/statement");
	reader.version();
	reader.oneOf("statement", [INTRODUCE]);
	const label = readLabel(reader);
	const introduction = {
		subject: {
			tenantId: reader.id("tenantId"),
			approverId: reader.id("approverId"),
		},
		enforcerId: reader.id("enforcerId"),
		key: toBase64url(readEncryptionKey(WHAT, reader.string("x25519"))),
		label,
		operators: readOperators(reader),
		teamId: reader.optionalString("teamId"),
		at: reader.time("at"),
		by: readDeviceId(reader.string("by")),
		text: canonicalNode(inner),
		signature,
	};
	reader.finish();
	return introduction;
}

/**
 * Refuses an introduction that no device in force has signed for the devices of this approver.
 * @param {Introduction} introduction
 * @param {DeviceTrust} trust
 */
export async function checkIntroduction(introduction, trust) {
	const { subject, by, teamId } = introduction;
	const { tenantId, approverId } = trust.subject;
	const isOwn =
		subject.tenantId === tenantId && subject.approverId === approverId;
	if (!isOwn || teamId !== null) throw Problem.of("otherApprover", {});
	await checkSigned(introduction, trust.device(by));
}

/**
 * Refuses an introduction that no device of an owner has signed for the members of a team.
 * @param {Introduction} introduction
 * @param {import('./types.js').Team} team
 */
export async function checkTeamIntroduction(introduction, team) {
	const { subject, by, teamId } = introduction;
	if (subject.tenantId !== team.tenantId || teamId !== team.teamId)
		throw Problem.of("otherApprover", {});
	const owner = team.seats.find(
		(seat) => seat.isOwner && seat.approverId === subject.approverId,
	);
	const signer = owner?.devices.find(({ deviceId }) => deviceId === by);
	if (signer === undefined) throw Problem.of("unknownDevice", { deviceId: by });
	await checkSigned(introduction, signer);
}

/**
 * @param {Introduction} introduction
 * @param {import('./keys.js').DeviceBundle} signer
 */
async function checkSigned({ text, signature }, signer) {
	if (!(await verifies(signer, text, signature)))
		throw Problem.of("statementSignature", {});
}

/**
 * Introductions of enforcers that this device does not know, or knows otherwise, or whose operators
 * it does not know.
 * @param {Introduction[]} introductions that were checked
 * @param {{ own: string, known: Map<string, EnforcerRecord>, ended: Map<string, string> }} here
 *   this device's id, what it has pinned, and when pairings were ended on it
 */
export function judgeIntroductions(introductions, { own, known, ended }) {
	/** @type {Session['refused']} */
	const refused = new Map();
	/** @type {Map<string, Introduction[]>} */
	const offered = new Map();
	for (const introduction of introductions) {
		const { enforcerId, at, by } = introduction;
		const end = ended.get(enforcerId);
		// A time that cannot be read is damage, and then nothing brings it back.
		if (
			end !== undefined &&
			!(Number(readTime(at)) > (readTime(end) ?? Infinity))
		)
			refused.set(enforcerId, "endedHere");
		// This device's own knowledge wins.
		else if (by !== own)
			offered.set(enforcerId, [
				...(offered.get(enforcerId) ?? []),
				introduction,
			]);
	}
	/** @type {EnforcerRecord[]} */
	const taken = [];
	for (const [enforcerId, offers] of offered) {
		const [first] = offers;
		if (first === undefined) continue;
		const isAgreed = offers.every(({ key }) => key === first.key);
		const record = known.get(enforcerId);
		const before = record?.operators?.length ?? 0;
		const operators = addOperators(
			record?.operators,
			offers.flatMap((offer) => offer.operators ?? []),
		);
		refused.delete(enforcerId);
		if (record !== undefined && (!isAgreed || record.key !== first.key))
			refused.set(enforcerId, "otherKey");
		else if (!isAgreed) refused.set(enforcerId, "disagreement");
		else if (record !== undefined) {
			if (operators.length > before) taken.push({ ...record, operators });
		} else {
			const pairedAt = offers
				.map(({ at }) => at)
				.reduce((one, at) =>
					Number(readTime(at)) > Number(readTime(one)) ? at : one,
				);
			taken.push({
				enforcerId,
				key: first.key,
				label: first.label,
				pairedAt,
				routingToken: null,
				introducedBy: first.by,
				...(first.teamId === null ? {} : { owner: first.subject.approverId }),
				operators,
			});
		}
	}
	return { taken, refused };
}

/** @param {Session} session */
function introductionsPath({ identity }) {
	return path("v1", "approvers", identity.approverId, "introductions");
}

/**
 * A list of the gateway, checked for its form only.
 * @param {Session} session
 * @param {string} path
 */
async function listIntroductions({ client }, path) {
	const node = await client.json({ path, expect: [200] });
	const listed = new Reader("answer", node)
		.array("introductions")
		.slice(0, MAX_LISTED);
	return listed.flatMap((entry) => {
		try {
			return [parseIntroduction(entry)];
		} catch (error) {
			if (error instanceof Problem) return [];
			throw error;
		}
	});
}

/**
 * An introduction that cannot be read or verified introduces nothing.
 * @param {unknown} error
 * @returns {Introduction[]}
 */
function none(error) {
	asProblem(error);
	return [];
}

/**
 * Those for the members of a team.
 * @param {Session} session
 * @param {import('./types.js').Team} team
 */
async function teamIntroductions(session, team) {
	const path = teamPath(team.teamId, "introductions");
	const listed = await listIntroductions(session, path);
	const checks = listed.map(async (introduction) => {
		await checkTeamIntroduction(introduction, team);
		return [introduction];
	});
	const checked = checks.map((check) => check.catch(none));
	return (await Promise.all(checked)).flat();
}

/**
 * Pins the enforcers that devices which this one trusts have introduced. Whether there were any.
 * @param {Session} session
 */
export async function learnEnforcers(session) {
	const { trust } = await readDevices(session);
	const listed = await listIntroductions(session, introductionsPath(session));
	await learnTeams(session).catch(none);
	const teams = await readTeams(session);
	const own = listed.map(async (introduction) => {
		await checkIntroduction(introduction, trust);
		return [introduction];
	});
	const ofTeams = teams.map(({ newest }) => teamIntroductions(session, newest));
	const checked = await Promise.all(
		[...own, ...ofTeams].map((check) => check.catch(none)),
	);
	const ended = new Map(
		(await session.store.unpaired()).map(({ enforcerId, at }) => [
			enforcerId,
			at,
		]),
	);
	const here = {
		own: session.identity.deviceId,
		known: session.enforcers,
		ended,
	};
	const { taken, refused } = judgeIntroductions(checked.flat(), here);
	for (const record of taken) await session.pin(record);
	session.refused = refused;
	return taken.length > 0;
}

/**
 * Signs and publishes an introduction of each enforcer that is known here, unless the gateway lists
 * it already. Also of those that were introduced: when the device that was paired is lost, others
 * still learn of them.
 * @param {Session} session
 */
export async function introduceEnforcers(session) {
	const own = session.identity.deviceId;
	const listed = new Set(
		(await listIntroductions(session, introductionsPath(session))).map(
			({ text }) => text,
		),
	);
	for (const record of session.enforcers.values()) {
		const text = spellIntroduction(session.subject, record, own);
		if (listed.has(text)) continue;
		try {
			await publish(session, text);
		} catch (error) {
			// The pairing has ended, perhaps on another device. Or the gateway refuses the operators:
			// without them it is not told, or every gateway could have them forgotten.
			const isOver = isRefusedWith(error, "POLICY_DENY");
			const isRefused =
				record.operators?.length && isRefusedWith(error, "VALIDATION");
			if (!isOver && !isRefused) throw error;
		}
	}
}

/**
 * Introduces the enforcers that this device has paired with a team to its members.
 * @param {Session} session
 */
export async function introduceToTeams(session) {
	const paired = [...session.enforcers.values()].filter(({ teamId }) => teamId);
	const teams = paired.length > 0 ? await readTeams(session) : [];
	for (const { newest } of teams) {
		const { teamId } = newest;
		const records = paired.filter((record) => record.teamId === teamId);
		if (records.length === 0 || !ownSeat(session, newest)?.isOwner) continue;
		const path = teamPath(teamId, "introductions");
		const listed = await listIntroductions(session, path);
		for (const record of records) {
			const own = session.identity.deviceId;
			const text = spellIntroduction(session.subject, record, own, teamId);
			if (listed.every((introduction) => introduction.text !== text))
				await publish(session, text, path);
		}
	}
}

/**
 * @param {Session} session
 * @param {string} text
 * @param {string} [path]
 */
async function publish(session, text, path = introductionsPath(session)) {
	const body = spellSigned(text, await sign(session.keys, text), null);
	const call = { path, body, expect: [200, 201] };
	await session.client.call({ method: "POST", ...call });
}
