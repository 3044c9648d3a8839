// The options of a call that several people must approve.

import { isId } from "./core/canonical.js";
import type { ApprovalRule } from "./core/types.js";
import { CountersignError } from "./errors.js";

/** More decided parts may not fit into an outcome. */
const MAX_APPROVALS = 56;
const MAX_PEOPLE = 64;
const COMMENT_DUTIES = ["none", "reject", "approve", "always"] as const;

/** The decisions that need a comment. An approval without it does not count. */
export type CommentDuty = (typeof COMMENT_DUTIES)[number];

/** With `approvals`, each person is asked on their own, and this enforcer counts. */
export interface RuleOptions {
	/** As many different people must approve. */
	approvals?: number;
	/** Only these approvers. By default everyone who is paired. */
	from?: string[];
	/** As many people who reject end it. By default one. */
	rejections?: number;
	comment?: CommentDuty;
}

/**
 * The conditions of a rule.
 * @internal
 */
export type RuleTerms = Pick<
	ApprovalRule,
	"asks" | "rejections" | "comment" | "notBy"
>;

/**
 * The terms for those who are paired; undefined if one decision settles the call.
 * @internal
 */
export function readTerms(
	{ approvals, from, rejections, comment }: RuleOptions,
	paired: string[],
): RuleTerms | undefined {
	if (approvals === undefined) {
		if ([from, rejections, comment].some((given) => given !== undefined))
			throw refused("approvals", "a number beside from, rejections or comment");
		return undefined;
	}
	if (comment !== undefined && !COMMENT_DUTIES.includes(comment))
		throw refused("comment", COMMENT_DUTIES.join(", "));
	return {
		asks: [
			{
				approvals: readCount("approvals", approvals, MAX_APPROVALS),
				from: from === undefined ? paired : readPeople(from),
				team: null,
				escalate: [],
			},
		],
		rejections: readCount("rejections", rejections ?? 1, MAX_PEOPLE),
		comment: comment ?? "none",
		notBy: [],
	};
}

/**
 * Refuses options that cannot count together, before anybody is asked.
 * @internal
 */
export function checkRuleOptions(
	options: RuleOptions & { approver?: string },
): void {
	const terms = readTerms(options, []);
	if (terms !== undefined && options.approver !== undefined)
		throw refused("approver", "none beside approvals; from says who is asked");
}

/**
 * Refuses the options where one decision settles the request.
 * @internal
 */
export function refuseSeveral(options: RuleOptions): void {
	if (readTerms(options, []) !== undefined)
		throw refused("approvals", "none: a durable request asks one person");
}

function readCount(name: string, value: unknown, most: number): number {
	const isCount = typeof value === "number" && Number.isInteger(value);
	if (!isCount || value < 1 || value > most)
		throw refused(name, `a number from 1 to ${most}`);
	return value;
}

function readPeople(from: unknown): string[] {
	const people: unknown[] = Array.isArray(from) ? from : [];
	const ids = people.filter(
		(id): id is string => typeof id === "string" && isId(id),
	);
	const isSound = ids.length === people.length && ids.length <= MAX_PEOPLE;
	if (!isSound || ids.length < 1 || new Set(ids).size < ids.length)
		throw refused("from", "1 to 64 ids of approvers, none twice");
	return [...ids].sort();
}

function refused(name: string, expected: string): CountersignError {
	return new CountersignError(`${name}: expected ${expected}`);
}
