// A team: a chain of complete states. Each names its predecessor, and is signed by owners of that
// one, or by the member whose seat alone it changes. Nothing here believes the gateway.

import {
	concat,
	fromBase64urlOf,
	sha256,
	toBase64url,
	toHex,
	utf8,
} from "./bytes.js";
import {
	canonical,
	canonicalNode,
	Reader,
	readTime,
	spellTime,
} from "./canonical.js";
import {
	checkDeviceName,
	parseDeviceBundle,
	readDeviceId,
	sign,
	verifies,
} from "./keys.js";
import { Problem } from "./problem.js";
import { COMMENTS } from "./rule.js";
import { MAX_DEVICES, readSignature } from "./statements.js";

/** @typedef {import('./json.js').Node} Node */
/** @typedef {import('./keys.js').DeviceBundle} DeviceBundle */
/** @typedef {import('./keys.js').DeviceKeys} DeviceKeys */
/** @typedef {import('./types.js').TeamState} TeamState */
/** @typedef {import('./types.js').TeamHead} TeamHead */
/** @typedef {import('./types.js').TeamSeat} TeamSeat */

const WHAT = "team";
const MAX_SEATS = 32;
const MAX_TEAM_DEVICES = 256;
const MAX_STATE_BYTES = 64 * 1024;
/** Only owners sign later states, so that a full chain does not protect a stolen device. */
const MAX_MEMBER_STATES = 1_024;
const MAX_STATES = 2_048;
const MAX_STAND_IN_MS = 30 * 24 * 60 * 60 * 1000;
/** A time in whole seconds, in its only spelling. */
const SECOND = /^[^.]*Z$/;

/** @param {string} reason */
function refused(reason) {
	return Problem.of("teamState", { reason });
}

/** @param {Reader} reader */
export async function readBundles(reader) {
	const nodes = reader.array("devices");
	if (nodes.length < 1 || nodes.length > MAX_DEVICES)
		throw reader.invalid("devices", `1..${MAX_DEVICES}`);
	return Promise.all(
		nodes.map(({ value }) => {
			if (typeof value !== "string")
				throw reader.invalid("devices", "deviceBundle[]");
			return parseDeviceBundle(value);
		}),
	);
}

/**
 * @param {Node} node
 * @param {string} pointer
 * @returns {Promise<TeamSeat>}
 */
async function readSeat(node, pointer) {
	const reader = new Reader(WHAT, node, pointer);
	const named = reader.optionalObject("standIn");
	const seat = {
		approverId: reader.id("approverId"),
		isOwner: reader.flag("owner"),
		devices: await readBundles(reader),
		standIn: named
			? await readStandIn(new Reader(WHAT, named, `${pointer}/standIn`))
			: null,
	};
	reader.finish();
	return seat;
}

/** @param {Reader} reader */
async function readStandIn(reader) {
	const standIn = {
		approverId: reader.id("approverId"),
		devices: await readBundles(reader),
		from: readSecond(reader, "from"),
		until: readSecond(reader, "until"),
	};
	reader.finish();
	const lasts =
		Number(readTime(standIn.until)) - Number(readTime(standIn.from));
	if (!(lasts > 0 && lasts <= MAX_STAND_IN_MS))
		throw reader.invalid("until", "<= 30 days");
	return standIn;
}

/**
 * @param {Reader} reader
 * @param {string} name
 */
function readSecond(reader, name) {
	const text = reader.time(name);
	if (!SECOND.test(text) || spellTime(Number(readTime(text))) !== text)
		throw reader.invalid(name, "RFC 3339 in whole seconds");
	return text;
}

/**
 * A signed state within the limits. Nobody has verified a signature yet.
 * @param {Node} node
 * @returns {Promise<TeamState>}
 */
