// Asking several people about one call. Each has an exchange of their own; this enforcer counts their
// decisions by the rule. The call is allowed only once the open requests are withdrawn, the counted
// decisions have passed every check again, and the outcome is signed.

import { spellTime } from "./core/canonical.js";
import type { ApprovalRule } from "./core/types.js";
import type { Enforcer } from "./enforcer.js";
import { AlreadyUsed, ApprovalFailure } from "./errors.js";
import { type OutcomeEffect, signOutcome } from "./outcome.js";
import { countParts, denialOfCount, refuseSharedDevices } from "./set_count.js";
import type { SetPart, SetPermits } from "./set_part.js";
import type { VoteState } from "./votes.js";

export class ApprovalSet {
	readonly parts: SetPart[];
	readonly #rule: ApprovalRule;
	readonly #enforcer: Enforcer;
	/** As approvers are told, if nothing else is found out. */
	#cause: Exclude<OutcomeEffect, "allowed"> = "interrupted";
	#outcome: string | undefined;
	#named = new Set<string>();

	constructor(parts: SetPart[], rule: ApprovalRule, enforcer: Enforcer) {
		this.parts = parts;
		this.#rule = rule;
		this.#enforcer = enforcer;
	}

	/** Waits until the rule is satisfied; returns the parts that count. After an error, `giveUp`. */
	async decision(
		permits: SetPermits,
		signal: AbortSignal | undefined,
	): Promise<SetPart[]> {
		let state = await this.#collect(permits, signal);
		if (state.stage === "satisfied") state = await this.#settle();
		if (state.stage !== "satisfied") {
			const found = denialOfCount(state, this.#rule, this.parts);
			this.#cause = found.effect;
			throw found.denial;
		}
		const counted = this.#counted();
		for (const { exchange } of counted)
			if (!(await exchange.take())) throw new AlreadyUsed(exchange.requestId);
		signal?.throwIfAborted();
		await this.#sign("allowed");
		await this.#sendOutcome();
		return counted;
	}

	/** Withdraws all requests that are open, and tells those who have decided. */
	async giveUp(): Promise<void> {
		const reason = "the call was denied";
		await Promise.allSettled(this.parts.map((part) => part.close(reason)));
		// An outcome that was signed before may have been sent; there is no second one.
		if (this.#outcome === undefined) {
			const isLate =
				this.#cause === "missing" && this.#state().stage === "satisfied";
			try {
				await this.#sign(isLate ? "interrupted" : this.#cause);
			} catch {
				// They learn only that the decisions arrived.
			}
		}
		await this.#sendOutcome();
	}

	/** Asks everyone at the same time. Somebody who cannot be asked holds up nobody else. */
	async #collect(
		permits: SetPermits,
		signal: AbortSignal | undefined,
	): Promise<VoteState> {
		const enough = new AbortController();
		const ends = signal === undefined ? [] : [signal];
		const end = AbortSignal.any([enough.signal, ...ends]);
		const asking = new Set<Promise<void>>();
		for (const part of this.parts) {
			const asked: Promise<void> = part
				.ask(permits, end)
				.finally(() => asking.delete(asked));
			asking.add(asked);
		}
		try {
			while (asking.size > 0 && this.#state().stage === "open") {
				await Promise.race(asking);
				signal?.throwIfAborted();
			}
		} finally {
			enough.abort();
			await Promise.allSettled(asking);
		}
		return this.#state();
	}

	/**
	 * Withdraws the open requests, counts decisions that had come before, and judges again by device
	 * lists that are read now: somebody may have lost their device since.
	 */
	async #settle(): Promise<VoteState> {
		await all(this.parts, (part) => part.close("enough people have decided"));
		const state = this.#state();
		if (state.stage !== "satisfied") return state;
		await all(this.parts, (part) => part.judgeAgain());
		refuseSharedDevices(this.parts);
		return this.#state();
	}

	#state(): VoteState {
		return countParts(this.#rule, this.parts).state();
	}

	/** The approvals of the choice that has enough. Others approve something else. */
	#counted(): SetPart[] {
		const approvers = countParts(this.#rule, this.parts).approvers();
		return this.parts.filter(({ seat }) => approvers.includes(seat));
	}

	/**
	 * Signs the outcome about the decided parts, if there are any. Of an allowed call, a decision that
	 * failed a check is not among them.
	 */
	async #sign(effect: OutcomeEffect): Promise<void> {
		const { tenantId, enforcerId, clock } = this.#enforcer;
		const [first] = this.parts;
		if (first === undefined) throw new ApprovalFailure("nobody was asked");
		const decided = this.parts.filter(
			({ verified }) => effect !== "allowed" || verified !== undefined,
		);
		const found = await Promise.all(decided.map((part) => part.subject()));
		const subjects = found.filter((subject) => subject !== undefined);
		if (subjects.length === 0) return;
		this.#outcome = signOutcome(first.exchange.own.outcomeKey, {
			subjects,
			set: this.#rule.set,
			tenantId,
			enforcerId,
			effect,
			at: spellTime(clock.now()),
		});
		this.#named = new Set(subjects.map(({ requestId }) => requestId));
	}

	/** Acknowledges the decided parts. The answer to the agent does not depend on it. */
	async #sendOutcome(): Promise<void> {
		const sending = this.parts.map((part) => {
			const isNamed = this.#named.has(part.exchange.requestId);
			return part.acknowledge(isNamed ? this.#outcome : undefined);
		});
		await Promise.all(sending);
	}
}

/** Runs all to their ends, and throws the first error. */
async function all(
	parts: SetPart[],
	act: (part: SetPart) => Promise<void>,
): Promise<void> {
	for (const result of await Promise.allSettled(parts.map(act)))
		if (result.status === "rejected") throw result.reason;
}
