// One request: encrypt it, submit it, wait, and judge the answer. Everything but an accepted approval
// is a denial with its cause.

import { accept, DecisionRefused, type VerifiedDecision } from "./accept.js";
import { type ArtifactOptions, completeArtifact } from "./artifact.js";
import type { Subject } from "./call.js";
import { Deadline, sleep } from "./clock.js";
import { readTime, spellTime } from "./core/canonical.js";
import type { Node } from "./core/json.js";
import { denialOf } from "./denials.js";
import type { Enforcer } from "./enforcer.js";
import { Ended, Rejected, TimedOut } from "./errors.js";
import { ACK_TIMEOUT_MS, acknowledge, withdraw } from "./exchange_calls.js";
import {
	type GatewayAnswer,
	GatewayAway,
	LateAnswer,
	type Message,
	path,
	readMessage,
} from "./gateway.js";
import { OutcomeKey } from "./keys.js";
import {
	decisionDigest,
	type OutcomeEffect,
	type OutcomeSubject,
	signOutcome,
} from "./outcome.js";
import {
	type OwnExchange,
	type Submission,
	sealArtifact,
	spellEnvelope,
} from "./submission.js";
import type { AskedApprover } from "./trust.js";

/** Of one call that waits for a decision. */
const LONG_POLL_TIMEOUT_MS = 25_000;
/** The answer of such a call may be late by this. */
const ANSWER_GRACE_MS = 5_000;
/** A call without an answer this short before the end of the request was cut off by it. */
const LAST_ANSWER_GRACE_MS = 100;
/** Shortest time between two such calls: a gateway may answer at once, without a decision. */
const POLL_INTERVAL_MS = 250;
/** At least this long the devices are read after a decision has come. */
const JUDGE_TIMEOUT_MS = 15_000;

/** An approval that passed every check. */
export interface AcceptedApproval {
	decision: VerifiedDecision;
	/** The message that delivered it, with the signed body. */
	message: Message;
	/** By both clocks: until when it can be used. */
	deadline: Deadline;
}

export class Exchange {
	readonly #enforcer: Enforcer;
	readonly own: OwnExchange;
	/** Devices that the request is encrypted to. */
	#recipients: Set<string>;

	constructor(enforcer: Enforcer, own: OwnExchange) {
		this.#enforcer = enforcer;
		this.own = own;
		this.#recipients = new Set([...own.artifact.devices.values()].flat());
	}

	/** A new request to the approvers of these ids. */
	static async prepare(
		enforcer: Enforcer,
		subject: Subject,
		options: Omit<ArtifactOptions, "createdAt" | "expiresAt">,
		asked: string[],
		times: { until: Deadline; submitUntil: Deadline },
		signal?: AbortSignal,
	): Promise<Exchange> {
		const outcomeKey = OutcomeKey.generate();
		try {
			// Read again however new the copy is: a device that was just added opens the request too.
			const devices = await enforcer.trust.devicesOf(
				asked,
				true,
				times.submitUntil,
				signal,
			);
			const createdAt = enforcer.clock.now();
			const expiresAt = createdAt + times.until.left();
			const complete = { ...options, createdAt, expiresAt };
			const artifact = await completeArtifact(
				subject,
				complete,
				devices,
				outcomeKey,
			);
			return new Exchange(enforcer, { artifact, outcomeKey });
		} catch (error) {
			throw denialOf(error);
		}
	}

	get requestId(): string {
		return this.own.artifact.requestId;
	}

	/**
	 * The signed artifact says who was asked, so that nobody can add to them later. It names the devices
	 * of everyone in a set, and one part asks one person.
	 */
	get asked(): string[] {
		const { rule, devices } = this.own.artifact;
		if (rule === null) return [...devices.keys()];
		return rule === "unknown" || rule.seat === null ? [] : [rule.seat];
	}

	/** Milliseconds until the request ends by the wall clock. */
	expiresAt(): number {
		return Number(readTime(this.own.artifact.expiresAt));
	}

