// Errors of this library. Their texts never contain arguments, keys or credentials.

import { visibleText } from "./core/visible.js";

export class CountersignError extends Error {
	override get name(): string {
		return this.constructor.name;
	}
}

/** The profile, or a file beside it, is missing, damaged, or readable by others. */
export class ProfileError extends CountersignError {}

export type DenialCause =
	| "rejected"
	| "timed_out"
	| "expired"
	| "ended"
	| "unavailable"
	| "untrusted"
	| "too_few"
	| "not_paired"
	| "already_used"
	| "changed"
	| "not_askable"
	| "key_reused"
	| "failed";

/** The call must not run. There is no other answer than this and an accepted approval. */
export abstract class Denied extends CountersignError {
	abstract override readonly cause: DenialCause;
	/** Missing if the call was denied before there was a request. */
	readonly requestId: string | undefined;

	constructor(message: string, requestId?: string) {
		super(message);
		this.requestId = requestId;
	}

	/** One paragraph for the model: why, that nothing was executed, and what not to do. */
	forModel(): string {
		return `This call was denied: ${this.whyForModel()}. Nothing was executed. Do not repeat this call, and do not try to reach the same effect in another way. Tell the user that it was not done.`;
	}

	protected whyForModel(): string {
		return this.message;
	}
}

/** A person said no. */
export class Rejected extends Denied {
	readonly cause = "rejected";
	readonly approver: string;
	/** The person's own words, decrypted here. */
	readonly reason: string | undefined;
	/** The action that the person chose, if the request offered some. */
	readonly actionId: string | undefined;

	constructor(
		requestId: string,
		about: {
			approver: string;
			reason: string | undefined;
			actionId: string | undefined;
		},
	) {
		super(`${visibleText(about.approver)} rejected it`, requestId);
		this.approver = about.approver;
		this.reason = about.reason;
		this.actionId = about.actionId;
		// Reasons are for the model and the caller, not for logs that print errors.
		hide(this, "reason");
	}

	protected override whyForModel(): string {
		const { reason } = this;
		return reason === undefined
			? this.message
			: `${this.message}, with the reason ${JSON.stringify(visibleText(reason))}`;
	}
}

/** Nobody decided in time. */
export class TimedOut extends Denied {
	readonly cause: "timed_out" | "expired" = "timed_out";

	constructor(requestId?: string, message = "nobody decided in time") {
		super(message, requestId);
	}
}

/** An approval came, or was used, too late. The call has to be asked again. */
export class Expired extends TimedOut {
	override readonly cause = "expired";

	constructor(requestId?: string) {
		super(requestId, "the approval has expired");
	}
}

/** The states of a request. A gateway that names another one is not quoted: models read it. */
const STATES: readonly string[] = [
	"pendingApproval",
	"decided",
	"delivered",
	"expired",
	"withdrawn",
	"cancelled",
];

/** The request was withdrawn or cancelled, as the gateway says. No later decision counts. */
export class Ended extends Denied {
	readonly cause = "ended";
	/** Such as `withdrawn`; `unknown` if the gateway says anything else. */
	readonly state: string;

	constructor(state: string, requestId: string) {
		const known = STATES.includes(state) ? state : "unknown";
		super(`the request ended without a decision (${known})`, requestId);
		this.state = known;
	}
}

/** The gateway is away, or refuses. */
export class Unavailable extends Denied {
	readonly cause = "unavailable";

	constructor(detail: string, requestId?: string) {
		super(`nobody could be asked: ${visibleText(detail)}`, requestId);
	}

	protected override whyForModel(): string {
		return "nobody could be asked, because the approval gateway is unavailable";
	}
}

/** A decision that failed a check. The model learns nothing about it. */
export class Untrusted extends Denied {
	readonly cause = "untrusted";
	/** The check that failed, for logs. */
	readonly check: string;

	constructor(check: string, requestId: string) {
		super(`the decision is not trusted (${visibleText(check)})`, requestId);
		this.check = check;
	}

	protected override whyForModel(): string {
		return "it was not approved";
	}
}

/** Too few of the people who must approve did so, or can be asked. */
export class TooFewApprovals extends Denied {
	readonly cause = "too_few";

	protected override whyForModel(): string {
		return "too few of the people who must approve it did so";
	}
}

/** No approver is paired with this enforcer, or the approver has ended the pairing. */
export class NotPaired extends Denied {
	readonly cause = "not_paired";

	constructor(detail: string, requestId?: string) {
		super(`${visibleText(detail)}; pair one: countersign pair`, requestId);
	}

	protected override whyForModel(): string {
		return "no approver is paired with this machine";
	}
}

/** The approval was used before: it counts for one execution. */
export class AlreadyUsed extends Denied {
	readonly cause = "already_used";

	constructor(requestId: string) {
		super("the approval was used before", requestId);
	}

	/** The call may have run under the first use. */
	override forModel(): string {
		return `This call was not executed again: ${this.message}. It may have been executed then. Do not repeat it. Tell the user to check whether it was done.`;
	}
}

/** The call is not the one that was approved, or the stored request was edited. */
export class Changed extends Denied {
	readonly cause = "changed";

	constructor(
		requestId?: string,
		detail = "the call is not the one that was approved",
	) {
		super(detail, requestId);
	}
}

/** Arguments that cannot be shown to a person as what will run. */
export class NotAskable extends Denied {
	readonly cause = "not_askable";

	protected override whyForModel(): string {
		return `a person cannot be asked about it: ${this.message}`;
	}
}

/** The key of a submission was used before, for another call. */
export class KeyReused extends Denied {
	readonly cause = "key_reused";

	constructor() {
		super("the key was used before, for another call");
	}
}

/** The approval could not be asked for or checked. The log has the name of the error. */
export class ApprovalFailure extends Denied {
	readonly cause = "failed";

	protected override whyForModel(): string {
		return "it could not be approved";
	}
}

/** Keeps a property out of what `console.log` and `JSON.stringify` show. */
export function hide(target: object, ...names: string[]): void {
	for (const name of names) {
		Object.defineProperty(target, name, { enumerable: false });
	}
}

/** The class of an error. Its text could contain arguments. */
export function errorName(error: unknown): string {
	return error instanceof Error ? error.constructor.name : typeof error;
}
