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
 * @param {Session} session
 * @param {string} teamId
 * @param {string} body
 */
async function postState({ client }, teamId, body) {
	const path = teamPath(teamId, "states");
	await client.call({ method: "POST", path, body, expect: [200, 201] });
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
	let chain = await readTeam(session, teamId);
	for (let attempt = 1; ; attempt += 1) {
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
		try {
			await postState(session, teamId, body);
		} catch (error) {
			const isTaken = isRefusedWith(error, "TEAM_STATE_TAKEN");
			if (!isTaken || attempt === ATTEMPTS) throw error;
			const read = await readTeam(session, teamId);
			if (read.newest.seq > team.seq) {
				chain = read;
				continue;
			}
			// The gateway has lost the state, as in a failover. Another one of the same number as `body`
			// would be a fork if somebody has read that.
			await postState(session, teamId, team.raw);
			await postState(session, teamId, body);
		}
		await session.store.keepTeam(recordOf(chain));
		return chain;
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
		for (const node of await listConsents(client, call)) {
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
 * None while the gateway is away: the page waits on.
 * @param {Session['client']} client
 * @param {import('./gateway.js').Call} call
 */
async function listConsents(client, call) {
	try {
		return new Reader("answer", await client.json(call)).array("consents");
	} catch (error) {
		if (error instanceof Problem && error.isUnavailable) return [];
		throw error;
	}
}

/**
 * Adds devices to the own seat in each team. Devices that this one does not know stay: another one may
 * have added them.
 * @param {Session} session
 * @param {DeviceBundle[]} devices
 * @returns {Promise<Problem[]>} why a team does not count them
 */
export async function addToSeats(session, devices) {
	/** @type {Problem[]} */
	const notices = [];
	for (const record of await session.store.teams()) {
		if (record.fork !== null) continue;
		let isOfOthers = false;
		try {
			await publishSeat(session, record.teamId, (own, seat, team) => {
				const missing = devices.filter(
					({ deviceId }) => !hasDevice(own, deviceId),
				);
				const fresh = outsideOthers(missing, own, team);
				isOfOthers = fresh.length < missing.length;
				const now = [...seat.devices, ...fresh.map(({ text }) => text)];
				return fresh.length === 0 ? null : { ...seat, devices: now };
			});
			if (isOfOthers) throw Problem.of("teamState", { reason: "device twice" });
		} catch (error) {
			// The gateway shows a team to its people only.
			if (!isRefusedWith(error, "NOT_FOUND"))
				notices.push(await failed("deviceNotAdded", record, error));
		}
	}
	return notices;
}

/**
 * The devices that no other member has. A team has a device once: one that somebody else has put on
 * their seat must not block the others.
 * @param {DeviceBundle[]} devices
 * @param {TeamSeat} own
 * @param {Pick<TeamState, 'seats'>} team
 */
function outsideOthers(devices, { approverId }, { seats }) {
	const others = peopleOf({
		seats: seats.filter((seat) => seat.approverId !== approverId),
	});
	return devices.filter(
		({ deviceId }) => !others.some((other) => hasDevice(other, deviceId)),
	);
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
 * some. The stand-in ends too: a thief can name one and then take the stolen device off the seat.
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
	/** @type {Problem[]} */
	const notices = [];
	for (const record of await session.store.teams())
		notices.push(...(await clearSeat(session, record, left)));
	return notices;
}

/**
 * @param {SeatFailure} code
 * @param {TeamRecord} record
 * @param {unknown} error
 */
async function failed(code, record, error) {
	const problem = asProblem(error);
	return Problem.of(code, { team: await nameOf(record), problem });
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
 * @param {TeamRecord} record
 * @param {DevicesLeft} left
 * @returns {Promise<Problem[]>}
 */
async function clearSeat(session, record, left) {
	let cleared = /** @type {ClearedSeat | null} */ (null);
	try {
		const { newest } = await publishSeat(
			session,
			record.teamId,
			(own, seat, team) => {
				cleared = clearedSeat(own, seat, team, left);
				return cleared.seat;
			},
		);
		const notices = cleared?.notices ?? [];
		return [...standsInProblems(session, newest, left.revoked), ...notices];
	} catch (error) {
		if (isRefusedWith(error, "NOT_FOUND"))
			return hiddenProblems(session, record, left.revoked);
		// A team that could not be read may still count the device.
		const code = cleared?.failure ?? "deviceNotRemoved";
		const isOther = error instanceof Problem && error.code === "notOnSeat";
		// Another device of this person has to add this one, as before the revocation.
		if (code === "deviceNotAdded" && isOther) return [];
		return [await failed(code, record, error)];
	}
}

/**
 * The gateway shows no team to those who are not in it any more, and could hide it from others.
 * @param {Session} session
 * @param {TeamRecord} record
 * @param {Set<string>} revoked
 * @returns {Promise<Problem[]>}
 */
async function hiddenProblems(session, record, revoked) {
	try {
		const { teamId } = record;
		// It may have been read further since.
		const known = (await session.store.team(teamId)) ?? record;
		const team = (await chainOf(known)).newest;
		const { approverId } = session.identity;
		const isSeated =
			team.seats.some((seat) => seat.approverId === approverId) ||
			standsInProblems(session, team, revoked).length > 0;
		return isSeated ? [Problem.of("teamHidden", { team: team.name })] : [];
	} catch (error) {
		return [await failed("deviceNotRemoved", record, error)];
	}
}

/**
 * @typedef {'deviceNotAdded' | 'deviceNotRemoved' | 'seatNotCleared'} SeatFailure
 *
 * @typedef {object} ClearedSeat
 * @property {import('./types.js').JsonObject | null} seat as it is spelled; null: there is nothing to change
 * @property {Problem[]} notices what a person should know once it is published
 * @property {SeatFailure} failure what stays if it cannot be published
 */

/**
 * The own seat with the devices that are left, and without a stand-in.
 * @param {TeamSeat} own
 * @param {any} spelled
 * @param {TeamState} team
 * @param {DevicesLeft} left
 * @returns {ClearedSeat}
 */
function clearedSeat(own, spelled, { name: team, seats }, left) {
	const { revoked, gone } = left;
	const inForce = outsideOthers(left.inForce, own, { seats });
	const { standIn: _, ...seat } = spelled;
	const { standIn } = own;
	const ended =
		standIn === null
			? []
			: [Problem.of("standInEnded", { team, approverId: standIn.approverId })];
	const isOn = (/** @type {Set<string>} */ ids) =>
		own.devices.some(({ deviceId }) => ids.has(deviceId));
	// A seat needs a device.
	if (inForce.length === 0) {
		const isLast = isOn(revoked);
		return {
			seat: standIn === null ? null : seat,
			notices: [
				...(isLast ? [Problem.of("lastDevice", { team })] : []),
				...ended,
			],
			failure: isLast ? "deviceNotRemoved" : "seatNotCleared",
		};
	}
	const isLeft = (/** @type {DeviceBundle} */ { deviceId }) =>
		hasDevice({ devices: inForce }, deviceId);
	const kept = own.devices.filter(isLeft);
	const fresh = inForce.filter(({ deviceId }) => !hasDevice(own, deviceId));
	const lost = own.devices.filter(
		(device) => !isLeft(device) && !gone.has(device.deviceId),
	);
	const dropped = lost.map(({ name: device, deviceId }) =>
		Problem.of("deviceDropped", { team, device, deviceId }),
	);
	const notices = [...dropped, ...ended];
	const isSame = kept.length === own.devices.length && fresh.length === 0;
	const devices = [...kept, ...fresh].map(({ text }) => text);
	const otherFailure = notices.length > 0 ? "seatNotCleared" : "deviceNotAdded";
	return {
		seat: isSame && standIn === null ? null : { ...seat, devices },
		notices,
		failure: isOn(gone) ? "deviceNotRemoved" : otherFailure,
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