export async function parseState(node) {
	const outer = new Reader(WHAT, node);
	const inner = outer.object("statement");
	const entries = outer.array("signatures");
	const signatures = entries.map((entry, at) => {
		const reader = new Reader(WHAT, entry, `/signatures/${at}`);
		const signed = {
			by: readDeviceId(reader.string("by")),
			signature: readSignature(reader.string("signature")),
		};
		reader.finish();
		return signed;
	});
	outer.finish();
	const signers = new Set(signatures.map(({ by }) => by));
	if (
		signers.size < 1 ||
		signers.size > MAX_SEATS ||
		signers.size < entries.length
	)
		throw outer.invalid("signatures", `1..${MAX_SEATS}`);
	const text = canonicalNode(inner);
	const bytes = utf8(text);
	const reader = new Reader(WHAT, inner, "/statement");
	reader.version();
	reader.oneOf("statement", ["team.state"]);
	const seq = reader.count("seq", 0, MAX_STATES - 1);
	const isFirst = seq === 0;
	const named = isFirst ? reader.string("random") : reader.string("teamId");
	fromBase64urlOf(WHAT, named, 16);
	const least = new Reader(
		WHAT,
		reader.object("minimum"),
		"/statement/minimum",
	);
	const nodes = reader.array("seats");
	if (nodes.length < 1 || nodes.length > MAX_SEATS)
		throw reader.invalid("seats", `1..${MAX_SEATS}`);
	const name = reader.string("name");
	checkDeviceName(name);
	const team = {
		tenantId: reader.id("tenantId"),
		teamId: isFirst ? await teamIdOf(bytes) : named,
		seq,
		prev: isFirst ? null : reader.hash("prev"),
		at: reader.time("at"),
		name,
		changes: reader.count("changes", 1, MAX_SEATS),
		minimum: {
			approvals: least.count("approvals", 1, MAX_SEATS),
			rejections: least.count("rejections", 1, MAX_SEATS),
			comment: least.oneOf("comment", COMMENTS),
			separate: least.flag("separate"),
		},
		standIns: reader.flag("standIns"),
		seats: await Promise.all(
			nodes.map((seat, at) => readSeat(seat, `/statement/seats/${at}`)),
		),
		digest: toHex(await sha256(bytes)),
		text,
		signatures,
		raw: node.raw,
	};
	for (const each of [reader, least]) each.finish();
	if (bytes.length > MAX_STATE_BYTES) throw refused("size");
	checkPeople(team);
	return team;
}

/** @param {Bytes} bytes of the first state */
async function teamIdOf(bytes) {
	const hash = await sha256(concat(utf8("countersign team v1"), bytes));
	return toBase64url(hash.subarray(0, 16));
}

/**
 * The members of a team, and those who stand in for them.
 * @param {Pick<TeamState, 'seats'>} team
 */
export function peopleOf({ seats }) {
	return seats.flatMap(({ standIn, ...seat }) => [
		seat,
		...(standIn ? [standIn] : []),
	]);
}

/** @param {TeamState} team */
function checkPeople({ seats, changes, standIns }) {
	const people = peopleOf({ seats });
	const ids = people.map(({ approverId }) => approverId);
	const devices = people.flatMap((each) =>
		each.devices.map(({ deviceId }) => deviceId),
	);
	if (seats.filter(({ isOwner }) => isOwner).length < changes)
		throw refused("owners");
	if (new Set(ids).size < ids.length) throw refused("person twice");
	if (new Set(devices).size < devices.length) throw refused("device twice");
	if (devices.length > MAX_TEAM_DEVICES) throw refused("devices");
	if (!standIns && people.length > seats.length) throw refused("stand-in");
}

/**
 * The seats whose members have signed a state.
 * @param {TeamState} state
 * @param {TeamState} before whose seats they are
 */
async function signersOf({ text, signatures }, { seats }) {
	/** @type {Set<TeamSeat>} */
	const signers = new Set();
	for (const { by, signature } of signatures) {
		const isBy = (/** @type {DeviceBundle} */ { deviceId }) => deviceId === by;
		const seat = seats.find(({ devices }) => devices.some(isBy));
		const device = seat?.devices.find(isBy);
		if (!seat || !device) throw Problem.of("unknownDevice", { deviceId: by });
		if (!(await verifies(device, text, signature)))
			throw Problem.of("statementSignature", {});
		signers.add(seat);
	}
	return [...signers];
}

/**
 * @param {TeamState} before
 * @param {TeamSeat[]} signers
 */
function areEnoughOwners({ changes }, signers) {
	return signers.filter(({ isOwner }) => isOwner).length >= changes;
}

