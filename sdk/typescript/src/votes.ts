// Counts the decisions about one call by its rule. Only decisions that `accept` has verified, each
// against the devices of its own seat, may be counted.

import type { VerifiedDecision } from "./accept.js";
import { isBlank } from "./core/rule.js";
import type { ApprovalAsk } from "./core/types.js";
import type { RuleTerms } from "./rule_options.js";

/** A verified decision, as far as it matters for the count. */
export interface ApproverVote {
	approver: string;
	isApproval: boolean;
	/** Approvals of different choices approve different things, and are never added up. */
	choice: string;
	hasComment: boolean;
}

/** An ask that lacks approvals. */
export interface AskGap {
	ask: ApprovalAsk;
	lacking: number;
	/** People whose approval would still count. */
	open: string[];
	/** People whose approval cannot be had any more. */
	absent: string[];
}

export type VoteState =
	| { stage: "satisfied"; choice: string }
	/** Enough people have rejected. Approvals do not matter any more. */
	| { stage: "rejected" }
	/** Impossible: too few people are left. */
	| { stage: "open" | "impossible"; gaps: AskGap[] };

type PersonState = "rejected" | "absent" | { choice: string };

export function voteOf({
	approver,
	isApproval,
	hints,
}: VerifiedDecision): ApproverVote {
	return {
		approver,
		isApproval,
		choice: choiceOf(hints.actionId, hints.answers),
		hasComment: !isBlank(hints.reason ?? ""),
	};
}

/** The same text for the same choice, and for no other. */
export function choiceOf(actionId?: string, answers?: string[][]): string {
	return JSON.stringify([actionId ?? null, answers ?? null]);
}

export function needsComment({ comment }: RuleTerms): boolean {
	return comment === "approve" || comment === "always";
}

export function peopleOf(terms: RuleTerms): string[] {
	return [...new Set(terms.asks.flatMap(askedBy))].sort();
}

function askedBy({ from, escalate }: ApprovalAsk): string[] {
	return [...new Set([...from, ...escalate.flatMap((step) => step.from)])];
}

/** The count of one set. A person has one vote: the first approval stays, a rejection replaces it. */
export class VoteCount {
	readonly #terms: RuleTerms;
	readonly #asked: Set<string>;
	readonly #people = new Map<string, PersonState>();

	constructor(terms: RuleTerms) {
		this.#terms = terms;
		this.#asked = new Set(peopleOf(terms));
	}

	/** Counts a decision. One by somebody whom the rule does not name changes nothing. */
	count({ approver, isApproval, choice, hasComment }: ApproverVote): void {
		if (!this.#asked.has(approver)) return;
		// Also by somebody in `notBy`: a further rule must not take away a rejection.
		if (!isApproval) this.#people.set(approver, "rejected");
		else if (!this.#people.has(approver)) {
			const isShort = needsComment(this.#terms) && !hasComment;
			const counts = !isShort && !this.#terms.notBy.includes(approver);
			this.#people.set(approver, counts ? { choice } : "absent");
		}
	}

	/** A person will not decide any more. A decision that was counted stays. */
	dropOut(approver: string): void {
		if (!this.#people.has(approver)) this.#people.set(approver, "absent");
	}

	state(): VoteState {
		const people = [...this.#people.values()];
		const rejected = people.filter((state) => state === "rejected");
		if (rejected.length >= this.#terms.rejections) return { stage: "rejected" };
		const choices = people.flatMap((state) =>
			typeof state === "string" ? [] : [state.choice],
		);
		const counts: AskGap[][] = [];
		for (const choice of [...new Set(choices)].sort()) {
			const gaps = this.#gaps(choice);
			if (gaps.length === 0) return { stage: "satisfied", choice };
			counts.push(gaps);
		}
		// Last, a choice that nobody has approved yet: of two that are equally far, the other is told.
		counts.push(this.#gaps(null));
		const far = (gaps: AskGap[]) =>
			gaps.reduce((sum, { lacking }) => sum + lacking, 0);
		const possible = counts.filter(isPossible);
		const [first = [], ...others] = possible.length > 0 ? possible : counts;
		const gaps = others.reduce(
			(best, each) => (far(each) < far(best) ? each : best),
			first,
		);
		return { stage: possible.length > 0 ? "open" : "impossible", gaps };
	}

	/** The people whose approvals are counted for the choice that satisfies the rule. */
	approvers(): string[] {
		const state = this.state();
		if (state.stage !== "satisfied") return [];
		return [...this.#people.keys()].filter((person) =>
			this.#hasApproved(person, state.choice),
		);
	}

	#hasApproved(person: string, choice: string | null): boolean {
		const state = this.#people.get(person);
		return typeof state === "object" && state.choice === choice;
	}

	/** The asks that lack approvals of this choice. */
	#gaps(choice: string | null): AskGap[] {
		return this.#terms.asks.flatMap((ask) => {
			const people = askedBy(ask);
			const approved = people.filter((it) => this.#hasApproved(it, choice));
			const open = people.filter(
				(it) => !this.#people.has(it) && !this.#terms.notBy.includes(it),
			);
			const absent = people.filter(
				(it) => !approved.includes(it) && !open.includes(it),
			);
			const lacking = ask.approvals - approved.length;
			return lacking > 0 ? [{ ask, lacking, open, absent }] : [];
		});
	}
}

function isPossible(gaps: AskGap[]): boolean {
	return gaps.every(({ lacking, open }) => lacking <= open.length);
}
