// Enforcers that another device of this approver, or an owner of a team, has authenticated. This device
// believes a signature of a device that it trusts, and nothing that the gateway adds. One that
// disagrees with another, or is of a pairing that was ended here, is not taken over.

import { Reader } from "./canonical.js";
import { readDevices } from "./devices.js";
import { callDeadline, isRefusedWith, path } from "./gateway.js";
import {
	checkIntroduction,
	checkTeamIntroduction,
	isOfTeam,
	judgeIntroductions,
	parseIntroduction,
	spellIntroduction,
} from "./introduction.js";
import { sign } from "./keys.js";
import { asProblem, Problem } from "./problem.js";
import { heldPairings } from "./records.js";
import { spellSigned } from "./statements.js";
import {
	hasDevice,
	learnTeams,
	ownSeat,
	renewTeams,
	teamPath,
	within,
} from "./teams.js";

/** @typedef {import('./introduction.js').Introduction} Introduction */
/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./store.js').EnforcerRecord} EnforcerRecord */
/** @typedef {import('./types.js').TeamState} TeamState */

/** More than the gateway keeps: one that lists without end is not followed. */
const MAX_LISTED = 4_096;

/**
 * The newest state of a team, and the introductions to it that count by this state.
 * @typedef {{ team: TeamState, accepted: Introduction[] }} TeamIntroductions
 */

/** @param {Session} session */
function introductionsPath({ identity }) {
	return path("v1", "approvers", identity.approverId, "introductions");
}

/**
 * A list of the gateway, checked for its form only.
 * @param {Session} session
 * @param {string} path
 * @param {number} [deadline]
 */
async function listIntroductions({ client }, path, deadline) {
	const call = { path, expect: [200] };
	const node = await client.json(within(deadline, call));
	const listed = new Reader("answer", node)
		.array("introductions")
		.slice(0, MAX_LISTED);
	return listed.flatMap((entry) => {
		try {
			return [parseIntroduction(entry)];
		} catch (error) {
			return none(error);
		}
	});
}

/**
 * An introduction or a team that cannot be read or verified introduces nothing.
 * @param {unknown} error
 * @returns {never[]}
 */
function none(error) {
	asProblem(error);
	return [];
}

/**
 * Those that pass a check.
 * @param {Introduction[]} listed
 * @param {(introduction: Introduction) => Promise<void>} check
 */
async function accept(listed, check) {
	const checks = listed.map((introduction) =>
		check(introduction).then(() => [introduction], none),
	);
	return (await Promise.all(checks)).flat();
}

/**
 * The introductions to the teams of this device. A team that cannot be read now, such as one that this
 * person has left, is not among them.
 * @param {Session} session
 * @param {number} [deadline] of all calls together
 * @returns {Promise<TeamIntroductions[]>}
 */
export async function readTeamIntroductions(session, deadline) {
	const teams = await renewTeams(session, deadline);
	const read = teams.map(async ({ newest: team }) => {
		const path = teamPath(team.teamId, "introductions");
		const listed = await listIntroductions(session, path, deadline);
		const accepted = await accept(listed, (introduction) =>
			checkTeamIntroduction(introduction, team),
		);
		return [{ team, accepted }];
	});
	return (await Promise.all(read.map((one) => one.catch(none)))).flat();
}

/**
 * The introductions of an enforcer with the key that is known here.
 * @param {TeamIntroductions} ofTeam
 * @param {EnforcerRecord} record
 */
function introductionsOf({ accepted }, { enforcerId, key }) {
	return accepted.filter(
		(introduction) =>
			introduction.enforcerId === enforcerId && introduction.key === key,
	);
}

/**
 * Whether a record rests on this team alone and has lost that basis. An owner who left without being
 * removed cannot be told from a thief, so their word does not last.
 * @param {TeamIntroductions} ofTeam
 * @param {EnforcerRecord} record
 */
function hasDropped(ofTeam, record) {
	const { teamId, seats } = ofTeam.team;
	if (!isOfTeam(record) || record.teamId !== teamId) return false;
	const isOwners = seats.some(
		(seat) => seat.isOwner && hasDevice(seat, String(record.introducedBy)),
	);
	return !isOwners && introductionsOf(ofTeam, record).length === 0;
}

/**
 * Pins the enforcers that devices which this one trusts have introduced. One that only a team has
 * introduced is forgotten with its basis there.
 * @param {Session} session
 */
async function learn(session) {
	const { trust } = await readDevices(session);
	const listed = await listIntroductions(session, introductionsPath(session));
	const own = await accept(listed, (introduction) =>
		checkIntroduction(introduction, trust),
	);
	// Without it, only agents that are introduced to teams are missing.
	await learnTeams(session).catch(none);
	const ofTeams = await readTeamIntroductions(session);
	const ended = (await session.store.unpaired()).map(
		({ enforcerId, at }) => /** @type {const} */ ([enforcerId, at]),
	);
	// Another tab may have paired.
	await session.reload();
	const dropped = [...session.enforcers.values()].filter((record) =>
		ofTeams.some((ofTeam) => hasDropped(ofTeam, record)),
	);
	for (const { enforcerId } of dropped) await session.drop(enforcerId);
	const here = {
		own: session.identity.deviceId,
		known: session.enforcers,
		ended: new Map(ended),
	};
	const offered = [...own, ...ofTeams.flatMap(({ accepted }) => accepted)];
	const { taken, refused } = judgeIntroductions(offered, here);
	for (const record of taken) await session.pin(record);
	session.refused = refused;
	return { hasChanged: dropped.length + taken.length > 0, ofTeams };
}

