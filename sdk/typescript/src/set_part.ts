// One part of a set: the exchange that asks one person. Its decision is judged against the devices of
// that person alone, and acknowledged only when the whole set is decided.

import { DecisionRefused, type VerifiedDecision } from "./accept.js";
import { Deadline } from "./clock.js";
import { denialOf } from "./denials.js";
import type { Enforcer } from "./enforcer.js";
import { Denied, NotPaired, TimedOut } from "./errors.js";
import type { AcceptedApproval, Exchange } from "./exchange.js";
import { acknowledge, takeBack } from "./exchange_calls.js";
import type { GatewayAnswer, Message } from "./gateway.js";
import type { WaitLimiter } from "./limiter.js";
import { decisionDigest, type OutcomeSubject } from "./outcome.js";
import type { Submission } from "./submission.js";

/** Of sending one request, for instance to a full inbox. Then the person drops out. */
const SUBMIT_TIMEOUT_MS = 30_000;
/** After the last approval that is needed: of withdrawals with late decisions, of device lists. */
const SETTLE_TIMEOUT_MS = 5_000;

/** A decision, and the result of its checks. */
interface PartDecision {
	message: Message;
	judged: VerifiedDecision | DecisionRefused;
}

/** How many parts may be sent, and may wait, at the same time. */
export interface SetPermits {
	submissions: WaitLimiter;
	waits: WaitLimiter;
}

export class SetPart {
	readonly seat: string;
	readonly exchange: Exchange;
	readonly #enforcer: Enforcer;
	readonly #submission: Submission;
	/** The end of the requests. */
	readonly #until: Deadline;
	#decision: PartDecision | undefined;
	/** Whether the gateway has said that it has the request. */
	#isSent = false;
	/** Why there is no decision. */
	loss: Denied | undefined;

	constructor(
		enforcer: Enforcer,
		seat: string,
		exchange: Exchange,
		submission: Submission,
		until: Deadline,
	) {
		this.#enforcer = enforcer;
		this.seat = seat;
		this.exchange = exchange;
		this.#submission = submission;
		this.#until = until;
	}

	/** The decision, if it passed every check. */
	get verified(): VerifiedDecision | undefined {
		const judged = this.#decision?.judged;
		return judged instanceof DecisionRefused ? undefined : judged;
	}

	get refusal(): DecisionRefused | undefined {
		const judged = this.#decision?.judged;
		return judged instanceof DecisionRefused ? judged : undefined;
	}

	/** Sends the request, and waits for the decision. Without one, there is a loss. */
	async ask(permits: SetPermits, signal: AbortSignal): Promise<void> {
		const until = this.#until;
		const late = () => {
			throw new TimedOut(this.exchange.requestId);
		};
		try {
			const send = () =>
				this.exchange.submit(
					this.#submission,
					until.within(SUBMIT_TIMEOUT_MS),
					signal,
				);
			await permits.submissions.run(send, until, signal, late);
			this.#isSent = true;
			const wait = () => this.#takeDecision(until, signal);
			await permits.waits.run(wait, until, signal, late);
		} catch (error) {
			// The set needs no more decisions, or its caller has given up.
			if (signal.aborted) return;
			if (!(error instanceof Denied)) throw error;
			this.loss = error;
		}
	}

	async #takeDecision(until: Deadline, signal?: AbortSignal): Promise<void> {
		const judge = async (answer: GatewayAnswer, deadline: Deadline) => {
			const message = await this.exchange.readDecision(answer);
			return this.#judged(message, deadline, false, signal);
		};
		const found = await this.exchange.poll(this.#until, until, judge, signal);
		if (found === null) throw new TimedOut(this.exchange.requestId);
		this.#decision = found;
	}

	async #judged(
		message: Message,
		deadline: Deadline,
		isNew: boolean,
		signal?: AbortSignal,
	): Promise<PartDecision> {
		try {
			const judged = await this.exchange.acceptCurrent(
				message.body,
				deadline,
				signal,
				isNew,
			);
			return { message, judged };
		} catch (error) {
			if (error instanceof DecisionRefused) return { message, judged: error };
			throw error;
		}
	}

	/**
	 * Takes the request back, if it is not decided. A decision that came before is taken over. An error
	 * means that there may be one that is not known here.
	 */
	async close(reason: string): Promise<void> {
		if (this.#decision !== undefined) return;
		const deadline = this.#settleDeadline();
		const { requestId } = this.exchange;
		const about = { reason, isSent: this.#isSent };
		if (!(await takeBack(this.#enforcer, requestId, about, deadline))) return;
		const late = new AbortController();
		const timer = setTimeout(
			() => late.abort(new TimedOut(requestId)),
			deadline.left(),
		);
		try {
			await this.#takeDecision(deadline, late.signal);
		} finally {
			clearTimeout(timer);
		}
	}

	/**
	 * Judges an approval by a list of devices that is read now. A rejection stays. An error means that
	 * there is no such list.
	 */
	async judgeAgain(): Promise<void> {
		const message = this.#decision?.message;
		if (message === undefined || !this.verified?.isApproval) return;
		try {
			const deadline = this.#settleDeadline();
			this.#decision = await this.#judged(message, deadline, true);
		} catch (error) {
			if (!(error instanceof NotPaired))
				throw denialOf(error, this.exchange.requestId);
			// Nobody speaks for this seat any more.
			this.refuse(new DecisionRefused(2, "notPaired"));
		}
	}

	#settleDeadline(): Deadline {
		return Deadline.after(this.#enforcer.clock, SETTLE_TIMEOUT_MS);
	}

	/** Lets a decision not count that has passed the checks of its own seat. */
	refuse(judged: DecisionRefused): void {
		if (this.#decision !== undefined)
			this.#decision = { message: this.#decision.message, judged };
	}

	/** The approval, if there is one that passed every check. */
	accepted(): AcceptedApproval | undefined {
		const decision = this.verified;
		if (this.#decision === undefined || !decision?.isApproval) return undefined;
		const lasts = decision.expiresAt - this.#enforcer.clock.now();
		const deadline = this.#until.within(lasts);
		return { decision, message: this.#decision.message, deadline };
	}

	/** The part as an outcome names it, if it has a decision that has the form of one. */
	async subject(): Promise<OutcomeSubject | undefined> {
		if (this.#decision === undefined) return undefined;
		const digest = decisionDigest(this.#decision.message.body);
		const decision = await digest.catch(() => undefined);
		return decision === undefined ? undefined : this.exchange.subject(decision);
	}

	async acknowledge(outcome: string | undefined): Promise<void> {
		if (this.#decision === undefined) return;
		const { msgId } = this.#decision.message;
		await acknowledge(this.#enforcer, this.exchange.requestId, msgId, outcome);
	}
}
