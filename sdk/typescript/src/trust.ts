// The devices that may decide: those pinned at pairing, and those that they added since. The gateway
// only carries the statements. The profile is not written: what is learned is kept beside it, and
// both together count.

import { type Clock, Deadline, sleep } from "./clock.js";
import { parse, Reader, readTime, spellTime } from "./core/canonical.js";
import type { Node } from "./core/json.js";
import {
	type DeviceBundle,
	parseDeviceBundle,
	readDeviceId,
} from "./core/keys.js";
import { Problem } from "./core/problem.js";
import { DeviceTrust } from "./core/statements.js";
import { CountersignError, NotPaired, ProfileError } from "./errors.js";
import {
	type Gateway,
	GatewayAway,
	GatewayRefusal,
	path,
	reading,
} from "./gateway.js";
import type { ApproverRecord, Profile } from "./profile.js";
import { SharedCalls } from "./shared.js";
import type { State } from "./state.js";

const FILE = "trust.json";
/** A list of devices is read again when it is older. */
const LIST_LIFETIME_MS = 60_000;
const READ_TIMEOUT_MS = 15_000;
const RETRY_INTERVAL_MS = 250;
/** How often what was learned is written, if the lock is lost each time. */
const MAX_WRITES = 3;
/** More than any approver has; each takes time to verify. */
const MAX_STATEMENTS = 512;

/** An approver who is asked, with the devices in force. */
export interface AskedApprover {
	id: string;
	routingToken: string;
	trust: DeviceTrust;
}

export class TrustStore {
	readonly #readProfile: () => Promise<Profile>;
	readonly #state: State;
	readonly #gateway: Gateway;
	readonly #clock: Clock;
	/** Lists that are being read, by approver. */
	readonly #reading = new SharedCalls<void>();
	#writing: Promise<unknown> = Promise.resolve();
	/** Bundles that were read before: their checks take time. */
	readonly #bundles = new Map<string, DeviceBundle>();

	constructor(
		readProfile: () => Promise<Profile>,
		state: State,
		gateway: Gateway,
		clock: Clock,
	) {
		this.#readProfile = readProfile;
		this.#state = state;
		this.#gateway = gateway;
		this.#clock = clock;
	}

	/** The ids of the approvers that are paired now. */
	async paired(): Promise<string[]> {
		const { approvers } = await this.#readProfile();
		return approvers.map(({ id }) => id);
	}

	/**
	 * The approvers of these ids with their devices in force. Reads the statements again if the copy
	 * is old, or if `isAgain`.
	 */
	async devicesOf(
		asked: string[],
		isAgain: boolean,
		deadline: Deadline,
		signal?: AbortSignal,
	): Promise<AskedApprover[]> {
		const profile = await this.#readProfile();
		const isAsked = ({ id }: ApproverRecord) => asked.includes(id);
		const known = await this.#records(profile);
		const unknown = new Set<string>();
		await Promise.all(
			known.filter(isAsked).map(async (record) => {
				if (!isAgain && this.#isFresh(record)) return;
				try {
					await this.#refresh(profile.tenantId, record, deadline, signal);
				} catch (error) {
					// The gateway no longer has this pairing. Others may still be asked.
					if (!(error instanceof GatewayRefusal) || error.status !== 404)
						throw error;
					unknown.add(record.id);
				}
			}),
		);
		// From the files as they are now: they may know more than the gateway has shown.
		const records = (await this.#records(profile)).filter(isAsked);
		const left = records.filter(({ id }) => !unknown.has(id));
		if (left.length === 0)
			throw new NotPaired(
				unknown.size > 0
					? "the approver has ended the pairing"
					: "no such approver is paired with this machine",
			);
		return Promise.all(
			left.map(async (record) => ({
				id: record.id,
				routingToken: record.routingToken,
				trust: await this.#trustOf(profile.tenantId, record),
			})),
		);
	}

	#isFresh({ checkedAt }: ApproverRecord): boolean {
		const age = this.#clock.now() - (readTime(checkedAt) ?? Number.NaN);
		// A time in the future means that the clock was set back.
		return age >= 0 && age < LIST_LIFETIME_MS;
	}

	/** Follows the statements about an approver's devices, until that worked or the deadline. */
	async #refresh(
		tenantId: string,
		record: ApproverRecord,
		deadline: Deadline,
		signal?: AbortSignal,
	): Promise<void> {
		for (;;) {
			try {
				return await this.#reading.join(
					`${record.id}\n${record.routingToken}`,
					(shared) => this.#follow(tenantId, record, shared),
					deadline,
					signal,
				);
			} catch (error) {
				const isAway = error instanceof GatewayAway && !error.isFinal;
				if (!isAway || deadline.isOver()) throw error;
				await sleep(Math.min(RETRY_INTERVAL_MS, deadline.left()), signal);
			}
		}
	}

	async #follow(
		tenantId: string,
		record: ApproverRecord,
		signal: AbortSignal,
	): Promise<void> {
		const trust = await this.#trustOf(tenantId, record);
		const answer = await this.#gateway.call(
			{ path: path("v1", "approvers", record.id, "devices"), expect: [200] },
			Deadline.after(this.#clock, READ_TIMEOUT_MS),
			signal,
		);
		const node = answer.json();
		const statements = reading(() =>
			new Reader("answer", node).array("statements"),
		);
		if (statements.length > MAX_STATEMENTS)
			throw new GatewayAway(`more than ${MAX_STATEMENTS} statements`, true);
		await trust.followAll(statements);
		await this.#learn({
			...record,
			devices: trust.inForce.map(({ text }) => text),
			revoked: [...trust.revoked].sort(),
			addedBy: trust.adders,
			checkedAt: spellTime(this.#clock.now()),
		});
	}

	async #trustOf(
		tenantId: string,
		record: ApproverRecord,
	): Promise<DeviceTrust> {
		const revoked = new Set(record.revoked);
		const bundles: DeviceBundle[] = [];
		try {
			for (const text of record.devices) {
				const bundle =
					this.#bundles.get(text) ?? (await parseDeviceBundle(text));
				this.#bundles.set(text, bundle);
				if (!revoked.has(bundle.deviceId)) bundles.push(bundle);
			}
			for (const id of revoked) readDeviceId(id);
		} catch (error) {
			if (!(error instanceof Problem)) throw error;
			throw new ProfileError(
				"what is known of an approver's devices is damaged",
			);
		}
		const subject = { tenantId, approverId: record.id };
		const trust = new DeviceTrust(subject, bundles);
		trust.revoked = revoked;
		trust.adders = new Map(record.addedBy);
		return trust;
	}

	/** The records of the profile, each with what was learned since it was paired. */
	async #records(profile: Profile): Promise<ApproverRecord[]> {
		const learned = await this.#learned();
		return profile.approvers.map((record) => {
			const other = learned.find(({ id }) => id === record.id);
			return other === undefined ? record : merged(record, other);
		});
	}

	async #learned(): Promise<ApproverRecord[]> {
		const text = await this.#state.load(FILE);
		return text === null ? [] : parseLearned(text);
	}

	/** Adds what is new to the file. One change at a time, in this process and among processes. */
	#learn(record: ApproverRecord): Promise<void> {
		const write = async (isHeld: () => Promise<boolean>) => {
			const current = await this.#ofThisPairing(record);
			const before = await this.#learned();
			const same = before.find(({ id }) => id === record.id);
			const others = before.filter(({ id }) => id !== record.id);
			const both = same === undefined ? current : merged(current, same);
			// A late answer says nothing about how new the list of another pairing is.
			const newer =
				current === record ? { ...both, checkedAt: record.checkedAt } : both;
			if (!(await isHeld())) return false;
			await this.#state.store(FILE, spellLearned([...others, newer]));
			return isHeld();
		};
		const run = async () => {
			for (let tried = 0; tried < MAX_WRITES; tried += 1) {
				const isWritten =
					this.#state.exclusively === undefined
						? await write(async () => true)
						: await this.#state.exclusively(write);
				if (isWritten) return;
			}
			throw new CountersignError("what was learned cannot be stored");
		};
		const written = this.#writing.then(run, run);
		this.#writing = written.catch(() => undefined);
		return written;
	}

	/**
	 * The valid part of a record in the pairing as it is now. It may have been made anew while the
	 * gateway answered: then only revocations do.
	 */
	async #ofThisPairing(record: ApproverRecord): Promise<ApproverRecord> {
		const { approvers } = await this.#readProfile();
		const paired = approvers.find(({ id }) => id === record.id);
		return paired === undefined || paired.routingToken === record.routingToken
			? record
			: merged(paired, record);
	}
}

