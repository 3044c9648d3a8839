// A request that was submitted and outlives the process. Its record is resumed by any process with
// the same profile, in either language.

import { inspect } from "node:util";
import { Approved } from "./approved.js";
import { hasActions, shownRepository } from "./artifact.js";
import { Deadline } from "./clock.js";
import { parseArtifact } from "./core/artifact.js";
import { fromBase64urlOf, utf8 } from "./core/bytes.js";
import { parse, Reader } from "./core/canonical.js";
import { Problem } from "./core/problem.js";
import { type Duration, readWait } from "./durations.js";
import type { Enforcer } from "./enforcer.js";
import { Changed, Denied } from "./errors.js";
import type { EventLog } from "./events.js";
import { Exchange } from "./exchange.js";
import { OutcomeKey, proveRecord, provesRecord } from "./keys.js";
import type { WaitLimiter } from "./limiter.js";
import type { RequestOptions } from "./options.js";
import type { OwnExchange } from "./submission.js";

/** Nobody has decided yet, as far as is known here. Ask again later. */
export class StillWaiting {
	readonly requestId: string;

	constructor(requestId: string) {
		this.requestId = requestId;
	}
}

export interface OutcomeOptions {
	/** How long to wait for a decision, such as `"25s"`. `"0s"`: only look. */
	wait: Duration;
	/** Ends the wait. The request goes on. */
	signal?: AbortSignal;
}

/** @internal */
export interface PendingParts {
	enforcer: Enforcer;
	limiter: WaitLimiter;
	log: EventLog;
}

/**
 * The members of a record, in plain.
 * @internal
 */
export interface PendingRecord {
	tenantId: string;
	enforcerId: string;
	/** Canonical, with everything that the person is shown. */
	artifact: string;
	outcomeKey: string;
	/** Shows that a holder of the enforcer's key wrote the other members. */
	proof: string;
}

export class Pending {
	readonly requestId: string;
	readonly #record: PendingRecord;
	readonly #parts: PendingParts;

	/** @internal */
	constructor(record: PendingRecord, parts: PendingParts) {
		this.#record = record;
		this.#parts = parts;
		this.requestId = requestIdOf(record);
	}

	/**
	 * The record, to be kept and given to `client.pending` later. It has the arguments in plain:
	 * protect it as you protect them. Edits are detected.
	 */
	toJson(): string {
		return spellPending(this.#record);
	}

	/** The decision as it is now, or after waiting for it. A denial is returned, not thrown. */
	outcome(options: OutcomeOptions): Promise<Approved | Denied | StillWaiting> {
		return this.#recorded(
			"outcome",
			() => this.#outcome(options),
			options.signal,
		);
	}

	#recorded<T>(
		name: "outcome" | "withdraw",
		action: () => Promise<T>,
		signal?: AbortSignal,
	): Promise<T> {
		const about = { tool: toolOf(this.#record), requestId: this.requestId };
		return this.#parts.enforcer.spans.record(name, about, action, signal);
	}

	async #outcome(
		options: OutcomeOptions,
	): Promise<Approved | Denied | StillWaiting> {
		const wait = readWait(options.wait);
		const { enforcer, limiter, log } = this.#parts;
		let exchange: Exchange | undefined;
		try {
			exchange = await openPending(this.#record, enforcer);
			const opened = exchange;
			const until = Deadline.after(enforcer.clock, wait);
			const expiry = Deadline.at(enforcer.clock, opened.expiresAt());
			const accepted = await limiter.run(
				() => opened.wait(expiry, until, options.signal),
				// A look has its turn too, if it is soon.
				Deadline.after(enforcer.clock, Math.max(wait, 1000)),
				options.signal,
				() => null,
			);
			if (accepted === null) return new StillWaiting(this.requestId);
			const approved = new Approved({ exchange: opened, accepted, enforcer });
			log.ended(approved, opened);
			return approved;
		} catch (error) {
			if (!(error instanceof Denied)) throw error;
			log.ended(error, exchange);
			return error;
		}
	}

	/**
	 * Takes the request back. It does not matter if it has ended meanwhile. An approval that comes
	 * all the same can no longer be used.
	 */
	async withdraw(reason = "withdrawn by the agent's program"): Promise<void> {
		await this.#recorded("withdraw", async () => {
			const { enforcer } = this.#parts;
			const exchange = await openPending(this.#record, enforcer);
			await exchange.take();
			await exchange.withdraw(reason);
		});
	}

	/** Without the record, which is secret: see `toJson`. */
	toJSON(): object {
		return { requestId: this.requestId };
	}

	[inspect.custom](): string {
		return `Pending ${inspect(this.toJSON())}`;
	}
}

