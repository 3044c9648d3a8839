// The own seat in a team: its devices, and who stands in. A member changes them alone.

import { randomBytes, toBase64url } from "./bytes.js";
import { parse, Reader, readTime, spellTime } from "./canonical.js";
import { isRefusedWith, sleep } from "./gateway.js";
import { asProblem, Problem } from "./problem.js";
import { parseState, peopleOf, seatsOf, spellNext } from "./team.js";
import { receiveConsent, spellTeamLink } from "./teamconsent.js";
import {
	chainOf,
	hasDevice,
	ownSeat,
	recordOf,
	refresh,
	teamPath,
} from "./teams.js";

/** @typedef {import('./keys.js').DeviceBundle} DeviceBundle */
/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./store.js').TeamRecord} TeamRecord */
/** @typedef {import('./team.js').TeamChain} TeamChain */
/** @typedef {import('./types.js').TeamSeat} TeamSeat */
/** @typedef {import('./types.js').TeamState} TeamState */

/** A state that another member published meanwhile is read, and the change made to that one. */
const ATTEMPTS = 3;
const POLL_MS = 2_000;

/**
 * @param {Session} session
 * @param {string} teamId
 */
async function readTeam(session, teamId) {
	const record = await session.store.team(teamId);
	if (record === null) throw Problem.of("teamUnknown", {});
	return refresh(session, record);
}

/**
 * Publishes a state that differs only in the own seat. Gives the newest states.
 * @param {Session} session
 * @param {string} teamId
 * @param {(own: TeamSeat, seat: any, team: TeamState) => import('./types.js').JsonObject | null} change
 *   of the seat as it is spelled; null: there is nothing to change
 * @returns {Promise<TeamChain>}
 */
async function publishSeat(session, teamId, change) {
	for (let attempt = 1; ; attempt += 1) {
		const chain = await readTeam(session, teamId);
		const team = chain.newest;
		const { approverId } = session.identity;
		const isOwn = (/** @type {{ approverId: string }} */ seat) =>
			seat.approverId === approverId;
		const own = team.seats.find(isOwn);
		if (own === undefined) return chain;
		const seat = change(own, seatsOf(team).find(isOwn), team);
		if (seat === null) return chain;
		// Another device of this person has to add this one first.
		if (ownSeat(session, team) === null)
			throw Problem.of("notOnSeat", { team: team.name });
		const body = await spellNext(
			chain,
			session.keys,
			session.timestamp(),
			seat,
		);
		// Nothing is published that this device would not follow.
		await chain.follow(await parseState(parse("team", body)));
		const path = teamPath(teamId, "states");
		try {
			const call = { path, body, expect: [200, 201] };
			await session.client.call({ method: "POST", ...call });
			await session.store.keepTeam(recordOf(chain));
			return chain;
		} catch (error) {
			const isTaken = isRefusedWith(error, "TEAM_STATE_TAKEN");
			if (!isTaken || attempt === ATTEMPTS) throw error;
		}
	}
}

/**
 * Lets somebody decide on the own seat for some time, or ends that.
 * @param {Session} session
 * @param {string} teamId
 * @param {import('./types.js').Candidate | null} candidate
 * @param {{ from: number, until: number }} [time] in milliseconds
 */
export async function setStandIn(session, teamId, candidate, time) {
	const second = (/** @type {number} */ ms) =>
		spellTime(Math.floor(ms / 1000) * 1000);
	await publishSeat(session, teamId, (_own, { standIn: _, ...seat }, team) => {
		if (candidate === null || time === undefined) return seat;
		const { approverId } = candidate;
		checkOutside(session, team, approverId);
		return {
			...seat,
			standIn: {
				approverId,
				devices: candidate.devices.map(({ text }) => text),
				from: second(time.from),
				until: second(time.until),
			},
		};
	});
}

/**
 * Refuses a stand-in whom the team has already. The own one can be named anew.
 * @param {Session} session
 * @param {TeamState} team
 * @param {string} approverId
 */