/**
 * Both copies together. Nothing is forgotten: a device that either copy knows to be revoked stays
 * revoked, whatever the pairing. Of a copy from before the pairing was made anew nothing else
 * counts, because it could bring back a device that was lost.
 */
export function merged(
	record: ApproverRecord,
	other: ApproverRecord,
): ApproverRecord {
	const revoked = [...new Set([...record.revoked, ...other.revoked])].sort();
	if (record.routingToken !== other.routingToken) return { ...record, revoked };
	const newer =
		(readTime(other.checkedAt) ?? 0) > (readTime(record.checkedAt) ?? 0);
	return {
		...record,
		devices: [...new Set([...record.devices, ...other.devices])],
		revoked,
		addedBy: new Map([...other.addedBy, ...record.addedBy]),
		checkedAt: newer ? other.checkedAt : record.checkedAt,
	};
}

function spellLearned(records: ApproverRecord[]): string {
	const approvers = records.map((record) => ({
		id: record.id,
		routing_token: record.routingToken,
		checked_at: record.checkedAt,
		devices: record.devices,
		revoked: record.revoked,
		added_by: Object.fromEntries(record.addedBy),
	}));
	return `${JSON.stringify({ v: 1, approvers }, null, 2)}\n`;
}

function parseLearned(text: string): ApproverRecord[] {
	try {
		const reader = new Reader("answer", parse("answer", text));
		reader.version();
		const approvers = reader.array("approvers").map(readLearned);
		reader.finish();
		return approvers;
	} catch (error) {
		if (!(error instanceof Problem)) throw error;
		throw new ProfileError(
			"the file with what is known of approvers' devices is damaged",
		);
	}
}

function readLearned(node: Node): ApproverRecord {
	const reader = new Reader("answer", node);
	const texts = (name: string) =>
		reader.array(name).map(({ value }) => {
			if (typeof value !== "string") throw reader.invalid(name, "text[]");
			return value;
		});
	const addedBy = new Map<string, string>();
	const { value: adders } = reader.object("added_by");
	for (const [id, by] of adders as Map<string, Node>) {
		if (typeof by.value !== "string") throw reader.invalid("added_by", "text");
		addedBy.set(id, by.value);
	}
	const record = {
		id: reader.id("id"),
		routingToken: reader.string("routing_token"),
		checkedAt: reader.string("checked_at"),
		devices: texts("devices"),
		revoked: texts("revoked"),
		addedBy,
	};
	reader.finish();
	return record;
}
