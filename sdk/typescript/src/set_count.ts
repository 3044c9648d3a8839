// The count of a set, and the explanation of a denial.

import { DecisionRefused } from "./accept.js";
import { visibleText } from "./core/visible.js";
import { type Denied, TimedOut, TooFewApprovals, Untrusted } from "./errors.js";
import type { OutcomeEffect } from "./outcome.js";
import type { RuleTerms } from "./rule_options.js";
import type { SetPart } from "./set_part.js";
import {
	type AskGap,
	needsComment,
	peopleOf,
	VoteCount,
	type VoteState,
	voteOf,
} from "./votes.js";

/** Counts the decisions of all parts. People who are not asked or not waited for drop out. */
export function countParts(terms: RuleTerms, parts: SetPart[]): VoteCount {
	const count = new VoteCount(terms);
	for (const { verified, refusal, loss, seat } of parts) {
		if (verified !== undefined) count.count(voteOf(verified));
		else if (refusal !== undefined || loss !== undefined) count.dropOut(seat);
	}
	for (const person of peopleOf(terms))
		if (!parts.some(({ seat }) => seat === person)) count.dropOut(person);
	return count;
}

/** Denies if these people are too few, whatever they decide. */
export function checkPeople(terms: RuleTerms, asked: string[]): void {
	const count = new VoteCount(terms);
	for (const person of peopleOf(terms))
		if (!asked.includes(person)) count.dropOut(person);
	const state = count.state();
	if (state.stage !== "open")
		throw new TooFewApprovals(explained(state, terms, []));
}

/** Lets a device count on one seat only, also if two approvers have it. */
export function refuseSharedDevices(parts: SetPart[]): void {
	const seen = new Set<string>();
	for (const part of parts) {
		const { verified } = part;
		if (!verified?.isApproval) continue;
		const { deviceId } = verified.device;
		if (seen.has(deviceId))
			part.refuse(new DecisionRefused(2, "deviceOfAnotherSeat"));
		seen.add(deviceId);
	}
}

/** The denial that follows from a count, and the cause that the approvers are told. */
export function denialOfCount(
	state: VoteState,
	terms: RuleTerms,
	parts: SetPart[],
): { denial: Denied; effect: Exclude<OutcomeEffect, "allowed"> } {
	if (state.stage === "rejected")
		for (const { verified, exchange } of parts)
			if (verified?.isApproval === false)
				return { denial: exchange.rejected(verified), effect: "rejected" };
	const why = explained(state, terms, parts);
	const refused = parts.find(({ refusal }) => refusal !== undefined);
	if (refused !== undefined) {
		const denial = new Untrusted(why, refused.exchange.requestId);
		return { denial, effect: "untrusted" };
	}
	const absent = gapsOf(state).flatMap((gap) => gap.absent);
	const isLate = (person: string) =>
		parts.some(({ seat, loss }) => seat === person && loss instanceof TimedOut);
	const denial =
		absent.length > 0 && absent.every(isLate)
			? new TimedOut()
			: new TooFewApprovals(why);
	return { denial, effect: "missing" };
}

function gapsOf(state: VoteState): AskGap[] {
	return "gaps" in state ? state.gaps : [];
}

function explained(
	state: VoteState,
	terms: RuleTerms,
	parts: SetPart[],
): string {
	const texts = gapsOf(state).map(({ ask, lacking, open, absent }) => {
		const whys = [...absent].sort().map((person) => {
			const part = parts.find(({ seat }) => seat === person);
			return `${visibleText(person)}: ${whyAbsent(terms, part)}`;
		});
		const why = whys.join("; ") || `${open.length} people are asked`;
		const noun = ask.approvals === 1 ? "approval" : "approvals";
		return `it needs ${ask.approvals} ${noun} and lacks ${lacking} (${why})`;
	});
	return texts.join("; ");
}

function whyAbsent(terms: RuleTerms, part: SetPart | undefined): string {
	if (part === undefined) return "not paired with this machine";
	const { refusal, verified, loss } = part;
	if (refusal !== undefined)
		return `the decision is not trusted: ${visibleText(refusal.message)}`;
	if (verified === undefined) return loss?.message ?? "has not decided";
	if (!verified.isApproval) return "rejected it";
	return needsComment(terms) && !voteOf(verified).hasComment
		? "approved it without the comment that is needed"
		: "made another choice";
}
