// The enforcer's half of Countersign, for programs that run agents: a tool call waits until a paired
// approver has signed exactly this call. Data flows from `client` (what is asked) through `exchange`
// (one request: encrypt, submit, wait, judge) to `approved` (its one use).

export {
	Approved,
	type ApprovedFunction,
	type CallContext,
	type UseOptions,
} from "./approved.js";
export { Action, type RequestedAction } from "./artifact.js";
export type {
	ArtifactType,
	Call,
	Content,
	JsonObject,
	JsonValue,
} from "./call.js";
export { Client } from "./client.js";
export type { Duration } from "./durations.js";
export {
	AlreadyUsed,
	ApprovalFailure,
	Changed,
	CountersignError,
	type DenialCause,
	Denied,
	Ended,
	Expired,
	KeyReused,
	NotAskable,
	NotPaired,
	ProfileError,
	Rejected,
	TimedOut,
	TooFewApprovals,
	Unavailable,
	Untrusted,
} from "./errors.js";
export type { CallFunction, GateFunction, GateOptions } from "./gate.js";
export type {
	ClientEvent,
	ClientOptions,
	Question,
	RequestOptions,
	Submission,
} from "./options.js";
export {
	type OutcomeOptions,
	Pending,
	StillWaiting,
} from "./pending.js";
export { DecisionRecord, type VerifiedRecord } from "./record.js";
export type { CommentDuty, RuleOptions } from "./rule_options.js";
export { FileJournal, type State, type UseJournal } from "./state.js";