/**
 * Takes over the enforcers that other devices know. Whether that changed any.
 * @param {Session} session
 */
export async function learnEnforcers(session) {
	return (await learn(session)).hasChanged;
}

/**
 * The same, and publishes those that this device knows. It can be called again at any time.
 * @param {Session} session
 * @param {() => Promise<void>} learned called if enforcers have changed
 */
export async function shareEnforcers(session, learned) {
	const { hasChanged, ofTeams } = await learn(session);
	if (hasChanged) await learned();
	const introducing = [
		() => introduceEnforcers(session),
		() => introduceToTeams(session, ofTeams),
	];
	await each(introducing, (act) => act());
}

/**
 * Tries all, and throws the first problem only then.
 * @template T
 * @param {Iterable<T>} list
 * @param {(one: T) => Promise<void>} act
 */
async function each(list, act) {
	/** @type {Problem | null} */
	let failure = null;
	for (const one of list) {
		try {
			await act(one);
		} catch (error) {
			failure ??= asProblem(error);
		}
	}
	if (failure !== null) throw failure;
}

/**
 * Signs and publishes an introduction of each enforcer that is known here, unless the gateway lists
 * it already. It includes those that another own device has introduced: when the device that was
 * paired is lost, others still learn of them.
 * @param {Session} session
 */
export async function introduceEnforcers(session) {
	const own = session.identity.deviceId;
	const path = introductionsPath(session);
	const listed = await listIntroductions(session, path);
	// Devices of this person that a team has introduced an enforcer to learn it there themselves.
	const records = [...session.enforcers.values()].filter(
		(record) => !isOfTeam(record),
	);
	await each(records, async (record) => {
		const text = spellIntroduction(session.subject, record, own);
		if (listed.some((introduction) => introduction.text === text)) return;
		try {
			await publish(session, text, path);
		} catch (error) {
			// The pairing has ended, perhaps on another device. Or the gateway refuses the operators:
			// without them it is not told, or every gateway could have them forgotten.
			const isOver = isRefusedWith(error, "POLICY_DENY");
			const isRefused =
				record.operators?.length && isRefusedWith(error, "VALIDATION");
			if (!isOver && !isRefused) throw error;
		}
	});
}

/**
 * Vouches for the enforcers of the teams that this person owns, as far as this device or another own one
 * has paired them. Those of another owner alone end with that owner, who may be malicious.
 * @param {Session} session
 * @param {TeamIntroductions[]} ofTeams
 * @param {number} [deadline] of all calls together
 */
export async function introduceToTeams(session, ofTeams, deadline) {
	const { inForce } = await session.trust();
	const owned = ofTeams.filter(({ team }) => ownSeat(session, team)?.isOwner);
	await each(owned, (ofTeam) => {
		const { teamId } = ofTeam.team;
		const isVouched = (/** @type {EnforcerRecord} */ record) => {
			const isNewest = record.introducedBy === null && record.teamId === teamId;
			const held = heldPairings(record);
			if (isNewest || held.some((pairing) => pairing.teamId === teamId))
				return true;
			const listed = introductionsOf(ofTeam, record);
			// A device on the own seat that this one does not trust may be a thief's.
			return isOfTeam(record)
				? listed.some(({ by }) => hasDevice({ devices: inForce }, by))
				: listed.length > 0;
		};
		const records = [...session.enforcers.values()].filter(isVouched);
		return each(records, (record) =>
			introduceTo(session, ofTeam, record, deadline),
		);
	});
}

/**
 * The same before another own device is revoked, whose introductions members would forget. No enforcer
 * is learned: a thief may have introduced it. It takes no longer than one call.
 * @param {Session} session
 */
export async function vouchForOwn(session) {
	const deadline = callDeadline();
	const ofTeams = await readTeamIntroductions(session, deadline);
	await introduceToTeams(session, ofTeams, deadline);
}

/**
 * @param {Session} session
 * @param {TeamIntroductions} ofTeam
 * @param {EnforcerRecord} record
 * @param {number} [deadline]
 */
async function introduceTo(session, { team, accepted }, record, deadline) {
	const { teamId } = team;
	const own = session.identity.deviceId;
	const text = spellIntroduction(session.subject, record, own, teamId);
	if (accepted.some((introduction) => introduction.text === text)) return;
	try {
		const path = teamPath(teamId, "introductions");
		await publish(session, text, path, deadline);
	} catch (error) {
		// Another owner may have ended the pairing, or removed this device or its person.
		const codes = ["POLICY_DENY", "SIGNATURE_INVALID", "NOT_FOUND"];
		if (!isRefusedWith(error, ...codes)) throw error;
	}
}

/**
 * @param {Session} session
 * @param {string} text
 * @param {string} path
 * @param {number} [deadline]
 */
async function publish(session, text, path, deadline) {
	const body = spellSigned(text, await sign(session.keys, text), null);
	const call = { path, body, expect: [200, 201] };
	await session.client.call(within(deadline, { method: "POST", ...call }));
}
