// The own seat in a team: its devices, and who stands in. A member changes them alone.

import { randomBytes, toBase64url } from "./bytes.js";
import { parse, Reader, spellTime } from "./canonical.js";
import { isRefusedWith, sleep } from "./gateway.js";
import { asProblem, Problem } from "./problem.js";
import { parseState, seatsOf, spellNext } from "./team.js";
import { receiveConsent, spellTeamLink } from "./teamconsent.js";
import { hasDevice, ownSeat, recordOf, refresh, teamPath } from "./teams.js";

/** @typedef {import('./keys.js').DeviceBundle} DeviceBundle */
/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./types.js').TeamSeat} TeamSeat */

/** A state that another member published meanwhile is read, and the change made to that one. */
const ATTEMPTS = 3;
const POLL_MS = 2_000;

/**
 * Publishes a state that differs only in the own seat.
 * @param {Session} session
 * @param {string} teamId
 * @param {(own: TeamSeat, seat: any) => import('./types.js').JsonObject | null} change of the seat as
 *   it is spelled; null: there is nothing to change
 */
async function publishSeat(session, teamId, change) {
	for (let attempt = 1; ; attempt += 1) {
		const record = await session.store.team(teamId);
		if (record === null) throw Problem.of("teamUnknown", {});
		const chain = await refresh(session, record);
		const { name, seats } = chain.newest;
		const { approverId } = session.identity;
		if (!seats.some((seat) => seat.approverId === approverId)) return;
		const own = ownSeat(session, chain.newest);
		// Another device of this person has to add this one first.
		if (own === null) throw Problem.of("notOnSeat", { team: name });
		const spelled = seatsOf(chain.newest).find(
			({ approverId }) => approverId === own.approverId,
		);
		const seat = change(own, spelled);
		if (seat === null) return;
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
			return;
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
	await publishSeat(session, teamId, (_own, { standIn: _, ...seat }) =>
		candidate === null || time === undefined
			? seat
			: {
					...seat,
					standIn: {
						approverId: candidate.approverId,
						devices: candidate.devices.map(({ text }) => text),
						from: second(time.from),
						until: second(time.until),
					},
				},
	);
}

/**
 * Invites somebody to stand in. The link is for that person alone; the gateway never has its secret.
 * @param {Session} session
 * @param {string} teamId
 * @param {string} approverId
 * @returns {Promise<import('./types.js').StandInOffer>}
 */
export async function inviteStandIn(session, teamId, approverId) {
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
			// What the link does not prove is for others, or from nobody.
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
 * Adds devices to the own seat in each team, and removes others from it. All are tried; the first
 * problem is thrown.
 * @param {Session} session
 * @param {{ adds?: DeviceBundle[], drops?: Set<string> }} change
 */
export async function changeDevices(session, { adds = [], drops = new Set() }) {
	/** @type {Problem[]} */
	const problems = [];
	for (const { teamId, fork } of await session.store.teams()) {
		if (fork !== null) continue;
		await publishSeat(session, teamId, ({ devices }, seat) => {
			const kept = devices.filter(({ deviceId }) => !drops.has(deviceId));
			const fresh = adds.filter(
				({ deviceId }) => !hasDevice({ devices }, deviceId),
			);
			const isSame = kept.length === devices.length && fresh.length === 0;
			const now = [...kept, ...fresh].map(({ text }) => text);
			return isSame || now.length === 0 ? null : { ...seat, devices: now };
		}).catch((error) => {
			// To those who are not in it any more, the gateway shows no team.
			if (!isRefusedWith(error, "NOT_FOUND")) problems.push(asProblem(error));
		});
	}
	const [first] = problems;
	if (first !== undefined) throw first;
}
