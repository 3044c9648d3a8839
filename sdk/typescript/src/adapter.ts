// Shared by the adapters for agent frameworks. The gate is around the execution of a tool, not around
// the framework's question whether it needs approval: frameworks read no answer as "no".

import { Approved } from "./approved.js";
import type { JsonObject } from "./call.js";
import { Client } from "./client.js";
import { type Duration, readTimeout } from "./durations.js";
import {
	ApprovalFailure,
	CountersignError,
	Denied,
	errorName,
	TimedOut,
} from "./errors.js";
import {
	REQUEST_OPTIONS,
	type RequestOptions,
	refuseUnknown,
} from "./options.js";
import type { StillWaiting } from "./pending.js";
import { checkRuleOptions, refuseSeveral } from "./rule_options.js";

const DEFAULT_TIMEOUT: Duration = "10m";

export interface AdapterOptions extends RequestOptions {
	/**
	 * The framework suspends the run before the tool. `settle` asks, and tells the framework the
	 * decision, in this process or another one. `timeout` includes the time until then.
	 */
	durable?: boolean;
}

/** Complete by its type. */
const ADAPTER_OPTIONS: Record<keyof AdapterOptions, true> = {
	...REQUEST_OPTIONS,
	durable: true,
};

export interface SettleOptions {
	/** How long to wait for each decision. Default `"0s"`: only look. */
	wait?: Duration;
}

const SETTLE_OPTIONS: Record<keyof SettleOptions, true> = { wait: true };

/** A call of a tool, as the framework makes it. */
export interface ToolCall {
	name: string;
	args: object;
	/** The model's id of this call. */
	callId: string;
	signal?: AbortSignal | undefined;
}

/** Either the tool ran, or it was denied. Errors of the tool are thrown. */
export type GateResult = { result: unknown } | { denial: Denied };

export class ToolGate {
	readonly #framework: string;
	readonly #client: Client;
	readonly #options: RequestOptions & { timeout: Duration };
	readonly isDurable: boolean;

	constructor(framework: string, client: Client, options: AdapterOptions) {
		if (!(client instanceof Client))
			throw new CountersignError("gate: expected a client");
		const { durable, ...others } = readOptions(options);
		this.#framework = framework;
		this.#client = client;
		this.#options = { timeout: DEFAULT_TIMEOUT, ...others };
		this.isDurable = durable === true;
		// A wrong option is refused now, not at the first call.
		readTimeout(this.#options.timeout);
	}

	/** Runs a tool with the arguments that were approved, or says why not. */
	async run(
		call: ToolCall,
		run: (args: JsonObject) => unknown,
	): Promise<GateResult> {
		let isStarted = false;
		const start = (args: JsonObject) => {
			isStarted = true;
			return run(args);
		};
		try {
			return { result: await this.#run(call, start) };
		} catch (error) {
			if (isStarted || call.signal?.aborted) throw error;
			return { denial: this.#denialOf(error, call.name) };
		}
	}

	async #run(
		call: ToolCall,
		start: (args: JsonObject) => unknown,
	): Promise<unknown> {
		const { name, args, signal } = call;
		const aborted = signal === undefined ? {} : { signal };
		if (!this.isDurable) {
			const options = { ...this.#options, metadata: this.#metadata(call) };
			const ask = this.#client.approvalRequired(name, options, start);
			return ask(args as JsonObject, aborted);
		}
		const outcome = await this.#outcome(call, this.#options.timeout);
		if (outcome instanceof Approved)
			return outcome.use({ name, args }, start, aborted);
		throw outcome instanceof Denied ? outcome : new TimedOut(outcome.requestId);
	}

	/** The decision about a call of a run that is suspended. The first time, a person is asked. */
	async outcome(
		call: ToolCall,
		options: SettleOptions,
	): Promise<Approved | Denied | StillWaiting> {
		refuseUnknown("settle", options, SETTLE_OPTIONS);
		const { wait = "0s" } = options;
		try {
			return await this.#outcome(call, wait);
		} catch (error) {
			return this.#denialOf(error, call.name);
		}
	}

	async #outcome(
		call: ToolCall,
		wait: Duration,
	): Promise<Approved | Denied | StillWaiting> {
		const { name, args, callId, signal } = call;
		if (typeof callId !== "string" || callId === "")
			throw new CountersignError("the call has no id");
		const aborted = signal === undefined ? {} : { signal };
		const pending = await this.#client.submit({
			...this.#options,
			...aborted,
			call: { name, args },
			metadata: this.#metadata(call),
			// Edited arguments have the same key, and are refused.
			key: `${this.#framework}/${callId}`,
		});
		return pending.outcome({ wait, ...aborted });
	}

	#metadata({ callId }: ToolCall): object {
		const { metadata } = this.#options;
		return { framework: this.#framework, toolCallId: callId, ...metadata };
	}

	#denialOf(error: unknown, name: string): Denied {
		if (error instanceof Denied) return error;
		const failure = new ApprovalFailure(
			`an unexpected error (${errorName(error)})`,
		);
		this.#client.logDenial(failure, name);
		return failure;
	}
}

function readOptions(options: AdapterOptions): AdapterOptions {
	const read = { ...options };
	refuseUnknown("gate", read, ADAPTER_OPTIONS);
	checkRuleOptions(read);
	if (read.durable === true) refuseSeveral(read);
	// The tool does not learn which one was chosen.
	const approving = (read.actions ?? []).filter(
		({ decision }) => decision === "approve",
	);
	if (approving.length > 1)
		throw new TypeError(
			"actions: more than one approves; use ask, which returns the choice",
		);
	return read;
}

/** A copy of a tool with other members. Its hidden members and its prototype stay. */
export function withMembers<T extends object>(tool: T, members: object): T {
	return Object.create(Object.getPrototypeOf(tool), {
		...Object.getOwnPropertyDescriptors(tool),
		...Object.getOwnPropertyDescriptors(members),
	});
}