	/** The submission, encrypted to every device in force of those who are asked. */
	async seal(deadline: Deadline, signal?: AbortSignal): Promise<Submission> {
		try {
			const { trust } = this.#enforcer;
			return await this.#sealed(
				await trust.devicesOf(this.asked, false, deadline, signal),
			);
		} catch (error) {
			throw denialOf(error, this.requestId);
		}
	}

	/** Sends the request. It may have been sent before: the gateway takes the same text again. */
	async submit(
		submission: Submission,
		deadline: Deadline,
		signal?: AbortSignal,
	): Promise<void> {
		const body = submission.envelope;
		this.#recipients = new Set(submission.recipients);
		try {
			const answer = await this.#enforcer.gateway.call(
				{ method: "POST", path: "/v1/artifacts", body, expect: [202] },
				deadline,
				signal,
			);
			const message = readMessage(answer.json());
			if (
				message.msgType !== "artifact.accepted" ||
				message.requestId !== this.requestId
			)
				throw new GatewayAway("no artifact.accepted for this request");
		} catch (error) {
			throw denialOf(error, this.requestId);
		}
	}

	async #sealed(approvers: AskedApprover[]): Promise<Submission> {
		const enforcer = this.#enforcer;
		const { artifact } = this.own;
		const sealed = await sealArtifact(enforcer, artifact, approvers);
		const { body, recipients } = sealed;
		const { requestId } = artifact;
		const kind = "artifact.submit";
		const envelope = spellEnvelope(enforcer, requestId, kind, body);
		return { envelope, recipients };
	}

	/**
	 * Waits for a decision until `until`. Null: nobody has decided yet, and the request goes on. A
	 * gateway that is away does not end the wait.
	 */
	async wait(
		expiry: Deadline,
		until: Deadline,
		signal?: AbortSignal,
	): Promise<AcceptedApproval | null> {
		const judge = (answer: GatewayAnswer, deadline: Deadline) =>
			this.#judge(answer, deadline, signal);
		const judged = await this.poll(expiry, until, judge, signal);
		if (judged === null) return null;
		const lasts = judged.decision.expiresAt - this.#enforcer.clock.now();
		return { ...judged, deadline: expiry.within(lasts) };
	}

	/** Waits for an answer that ends the request, and judges it. */
	async poll<T>(
		expiry: Deadline,
		until: Deadline,
		judge: (answer: GatewayAnswer, deadline: Deadline) => Promise<T>,
		signal?: AbortSignal,
	): Promise<T | null> {
		let away: GatewayAway | null = null;
		for (let isFirst = true; ; isFirst = false) {
			if (expiry.isOver())
				throw away === null
					? new TimedOut(this.requestId)
					: denialOf(away, this.requestId);
			const left = Math.min(until.left(), expiry.left());
			if (left <= 0 && !isFirst) return null;
			const next = Deadline.after(this.#enforcer.clock, POLL_INTERVAL_MS);
			try {
				const answer = await this.#waitOnce(left, expiry, signal);
				if (answer !== null) {
					const time = Math.max(left, JUDGE_TIMEOUT_MS);
					return await judge(answer, expiry.within(time));
				}
				away = null;
				if (left > 0) await this.#sealAgain();
			} catch (error) {
				signal?.throwIfAborted();
				if (!(error instanceof GatewayAway) || error.isFinal)
					throw denialOf(error, this.requestId);
				const isCut = expiry.left() <= LAST_ANSWER_GRACE_MS;
				if (!(error instanceof LateAnswer && isCut)) away = error;
			}
			await sleep(Math.min(next.left(), left), signal);
			signal?.throwIfAborted();
		}
	}

	/** Waits for one call: an answer that ends the request, or null. */
	async #waitOnce(
		time: number,
		expiry: Deadline,
		signal?: AbortSignal,
	): Promise<GatewayAnswer | null> {
		const wait = Math.min(time, LONG_POLL_TIMEOUT_MS);
		const seconds = Math.max(1, Math.floor(wait / 1000));
		const place = path("v1", "exchanges", this.requestId, "wait");
		const answer = await this.#enforcer.gateway.call(
			{
				path: `${place}?timeout=${seconds}`,
				waitMs: seconds * 1000,
				expect: [200, 204],
			},
			expiry.within(seconds * 1000 + ANSWER_GRACE_MS),
			signal,
		);
		const isOver =
			answer.status === 200 || answer.headers.has("exchange-state");
		return isOver ? answer : null;
	}

	/** The decision in an answer. Without one, the request has ended. */
	async readDecision(answer: GatewayAnswer): Promise<Message> {
		const state = answer.headers.get("exchange-state");
		if (state !== undefined) {
			// Nobody signed it. The gateway could deliver an approval all the same.
			await this.take();
			throw state === "expired"
				? new TimedOut(this.requestId)
				: new Ended(state, this.requestId);
		}
		const message = readMessage(answer.json());
		if (message.msgType !== "decision.deliver")
			throw new GatewayAway("an answer that is no decision");
		return message;
	}

	async #judge(
		answer: GatewayAnswer,
		deadline: Deadline,
		signal?: AbortSignal,
	): Promise<Omit<AcceptedApproval, "deadline">> {
		const message = await this.readDecision(answer);
		let decision: VerifiedDecision;
		try {
			decision = await this.acceptCurrent(message.body, deadline, signal);
		} catch (error) {
			if (!(error instanceof DecisionRefused)) throw error;
			await this.deny(message, "untrusted");
			throw denialOf(error, this.requestId);
		}
		// An approval is acknowledged when it is used: until then nothing is allowed.
		if (decision.isApproval) return { decision, message };
		await this.deny(message, "rejected");
		throw this.rejected(decision);
	}

	rejected({ approver, hints }: VerifiedDecision): Rejected {
		const { reason, actionId } = hints;
		return new Rejected(this.requestId, { approver, reason, actionId });
	}

	/**
	 * Signs a denial. The request is taken first: after it nothing may run, whatever the gateway
	 * delivers. If it was taken before, for a use or a denial, what was signed then stands.
	 */
	async deny(
		message: Message,
		effect: Exclude<OutcomeEffect, "allowed">,
	): Promise<void> {
		if (await this.take()) await this.acknowledge(message, effect);
	}

	/** Takes the request in the journal. False: it was taken before. */
	async take(): Promise<boolean> {
		return (await this.#enforcer.journal.take(this.requestId)) === true;
	}

	/** Judges a decision by current devices; with `isNew`, by a list that is read now. */
	async acceptCurrent(
		decision: Node,
		deadline: Deadline,
		signal?: AbortSignal,
		isNew = false,
	): Promise<VerifiedDecision> {
		const { trust, keys, clock, enforcerId } = this.#enforcer;
		const { artifact } = this.own;
		const request = {
			requestId: artifact.requestId,
			artifactHash: artifact.hash,
			repoRef: artifact.repoRef,
			expiresAt: artifact.expiresAt,
			enforcerId,
		};
		for (let isAgain = isNew; ; isAgain = true) {
			const devices = await trust.devicesOf(
				this.asked,
				isAgain,
				deadline,
				signal,
			);
			const trusts = devices.map((approver) => approver.trust);
			try {
				return await accept(decision, request, keys, trusts, clock.now());
			} catch (error) {
				// The device may have been added since the list was read.
				const isOther = !(error instanceof DecisionRefused);
				if (isAgain || isOther || !error.isUnknownDevice) throw error;
			}
		}
	}

	/** Before an approval is used, which may be long after it came. */
	async judgeAgain(
		{ message, deadline }: AcceptedApproval,
		signal?: AbortSignal,
	): Promise<void> {
		try {
			await this.acceptCurrent(
				message.body,
				deadline.within(JUDGE_TIMEOUT_MS),
				signal,
			);
		} catch (error) {
			signal?.throwIfAborted();
			if (error instanceof DecisionRefused)
				await this.deny(message, "untrusted");
			throw denialOf(error, this.requestId);
		}
	}

	async acknowledge(message: Message, effect: OutcomeEffect): Promise<void> {
		const { clock, tenantId, enforcerId } = this.#enforcer;
		const decision = await decisionDigest(message.body).catch(() => null);
		if (decision === null) return;
		const outcome = signOutcome(this.own.outcomeKey, {
			subjects: [this.subject(decision)],
			tenantId,
			enforcerId,
			effect,
			at: spellTime(clock.now()),
		});
		await acknowledge(this.#enforcer, this.requestId, message.msgId, outcome);
	}

	subject(decision: string): OutcomeSubject {
		const { hash } = this.own.artifact;
		return { requestId: this.requestId, artifactHash: hash, decision };
	}

	/** Encrypts the request again if a device was added since, so that it can be opened there too. */
	async #sealAgain(): Promise<void> {
		const { clock, trust, gateway } = this.#enforcer;
		const deadline = Deadline.after(clock, ACK_TIMEOUT_MS);
		try {
			const devices = await trust.devicesOf(this.asked, true, deadline);
			const inForce = devices.flatMap((approver) => approver.trust.inForce);
			if (inForce.every(({ deviceId }) => this.#recipients.has(deviceId)))
				return;
			const { envelope, recipients } = await this.#sealed(devices);
			const place = path("v1", "exchanges", this.requestId, "ciphertext");
			await gateway.call(
				{ method: "PUT", path: place, body: envelope, expect: [204] },
				deadline,
			);
			this.#recipients = new Set(recipients);
		} catch {
			// The decision does not depend on it.
		}
	}

	/** Takes the request back. It does not matter if it has ended meanwhile, or if this fails. */
	withdraw(reason: string): Promise<void> {
		return withdraw(this.#enforcer, this.requestId, reason);
	}
}
