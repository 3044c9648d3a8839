// The client: asks a person, and runs nothing without an accepted approval.

import { join } from "node:path";
import { inspect } from "node:util";
import { Approved, type ApprovedFunction, isSame } from "./approved.js";
import { type Subject, subjectOf } from "./call.js";
import { type Clock, Deadline, SYSTEM_CLOCK } from "./clock.js";
import { sha256, toHex, utf8 } from "./core/bytes.js";
import { type Duration, readTimeout } from "./durations.js";
import type { Enforcer } from "./enforcer.js";
import {
	CountersignError,
	Denied,
	KeyReused,
	NotPaired,
	ProfileError,
	TimedOut,
	Unavailable,
} from "./errors.js";
import { EventLog } from "./events.js";
import { Exchange } from "./exchange.js";
import {
	type CallFunction,
	type GateFunction,
	type GateOptions,
	gateFunction,
} from "./gate.js";
import { Gateway, type Transport } from "./gateway.js";
import { HttpTransport } from "./http.js";
import { importEncryptionKey } from "./keys.js";
import { WaitLimiter } from "./limiter.js";
import {
	ASK_OPTIONS,
	artifactOptions,
	type ClientOptions,
	type Question,
	type RequestOptions,
	refuseUnknown,
	SUBMIT_OPTIONS,
	type Submission,
	submitDeadline,
} from "./options.js";
import {
	isFor,
	openPending,
	Pending,
	type PendingRecord,
	parsePending,
	recordOf,
	spellPending,
} from "./pending.js";
import {
	type Profile,
	parseProfile,
	profilePath,
	readProfile,
} from "./profile.js";
import { type VerifiedRecord, verifyRecord } from "./record.js";
import { checkRuleOptions, refuseSeveral } from "./rule_options.js";
import { askSeveral } from "./several.js";
import { SpanRecorder } from "./spans.js";
import { DirectoryState, FileJournal, type State } from "./state.js";
import { parseStored, spellStored } from "./submission.js";
import { TrustStore } from "./trust.js";

const DEFAULT_TIMEOUT: Duration = "10m";
/** The gateway takes 1,000 of one identity. */
const MAX_WAITS = 100;
const VERIFY_TIMEOUT_MS = 15_000;

/** @internal */
export interface ClientParts {
	profile: () => Promise<Profile>;
	state: State;
	transport: (profile: Profile) => Transport;
	clock?: Clock;
}

/** @internal */
export async function openClient(
	parts: ClientParts,
	options: ClientOptions = {},
): Promise<Client> {
	const profile = await parts.profile();
	const { enforcerId, tenantId } = profile;
	const clock = parts.clock ?? SYSTEM_CLOCK;
	const log = new EventLog(options.onEvent);
	const gateway = new Gateway(parts.transport(profile), (detail) =>
		log.tell({ event: "gateway_away", detail }),
	);
	const current = async () => {
		const read = await parts.profile();
		if (read.enforcerId !== enforcerId || read.tenantId !== tenantId)
			throw new ProfileError("the profile is of another enforcer now");
		return read;
	};
	const enforcer: Enforcer = {
		enforcerId,
		tenantId,
		keys: await importEncryptionKey(profile.privateKey),
		gateway,
		trust: new TrustStore(current, parts.state, gateway, clock),
		clock,
		journal: options.journal ?? new FileJournal(parts.state),
		spans: await SpanRecorder.load(),
	};
	return new Client(enforcer, parts.state, log);
}

export class Client {
	readonly #enforcer: Enforcer;
	readonly #state: State;
	readonly #log: EventLog;
	readonly #limiter = new WaitLimiter(MAX_WAITS);
	/** Submissions under way, by key. */
	readonly #keys = new Map<string, Promise<unknown>>();

	/** @internal */
	constructor(enforcer: Enforcer, state: State, log: EventLog) {
		this.#enforcer = enforcer;
		this.#state = state;
		this.#log = log;
	}

	/**
	 * With the profile of this name, as `countersign join` and `countersign pair` wrote it;
	 * `$COUNTERSIGN_PROFILE` or `default` without one. Files beside it hold what is learned.
	 */
	static fromProfile(name?: string, options?: ClientOptions): Promise<Client> {
		const path = profilePath(name);
		const state = new DirectoryState(path.replace(/toml$/, ""));
		return openClient(
			{
				profile: () => readProfile(path),
				state,
				transport: ({ gateway }) => new HttpTransport(gateway),
			},
			options,
		);
	}