/**
 * Whether a state differs only as the member on a seat may decide alone: in its devices and its
 * stand-in, or in that the seat is gone, if it is no owner's.
 * @param {TeamState} before
 * @param {TeamState} next
 * @param {TeamSeat} seat
 */
function isOwnChange(before, next, { approverId, isOwner }) {
	const content = (/** @type {TeamState} */ { text }) => {
		const { name, changes, minimum, standIns, seats } = JSON.parse(text);
		return { name, changes, minimum, standIns, seats };
	};
	const isOwn = (/** @type {any} */ seat) => seat.approverId === approverId;
	const [old, made] = [content(before), content(next)];
	const changed = made.seats.find(isOwn);
	if (changed ? changed.owner !== isOwner : isOwner) return false;
	const seats = old.seats.flatMap((/** @type {any} */ seat) =>
		isOwn(seat) ? (changed ?? []) : seat,
	);
	return canonical({ ...old, seats }) === canonical(made);
}

/**
 * The states of a team as far as they are known here: the newest one, and the digests of all. It
 * only grows.
 */
export class TeamChain {
	/**
	 * @param {TeamState} newest
	 * @param {string[]} digests
	 */
	constructor(newest, digests) {
		this.newest = newest;
		this.digests = digests;
	}

	/**
	 * Begins with the first state, which is signed by as many of its owners as it demands.
	 * @param {TeamState} first
	 */
	static async begin(first) {
		if (first.seq !== 0) throw refused("not the first");
		if (!areEnoughOwners(first, await signersOf(first, first)))
			throw refused("signers");
		return new TeamChain(first, [first.digest]);
	}

	/** @returns {TeamHead} */
	get head() {
		const { teamId, seq, digest } = this.newest;
		return { teamId, seq, digest };
	}

	/**
	 * Whether a state that somebody has named is known here. One that contradicts what is known is
	 * refused.
	 * @param {TeamHead} head
	 */
	knows({ teamId, seq, digest }) {
		if (teamId !== this.newest.teamId) throw refused("another team");
		const known = this.digests[seq];
		if (known !== undefined && known !== digest)
			throw Problem.of("teamFork", { team: this.newest.name });
		return known !== undefined;
	}

	/**
	 * Follows one state. It is a fork only if a device in force has signed it: anybody could make
	 * another one. False for a copy of a known state, of which nobody has verified the signatures.
	 * @param {TeamState} next
	 */
	async follow(next) {
		const { newest, digests } = this;
		if (next.tenantId !== newest.tenantId || next.teamId !== newest.teamId)
			throw refused("another team");
		if (digests[next.seq] === next.digest) return false;
		if (next.seq > newest.seq + 1) throw refused("gap");
		const signers = await signersOf(next, newest);
		if (next.seq <= newest.seq || next.prev !== newest.digest)
			throw Problem.of("teamFork", { team: newest.name }, next.raw);
		const byMember =
			next.seq < MAX_MEMBER_STATES &&
			signers.some((seat) => isOwnChange(newest, next, seat));
		if (!byMember && !areEnoughOwners(newest, signers))
			throw refused("signers");
		this.newest = next;
		this.digests = [...digests, next.digest];
		return true;
	}
}

/**
 * The seats of a state as they are spelled.
 * @param {TeamState} team
 * @returns {any[]}
 */
export function seatsOf({ text }) {
	return JSON.parse(text).seats;
}

/**
 * The signed text of the state that follows with this seat in the place of the one before.
 * @param {TeamChain} chain
 * @param {DeviceKeys} keys
 * @param {string} at
 * @param {import('./types.js').JsonObject} seat as it is spelled
 */
export async function spellNext({ newest }, keys, at, seat) {
	const { random: _, ...members } = JSON.parse(newest.text);
	const { teamId, digest: prev, seq } = newest;
	const seats = seatsOf(newest).map((one) =>
		one.approverId === seat.approverId ? seat : one,
	);
	const text = canonical({ ...members, teamId, prev, seq: seq + 1, at, seats });
	const by = keys.bundle.deviceId;
	return `{"signatures":[{"by":"${by}","signature":"${await sign(keys, text)}"}],"statement":${text}}`;
}
