// An introduction: the signed claim of a device that it knows an enforcer, for the other devices of its
// approver or for the members of a team; and which claims are taken over.

import { toBase64url } from "./bytes.js";
import { canonical, canonicalNode, Reader, readTime } from "./canonical.js";
import {
	isLabel,
	readDeviceId,
	readEncryptionKey,
	readLabel,
	verifies,
} from "./keys.js";
import { addOperators, MAX_OPERATORS, readOperators } from "./operators.js";
import { Problem } from "./problem.js";
import { readSignature } from "./statements.js";

/** @typedef {import('./json.js').Node} Node */
/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./statements.js').DeviceTrust} DeviceTrust */
/** @typedef {import('./statements.js').Subject} Subject */
/** @typedef {import('./store.js').EnforcerRecord} EnforcerRecord */

const WHAT = "introduction";
const INTRODUCE = "enforcer.introduce";

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
 * @param {import('./types.js').TeamState} team
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
		// The word of an own device lasts longer than that of a team.
		const basis = offers.find(({ teamId }) => teamId === null) ?? offers[0];
		if (basis === undefined) continue;
		const record = known.get(enforcerId);
		const isAgreed = offers.every(({ key }) => key === basis.key);
		const operators = addOperators(
			record?.operators,
			offers.flatMap((offer) => offer.operators ?? []),
		);
		refused.delete(enforcerId);
		if (record !== undefined && (!isAgreed || record.key !== basis.key))
			refused.set(enforcerId, "otherKey");
		else if (!isAgreed) refused.set(enforcerId, "disagreement");
		else if (record !== undefined) {
			const isOther =
				isOfTeam(record) && basis.teamId !== (record.teamId ?? null);
			if (isOther || operators.length > (record.operators?.length ?? 0))
				taken.push({
					...(isOther ? withBasis(record, basis) : record),
					operators,
				});
		} else {
			const pairedAt = offers
				.map(({ at }) => at)
				.reduce((one, at) =>
					Number(readTime(at)) > Number(readTime(one)) ? at : one,
				);
			const teamId = offers.find((offer) => offer.teamId !== null)?.teamId;
			const { key, label } = basis;
			const introduced = {
				enforcerId,
				key,
				label,
				pairedAt,
				routingToken: null,
				introducedBy: basis.by,
				...(teamId ? { teamId } : {}),
				operators,
			};
			taken.push(withBasis(introduced, basis));
		}
	}
	return { taken, refused };
}

/**
 * Whether no device of this person vouches for the key of an enforcer, but only a team.
 * @param {Pick<EnforcerRecord, 'owner'>} record
 */
export function isOfTeam({ owner }) {
	return owner !== undefined;
}

/**
 * A record that rests on another introduction.
 * @param {EnforcerRecord} record
 * @param {Introduction} basis
 * @returns {EnforcerRecord}
 */
function withBasis({ owner: _, ...record }, { by, teamId, subject }) {
	const ofTeam = teamId !== null && { teamId, owner: subject.approverId };
	return { ...record, introducedBy: by, ...ofTeam };
}