	/** With a profile from elsewhere, such as a mounted secret. `state` survives restarts. */
	static async fromProfileText(
		text: string,
		options: ClientOptions & { state: string | State },
	): Promise<Client> {
		const { state } = options;
		if (state === undefined || state === null || state === "")
			throw new ProfileError(
				"state: expected a directory or an object that survives restarts; without it revocations would be forgotten",
			);
		const profile = parseProfile(text);
		return openClient(
			{
				profile: async () => profile,
				state:
					typeof state === "string"
						? new DirectoryState(join(state, "/"))
						: state,
				transport: ({ gateway }) => new HttpTransport(gateway),
			},
			options,
		);
	}

	/** Asks a person, and waits. Anything but an accepted approval throws `Denied`. */
	async ask(question: Question): Promise<Approved> {
		refuseUnknown("ask", question, ASK_OPTIONS);
		const asked = "call" in question ? question.call : question;
		const subject = subjectOf(asked, question.show);
		const approved = await this.#ask(subject, question, question.signal);
		// The caller may act on it without `use`, and its record can be saved.
		await approved.take();
		return approved;
	}

	/**
	 * A function that asks a person about each call, and runs `run` once if exactly this call was
	 * approved, with a copy of the arguments made from the signed text.
	 */
	approvalRequired<A extends object, R>(
		name: string,
		options: RequestOptions & { askIf?: undefined },
		run: ApprovedFunction<A, R>,
	): CallFunction<A, R>;
	approvalRequired<A extends object, R>(
		name: string,
		options: GateOptions<A>,
		run: GateFunction<A, R>,
	): CallFunction<A, R>;
	approvalRequired<A extends object, R>(
		name: string,
		options: GateOptions<A>,
		run: ApprovedFunction<A, R> | GateFunction<A, R>,
	): CallFunction<A, R> {
		return gateFunction(name, options, run, {
			ask: (...asked) => this.#ask(...asked),
			log: this.#log,
		});
	}

