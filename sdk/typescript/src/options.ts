// The options of a request, and the events that callers are told.

import { hostname } from "node:os";
import type { ArtifactOptions, RequestedAction } from "./artifact.js";
import type { Call, Content } from "./call.js";
import type { Deadline } from "./clock.js";
import { type Duration, readTimeout } from "./durations.js";
import type { RuleOptions } from "./rule_options.js";
import type { UseJournal } from "./state.js";

const DEFAULT_SUBMIT_TIMEOUT: Duration = "30s";

/** An event, without arguments, reasons or other content. */
export interface ClientEvent {
	event: "asked" | "decided" | "denied" | "gateway_away";
	requestId?: string;
	tool?: string;
	approver?: string;
	/** Of a denial. */
	cause?: string;
	/** For operators. */
	detail?: string;
}

export interface ClientOptions {
	/** Takes approvals once. By default a file for each, in the state's directory. */
	journal?: UseJournal;
	/** Is told of events, for logs. What it throws is ignored. */
	onEvent?: (event: ClientEvent) => void;
}

export interface RequestOptions extends RuleOptions {
	/** How long a decision counts. Default `"10m"`; at most `"30d"`. */
	timeout?: Duration;
	/** How long the gateway is tried until it has taken the request. Default `"30s"`. */
	submitTimeout?: Duration;
	/** Only this approver, instead of all that are paired. */
	approver?: string;
	/** The repository or place that it is about. Default: this machine and directory. */
	repoRef?: string;
	/** Names of arguments, in the order in which they are displayed first. Nothing is left out. */
	show?: string[];
	/** Choices to offer: at most 5. */
	actions?: RequestedAction[];
	/** Shown to the person, after everything else. */
	metadata?: object;
	/** A UUID or ULID. */
	sessionId?: string;
}

export type Question = (Content | { call: Call }) &
	RequestOptions & {
		/** Withdraws the request. */
		signal?: AbortSignal;
	};

export type Submission = (Content | { call: Call }) &
	RequestOptions & {
		/** The same key gives the same request again, also after a restart. */
		key?: string;
		/** Ends the submission. A request that was taken goes on. */
		signal?: AbortSignal;
	};

/**
 * Complete by its type.
 * @internal
 */
export const REQUEST_OPTIONS: Record<keyof RequestOptions, true> = {
	timeout: true,
	submitTimeout: true,
	approver: true,
	repoRef: true,
	show: true,
	actions: true,
	metadata: true,
	sessionId: true,
	approvals: true,
	from: true,
	rejections: true,
	comment: true,
};

const SUBJECT = { call: true, type: true, payload: true };
/** @internal */
export const ASK_OPTIONS = { ...REQUEST_OPTIONS, ...SUBJECT, signal: true };
/** @internal */
export const SUBMIT_OPTIONS = { ...ASK_OPTIONS, key: true };
/** @internal */
export const GATE_OPTIONS = { ...REQUEST_OPTIONS, askIf: true };

/**
 * Types do not hold in JavaScript: a condition would let calls run unasked, and a limit that is
 * misspelt would not hold.
 * @internal
 */
export function refuseUnknown(
	place: string,
	options: object,
	known: object,
): void {
	for (const name of Object.keys(options))
		if (!Object.hasOwn(known, name))
			throw new TypeError(`${place}: there is no option ${name}`);
}

/** @internal */
export function submitDeadline(
	{ submitTimeout }: RequestOptions,
	until: Deadline,
): Deadline {
	return until.within(readTimeout(submitTimeout ?? DEFAULT_SUBMIT_TIMEOUT));
}

/** @internal */
export function artifactOptions(
	options: RequestOptions,
): Omit<ArtifactOptions, "createdAt" | "expiresAt" | "rule"> {
	return {
		repoRef: options.repoRef ?? `${hostname()}:${process.cwd()}`,
		actions: options.actions ?? [],
		metadata: options.metadata,
		sessionId: options.sessionId,
	};
}
