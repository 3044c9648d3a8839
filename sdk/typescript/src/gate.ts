// A function that runs only if a person has approved exactly this call.

import type { Approved, ApprovedFunction } from "./approved.js";
import { type Subject, subjectOf } from "./call.js";
import { ApprovalFailure, CountersignError, errorName } from "./errors.js";
import type { EventLog } from "./events.js";
import { GATE_OPTIONS, type RequestOptions, refuseUnknown } from "./options.js";

/** How calls of one function are asked about. */
export interface GateOptions<A> extends RequestOptions {
	/**
	 * Gets a copy of the arguments. Only `false` lets a call run unasked. If it throws, the call is
	 * denied.
	 */
	askIf?: ((args: A) => boolean | Promise<boolean>) | undefined;
}

/** Without `approval` if the condition let the call run unasked. */
export type GateFunction<A, R> = (
	args: A,
	context: {
		approval: Approved | undefined;
		signal: AbortSignal | undefined;
	},
) => R | Promise<R>;

export type CallFunction<A, R> = (
	args: A,
	call?: { signal?: AbortSignal },
) => Promise<R>;

/** @internal */
export interface GateParts {
	ask: (
		subject: Subject,
		options: RequestOptions,
		signal: AbortSignal | undefined,
	) => Promise<Approved>;
	log: EventLog;
}

/** @internal */
export function gateFunction<A extends object, R>(
	name: string,
	options: GateOptions<A>,
	run: ApprovedFunction<A, R> | GateFunction<A, R>,
	{ ask, log }: GateParts,
): CallFunction<A, R> {
	if (typeof run !== "function")
		throw new CountersignError("approvalRequired: expected a function");
	refuseUnknown("approvalRequired", options, GATE_OPTIONS);
	const gated = run as GateFunction<A, R>;
	return async (args, { signal } = {}) => {
		const subject = subjectOf({ name, args }, options.show);
		// The caller's objects may change while the condition or the person is thinking.
		const copy = () => JSON.parse(subject.payload).input;
		if (!(await mustAsk(options, copy(), subject, log))) {
			signal?.throwIfAborted();
			return gated(copy(), { approval: undefined, signal });
		}
		const approved = await ask(subject, options, signal);
		const call = { name, args: copy() };
		return approved.use(call, gated, signal === undefined ? {} : { signal });
	};
}

/** Only `false` lets a call pass. An error of the condition denies. */
async function mustAsk<A>(
	{ askIf }: GateOptions<A>,
	args: A,
	subject: Subject,
	log: EventLog,
): Promise<boolean> {
	if (askIf === undefined) return true;
	try {
		return (await askIf(args)) !== false;
	} catch (error) {
		const denial = new ApprovalFailure(
			`the condition failed (${errorName(error)})`,
		);
		log.ended(denial, undefined, subject);
		throw denial;
	}
}