function checkOutside({ identity }, { seats }, approverId) {
	const others = seats.map((seat) =>
		seat.approverId === identity.approverId ? { ...seat, standIn: null } : seat,
	);
	const people = peopleOf({ seats: others });
	if (people.some((one) => one.approverId === approverId))
		throw Problem.of("alreadyInTeam", { approverId });
}

/**
 * Invites somebody to stand in. The link is for that person alone; the gateway never has its secret.
 * @param {Session} session
 * @param {string} teamId
 * @param {string} approverId
 * @returns {Promise<import('./types.js').StandInOffer>}
 */
export async function inviteStandIn(session, teamId, approverId) {
	const { newest } = await readTeam(session, teamId);
	checkOutside(session, newest, approverId);
	const inviteId = toBase64url(randomBytes(16));
	const link = { teamId, inviteId, secret: randomBytes(16) };
	await session.client.call({
		method: "POST",
		path: teamPath(teamId, "invitations"),
		body: JSON.stringify({ inviteId, approverId }),
		expect: [200, 201],
	});
	const invited = { ...session.subject, approverId };
	return {
		link: spellTeamLink(session.page, link),
		consent: (signal) => awaitConsent(session, link, invited, signal),
	};
}

/**
 * Waits for the yes of the invited person. Null if `signal` ended it before.
 * @param {Session} session
 * @param {import('./teamconsent.js').TeamLink} link
 * @param {import('./statements.js').Subject} invited
 * @param {AbortSignal} signal
 */
async function awaitConsent({ client }, link, invited, signal) {
	const call = { path: teamPath(link.teamId, "consents"), expect: [200] };
	while (!signal.aborted) {
		const answer = new Reader("answer", await client.json(call));
		for (const node of answer.array("consents")) {
			// The link proves a single consent. Others are listed beside it.
			const consent = await receiveConsent(link, invited, node).catch(
				(error) => void asProblem(error),
			);
			if (consent) return consent;
		}
		await sleep(POLL_MS);
	}
	return null;
}

/**
 * Adds devices to the own seat in each team. Devices that this one does not know stay: another one may
 * have added them.
 * @param {Session} session
 * @param {DeviceBundle[]} devices
 * @returns {Promise<Problem[]>} why a team does not count them
 */
export async function addToSeats(session, devices) {
	const records = await session.store.teams();
	const teams = records.filter(({ fork }) => fork === null);
	return inEach(teams, "deviceNotAdded", async ({ teamId }) => {
		await publishSeat(session, teamId, (own, seat) => {
			const fresh = devices.filter(({ deviceId }) => !hasDevice(own, deviceId));
			const now = [...seat.devices, ...fresh.map(({ text }) => text)];
			return fresh.length === 0 ? null : { ...seat, devices: now };
		});
	});
}

/**
 * The devices after a revocation.
 * @typedef {object} DevicesLeft
 * @property {Set<string>} revoked those that the seats lose now
 * @property {Set<string>} gone all that are known to be revoked
 * @property {DeviceBundle[]} inForce the others that this device trusts, and itself
 */

/**
 * Has the own seat in each team count for the devices in force and no other: a thief may have added
 * some. A stand-in whom a revoked or unknown device could have named does not stand in any more.
 * @param {Session} session
 * @param {Set<string>} revoked
 * @returns {Promise<Problem[]>} what a person should know of it
 */
export async function clearSeats(session, revoked) {
	const trust = await session.trust();
	const left = {
		revoked,
		gone: new Set([...trust.revoked, ...revoked]),
		inForce: trust.inForce.filter(({ deviceId }) => !revoked.has(deviceId)),
	};
	const records = await session.store.teams();
	return inEach(records, "deviceNotRemoved", ({ teamId }, notices) =>
		clearSeat(session, teamId, left, notices),
	);
}