/** @internal */
export function spellPending(record: PendingRecord): string {
	return JSON.stringify({ v: 1, ...record });
}

/** @internal */
export function parsePending(record: string | object): PendingRecord {
	const text = typeof record === "string" ? record : JSON.stringify(record);
	try {
		const reader = new Reader("answer", parse("answer", text));
		reader.version();
		const read = {
			tenantId: reader.id("tenantId"),
			enforcerId: reader.id("enforcerId"),
			artifact: reader.string("artifact"),
			outcomeKey: reader.string("outcomeKey"),
			proof: reader.string("proof"),
		};
		reader.finish();
		return read;
	} catch (error) {
		if (!(error instanceof Problem)) throw error;
		throw damaged();
	}
}

/** @internal */
export function recordOf(enforcer: Enforcer, own: OwnExchange): PendingRecord {
	const members = {
		tenantId: enforcer.tenantId,
		enforcerId: enforcer.enforcerId,
		artifact: own.artifact.text,
		outcomeKey: own.outcomeKey.expose(),
	};
	return { ...members, proof: proveRecord(enforcer.keys, proven(members)) };
}

function proven(record: Omit<PendingRecord, "proof">): string {
	const { tenantId, enforcerId, outcomeKey, artifact } = record;
	return [tenantId, enforcerId, outcomeKey, artifact].join("\n");
}

/**
 * The request behind a record that this enforcer has stored. An artifact, even with its outcome's
 * key, does not suffice: with a gateway's help it could be one that another enforcer had approved.
 * @internal
 */
export async function openPending(
	record: PendingRecord,
	enforcer: Enforcer,
): Promise<Exchange> {
	const refuse = (problem: string) =>
		new Changed(requestIdOf(record), `the stored request is ${problem}`);
	if (
		record.tenantId !== enforcer.tenantId ||
		record.enforcerId !== enforcer.enforcerId
	)
		throw refuse("another enforcer's");
	if (!provesRecord(enforcer.keys, proven(record), record.proof))
		throw refuse("not as this enforcer has stored it");
	try {
		const artifact = await parseArtifact(utf8(record.artifact));
		// One approval would be taken for those of all.
		if (artifact.rule !== null)
			throw refuse("one part of a request to several people");
		const seed = fromBase64urlOf("key", record.outcomeKey, 32);
		const outcomeKey = new OutcomeKey(seed);
		return new Exchange(enforcer, { artifact, outcomeKey });
	} catch (error) {
		if (!(error instanceof Problem)) throw error;
		throw damaged(requestIdOf(record));
	}
}

/** As the record says: it is checked when it is opened. */
function requestIdOf({ artifact }: PendingRecord): string {
	try {
		return String(JSON.parse(artifact).requestId);
	} catch {
		throw damaged();
	}
}

function toolOf({ artifact }: PendingRecord): string | undefined {
	const { payload } = JSON.parse(artifact);
	const isCall = Object(payload).kind === "tool";
	return isCall && typeof payload.tool === "string" ? payload.tool : undefined;
}

function damaged(requestId?: string): Changed {
	return new Changed(requestId, "the stored request is damaged");
}

/**
 * Whether a request asks those whom the options name, with their choices, about their place.
 * @internal
 */
export function isFor(options: RequestOptions, exchange: Exchange): boolean {
	const { artifact } = exchange.own;
	const { approver, repoRef, actions } = options;
	// Without these options the request may ask anyone, and name the machine that it began on.
	const isAsked =
		approver === undefined ||
		exchange.asked.every((asked) => asked === approver);
	const isPlace =
		repoRef === undefined || artifact.repository === shownRepository(repoRef);
	return isAsked && isPlace && hasActions(artifact, actions ?? []);
}