	/** Submits a request that outlives this process. `client.pending` resumes it. */
	submit(submission: Submission): Promise<Pending> {
		const tool = "call" in submission ? submission.call.name : undefined;
		return this.#enforcer.spans.record(
			"submit",
			{ tool },
			() => this.#submit(submission),
			submission.signal,
		);
	}

	async #submit(submission: Submission): Promise<Pending> {
		refuseUnknown("submit", submission, SUBMIT_OPTIONS);
		const { key } = submission;
		// One decision settles the request. It must not be taken for several.
		refuseSeveral(submission);
		if (key === undefined) return this.#send(submission, undefined);
		if (typeof key !== "string" || key === "")
			throw new CountersignError("key: expected a text");
		const name = `requests/${toHex(await sha256(utf8(key)))}.json`;
		// One at a time, so that calls at the same moment make one request.
		const before = this.#keys.get(name) ?? Promise.resolve();
		const run = () => this.#send(submission, name);
		const submitted = before.then(run, run);
		this.#keys.set(name, submitted);
		const forget = () => {
			if (this.#keys.get(name) === submitted) this.#keys.delete(name);
		};
		submitted.then(forget, forget);
		return submitted;
	}

	/** A request that was submitted before, from its record: the text, or what JSON makes of it. */
	pending(record: string | object): Pending {
		return this.#pending(parsePending(record));
	}

	/** Verifies a record of a decision by the devices that this enforcer knows. */
	async verifyRecord(text: string): Promise<VerifiedRecord> {
		const { trust, tenantId, clock } = this.#enforcer;
		const deadline = Deadline.after(clock, VERIFY_TIMEOUT_MS);
		const trustOf = async (approverId: string) => {
			const [found] = await trust.devicesOf([approverId], false, deadline);
			if (found === undefined)
				throw new NotPaired("no such approver is paired");
			return found.trust;
		};
		return verifyRecord(text, trustOf, tenantId);
	}

	/** @internal Of an adapter, for a reason that this client does not know. */
	logDenial(denial: Denied, tool: string): void {
		this.#log.ended(denial, undefined, { tool });
	}

	/** Closes connections. Waits that are under way end in denials. */
	close(): void {
		this.#enforcer.gateway.close();
	}

	toJSON(): object {
		return { enforcerId: this.#enforcer.enforcerId };
	}

	[inspect.custom](): string {
		return `Client ${inspect(this.toJSON())}`;
	}

	#ask(
		subject: Subject,
		options: RequestOptions,
		signal: AbortSignal | undefined,
	): Promise<Approved> {
		return this.#enforcer.spans.record(
			"ask",
			subject,
			() => this.#wait(subject, options, signal),
			signal,
		);
	}

	async #wait(
		subject: Subject,
		options: RequestOptions,
		signal: AbortSignal | undefined,
	): Promise<Approved> {
		signal?.throwIfAborted();
		checkRuleOptions(options);
		const enforcer = this.#enforcer;
		const until = Deadline.after(
			enforcer.clock,
			readTimeout(options.timeout ?? DEFAULT_TIMEOUT),
		);
		if (options.approvals !== undefined) {
			const tools = { enforcer, limiter: this.#limiter, log: this.#log };
			return askSeveral(tools, subject, options, until, signal);
		}
		let exchange: Exchange | undefined;
		try {
			exchange = await this.#prepare(subject, options, until, signal);
			const opened = exchange;
			const submitUntil = submitDeadline(options, until);
			const sealed = await opened.seal(submitUntil, signal);
			await opened.submit(sealed, submitUntil, signal);
			this.#log.asked(opened);
			const accepted = await this.#limiter.run(
				() => opened.wait(until, until, signal),
				until,
				signal,
				() => null,
			);
			signal?.throwIfAborted();
			if (accepted === null) throw new TimedOut(opened.requestId);
			const approved = new Approved({ exchange: opened, accepted, enforcer });
			this.#log.ended(approved, opened);
			return approved;
		} catch (error) {
			if (signal?.aborted) {
				await exchange?.withdraw("the agent's program has cancelled it");
				throw signal.reason;
			}
			if (error instanceof Denied) this.#log.ended(error, exchange, subject);
			// It may have arrived all the same, and nobody waits for it.
			if (error instanceof Unavailable)
				void exchange?.withdraw("the agent's program does not wait any more");
			throw error;
		}
	}

	async #prepare(
		subject: Subject,
		options: RequestOptions,
		until: Deadline,
		signal: AbortSignal | undefined,
	): Promise<Exchange> {
		const paired = await this.#enforcer.trust.paired();
		const asked = paired.filter(
			(id) => options.approver === undefined || options.approver === id,
		);
		if (asked.length === 0)
			throw new NotPaired(
				paired.length === 0
					? "no approver is paired with this machine"
					: "no such approver is paired with this machine",
			);
		return Exchange.prepare(
			this.#enforcer,
			subject,
			artifactOptions(options),
			asked,
			{ until, submitUntil: submitDeadline(options, until) },
			signal,
		);
	}

	/** With a name, the record is stored before the request is sent. */
	async #send(
		submission: Submission,
		name: string | undefined,
	): Promise<Pending> {
		const { signal } = submission;
		const asked = "call" in submission ? submission.call : submission;
		const subject = subjectOf(asked, submission.show);
		const { clock } = this.#enforcer;
		const timeout = readTimeout(submission.timeout ?? DEFAULT_TIMEOUT);
		const until = Deadline.after(clock, timeout);
		let stored = name === undefined ? null : await this.#state.load(name);
		if (stored === null) {
			const made = await this.#prepare(subject, submission, until, signal);
			const submitUntil = submitDeadline(submission, until);
			const sealed = await made.seal(submitUntil, signal);
			const request = spellPending(recordOf(this.#enforcer, made.own));
			const text = spellStored({ request, ...sealed });
			const isFirst =
				name === undefined || (await this.#state.create(name, text));
			stored = isFirst ? text : await this.#state.load(name);
		}
		const kept = parseStored(stored ?? "");
		const record = parsePending(kept.request);
		const exchange = await openPending(record, this.#enforcer);
		if (!isSame(subject, exchange) || !isFor(submission, exchange))
			throw new KeyReused();
		const expiry = Deadline.at(clock, exchange.expiresAt());
		if (!expiry.isOver()) {
			const submitUntil = submitDeadline(submission, expiry);
			await exchange.submit(kept, submitUntil, signal);
			this.#log.asked(exchange);
		}
		return this.#pending(record);
	}

	#pending(record: PendingRecord): Pending {
		return new Pending(record, {
			enforcer: this.#enforcer,
			limiter: this.#limiter,
			log: this.#log,
		});
	}
}