/**
 * Changes the own seat in each of these teams. All are tried.
 * @param {TeamRecord[]} records
 * @param {'deviceNotAdded' | 'deviceNotRemoved'} code of a failure
 * @param {(record: TeamRecord, notices: Problem[]) => Promise<void>} change
 * @returns {Promise<Problem[]>} its notices, and the failures
 */
async function inEach(records, code, change) {
	/** @type {Problem[]} */
	const notices = [];
	for (const record of records) {
		try {
			await change(record, notices);
		} catch (error) {
			// To those who are not in it any more, the gateway shows no team.
			if (isRefusedWith(error, "NOT_FOUND")) continue;
			const problem = asProblem(error);
			notices.push(Problem.of(code, { team: await nameOf(record), problem }));
		}
	}
	return notices;
}

/** @param {TeamRecord} record */
async function nameOf(record) {
	try {
		return (await chainOf(record)).newest.name;
	} catch (error) {
		asProblem(error);
		return record.teamId;
	}
}

/**
 * @param {Session} session
 * @param {string} teamId
 * @param {DevicesLeft} left
 * @param {Problem[]} notices
 */
async function clearSeat(session, teamId, left, notices) {
	/** @type {Problem[]} */
	let changes = [];
	let team = /** @type {TeamState | null} */ (null);
	try {
		const chain = await publishSeat(session, teamId, (own, seat, newest) => {
			team = newest;
			const cleared = clearedSeat(own, seat, newest, left);
			changes = cleared.notices;
			return cleared.seat;
		});
		team = chain.newest;
	} finally {
		if (team !== null)
			notices.push(...standsInProblems(session, team, left.revoked));
	}
	notices.push(...changes);
}

/**
 * The own seat with the devices that are left, as it is spelled; null: it has them already.
 * @param {TeamSeat} own
 * @param {any} spelled
 * @param {TeamState} team
 * @param {DevicesLeft} left
 */
function clearedSeat(own, spelled, { name: team }, { revoked, gone, inForce }) {
	const isRevokedOn = own.devices.some(({ deviceId }) => revoked.has(deviceId));
	if (inForce.length === 0)
		return {
			seat: null,
			notices: isRevokedOn ? [Problem.of("lastDevice", { team })] : [],
		};
	const isLeft = (/** @type {DeviceBundle} */ { deviceId }) =>
		hasDevice({ devices: inForce }, deviceId);
	const kept = own.devices.filter(isLeft);
	const fresh = inForce.filter(({ deviceId }) => !hasDevice(own, deviceId));
	const lost = own.devices.filter(
		(device) => !isLeft(device) && !gone.has(device.deviceId),
	);
	const ended = isRevokedOn || lost.length > 0 ? own.standIn : null;
	const notices = lost.map(({ name: device, deviceId }) =>
		Problem.of("deviceDropped", { team, device, deviceId }),
	);
	if (ended !== null) {
		const { approverId } = ended;
		notices.push(Problem.of("standInEnded", { team, approverId }));
	}
	if (kept.length === own.devices.length && fresh.length === 0)
		return { seat: null, notices };
	const { standIn, ...seat } = spelled;
	const stays = ended === null && standIn !== undefined;
	const devices = [...kept, ...fresh].map(({ text }) => text);
	return {
		seat: { ...seat, devices, ...(stays ? { standIn } : {}) },
		notices,
	};
}

/**
 * The members for whom this person stands in with one of these devices. Only they can end it.
 * @param {Session} session
 * @param {TeamState} team
 * @param {Set<string>} revoked
 */
function standsInProblems({ identity }, { name, seats }, revoked) {
	return seats
		.filter(
			({ standIn }) =>
				standIn?.approverId === identity.approverId &&
				Number(readTime(standIn.until)) > Date.now() &&
				standIn.devices.some(({ deviceId }) => revoked.has(deviceId)),
		)
		.map(({ approverId: member }) =>
			Problem.of("standsInRevoked", { member, team: name }),
		);
}
