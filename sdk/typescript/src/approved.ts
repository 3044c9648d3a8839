// An approval that passed every check, and its one use.

import { inspect } from "node:util";
import {
	argumentsOf,
	type Call,
	type Content,
	comparable,
	type JsonObject,
	type Subject,
	subjectOf,
} from "./call.js";
import { spellTime } from "./core/canonical.js";
import { spellRecord } from "./core/record.js";
import type { Enforcer } from "./enforcer.js";
import { AlreadyUsed, Changed, Expired, hide } from "./errors.js";
import type { AcceptedApproval, Exchange } from "./exchange.js";
import { DecisionRecord } from "./record.js";

/** The approval under which a tool runs, as the tool sees it. */
export interface CallContext {
	approval: Approved;
	signal: AbortSignal | undefined;
}

/** Runs with the arguments that were approved: a copy made from the signed text. */
export type ApprovedFunction<A, R> = (
	args: A,
	context: CallContext,
) => R | Promise<R>;

export interface UseOptions {
	/** Nothing runs once this is aborted. */
	signal?: AbortSignal;
}

/** @internal */
export interface ApprovalParts {
	exchange: Exchange;
	accepted: AcceptedApproval;
	enforcer: Enforcer;
	/** Of a set, which was taken and acknowledged as a whole: all that count, the first one first. */
	counted?: Omit<ApprovalParts, "counted">[];
}

/** An accepted approval of one request. It allows one execution, of exactly what was shown. */
export class Approved {
	readonly requestId: string;
	/** The approver's id. */
	readonly approver: string;
	/** The device that signed. */
	readonly device: string;
	/** The action that the person chose, if the request offered some. */
	readonly actionId: string | undefined;
	/** The person's own words, decrypted here. */
	readonly reason: string | undefined;
	/** For each question of the request, the texts that were chosen or written. */
	readonly answers: string[][] | undefined;
	/** Until when it can be used: RFC 3339. */
	readonly expiresAt: string;
	readonly #parts: ApprovalParts;
	/** Whether this object has the approval to itself, and whether it has used it. */
	#isTaken = false;
	#isUsed = false;

	/** @internal */
	constructor(parts: ApprovalParts) {
		const { decision } = parts.accepted;
		this.#parts = parts;
		this.#isTaken = parts.counted !== undefined;
		this.requestId = parts.exchange.requestId;
		this.approver = decision.approver;
		this.device = decision.device.deviceId;
		this.actionId = decision.hints.actionId;
		this.reason = decision.hints.reason;
		this.answers = decision.hints.answers;
		this.expiresAt = spellTime(
			Math.min(decision.expiresAt, parts.exchange.expiresAt()),
		);
		// People's words are for the caller, not for logs.
		hide(this, "reason", "answers");
	}

	/** Those of all people who were needed; this one alone if one was. */
	get approvals(): Approved[] {
		const { counted } = this.#parts;
		if (counted === undefined) return [this];
		const [, ...others] = counted;
		return [this, ...others.map((parts) => new Approved(parts))];
	}

	/** The decision as a file that anyone can verify offline. */
	record(): DecisionRecord {
		const { exchange, accepted, enforcer } = this.#parts;
		const { enforcerId, tenantId } = enforcer;
		const subject = { tenantId, approverId: this.approver };
		const decided = {
			enforcerId,
			artifact: exchange.own.artifact.text,
			decision: accepted.message.body.raw,
			device: accepted.decision.device.text,
		};
		return new DecisionRecord(spellRecord(subject, decided, []));
	}

	/**
	 * Runs a function under this approval, once: compares the call with the one that was signed,
	 * judges the decision again, takes the approval in the journal, compares once more, tells the
	 * approver that it is allowed, and gives the function a fresh copy of the arguments. After a
	 * crash in between the approval counts as used. Another call is denied as changed, and does not
	 * use the approval up.
	 */
	async use<A = JsonObject, R = unknown>(
		call: Call | Content,
		run: ApprovedFunction<A, R>,
		{ signal }: UseOptions = {},
	): Promise<R> {
		const { exchange, enforcer } = this.#parts;
		const tool = "name" in call ? call.name : undefined;
		const about = { tool, requestId: this.requestId };
		const prepare = () => this.#prepareUse(call, signal);
		await enforcer.spans.record("use", about, prepare, signal);
		this.#checkTime(signal);
		const { text } = exchange.own.artifact;
		const args = argumentsOf(text, tool !== undefined) as A;
		return await run(args, { approval: this, signal });
	}

	async #prepareUse(
		call: Call | Content,
		signal: AbortSignal | undefined,
	): Promise<void> {
		const { exchange, counted = [this.#parts] } = this.#parts;
		const compare = () => {
			if (!isSame(subjectOf(call), exchange)) throw new Changed(this.requestId);
		};
		compare();
		this.#checkTime(signal);
		// A device may have been revoked since.
		for (const each of counted)
			await each.exchange.judgeAgain(each.accepted, signal);
		await this.take(compare);
		if (this.#isUsed) throw new AlreadyUsed(this.requestId);
		this.#isUsed = true;
		// The caller's objects could change during each of these steps.
		compare();
	}

	/**
	 * Takes the approval, so that nothing else can use it, and then says that it is allowed. A call
	 * that has changed by then ends the approval.
	 * @internal
	 */
	async take(compare: () => void = () => {}): Promise<void> {
		if (this.#isTaken) return;
		const { exchange, accepted } = this.#parts;
		if (!(await exchange.take())) throw new AlreadyUsed(this.requestId);
		this.#isTaken = true;
		try {
			compare();
		} catch (error) {
			this.#isUsed = true;
			await exchange.acknowledge(accepted.message, "changed");
			throw error;
		}
		await exchange.acknowledge(accepted.message, "allowed");
	}

	#checkTime(signal: AbortSignal | undefined): void {
		signal?.throwIfAborted();
		const { counted = [this.#parts] } = this.#parts;
		if (counted.some(({ accepted }) => accepted.deadline.isOver()))
			throw new Expired(this.requestId);
	}

	toJSON(): object {
		const { requestId, approver, device, expiresAt } = this;
		return { requestId, approver, device, expiresAt };
	}

	[inspect.custom](): string {
		return `Approved ${inspect(this.toJSON())}`;
	}
}

/**
 * Whether a call is the one that the artifact of a request shows.
 * @internal
 */
export function isSame(subject: Subject, exchange: Exchange): boolean {
	const { artifactType, payload } = exchange.own.artifact;
	const isCall = subject.tool !== undefined;
	const shown = comparable(artifactType, payload as JsonObject, isCall);
	const wanted = JSON.parse(subject.payload);
	return comparable(subject.artifactType, wanted, isCall) === shown;
}
