// Decisions are signed and sent. Loaded after the first view, which shows what waits.

import { decideOpened, rejectUnopened } from "./decision.js";
import { subjectOf } from "./exchange.js";
import { isRefusedWith, loaded } from "./gateway.js";
import { judgeRule } from "./item.js";
import { Problem } from "./problem.js";
import { checkRule } from "./rule.js";
import { RANDOM } from "./seal.js";

/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./store.js').DecisionRecord} DecisionRecord */
/** @typedef {import('./types.js').Choice} Choice */
/** @typedef {import('./types.js').Item} Item */

/**
 * Signs a choice about an item. Only what was opened can be approved.
 * @param {Session} session
 * @param {Item} item
 * @param {Choice} choice
 */
async function signChoice(session, item, choice) {
	const { content, requestId, artifactHash, repoRef } = item;
	const signing = { keys: session.keys, random: RANDOM, now: Date.now() };
	const enforcer = session.pinned(item.enforcerId);
	if (content.opened && enforcer !== null) {
		const { rule } = content.artifact;
		const { problem, teams } = await judgeRule(session, item.enforcerId, rule);
		checkRule(rule, problem, choice);
		if (choice.grant !== undefined) {
			const { checkGrant } = await loaded(import("./grants.js"));
			checkGrant(choice.grant, content.artifact);
		}
		if (choice.answers !== undefined) {
			const { questions } = content.artifact.payload;
			if (
				!Array.isArray(questions) ||
				questions.length !== choice.answers.length
			)
				throw Problem.of("oddAnswers", {});
		}
		const heads = [...teams.values()].map(({ head }) => head);
		return decideOpened(content.artifact, enforcer, choice, signing, heads);
	}
	const problem = content.opened
		? Problem.of("notPaired", {})
		: content.problem;
	if (choice.verdict === "approve")
		throw Problem.of("notApprovable", { problem });
	if (artifactHash === null) throw Problem.of("notRejectable", {});
	return rejectUnopened(
		{ requestId, artifactHash, repoRef, enforcer },
		choice.reason,
		signing,
	);
}

/**
 * Signs and sends a decision. Returns it once the gateway has accepted it.
 * @param {Session} session
 * @param {Item} item
 * @param {Choice} choice
 * @returns {Promise<DecisionRecord>}
 */
export async function decide(session, item, choice) {
	const body = await signChoice(session, item, choice);
	const envelope = session.envelope("decision.submit", item.requestId, body);
	try {
		// The same decision again changes nothing.
		await session.client.call({
			method: "POST",
			path: "/v1/decisions",
			body: envelope,
			expect: [200],
		});
	} catch (error) {
		if (isRefusedWith(error, "SIGNATURE_INVALID", "KEY_REVOKED"))
			throw Problem.of("refusedAfterSigning", {}, error);
		if (isRefusedWith(error, "ALREADY_DECIDED"))
			throw Problem.of("alreadyDecided", {}, error);
		if (isRefusedWith(error, "NOT_FOUND"))
			throw Problem.of("goneAfterSigning", {}, error);
		if (isRefusedWith(error, "EXPIRED")) throw Problem.of("expired", {}, error);
		throw error;
	}
	return {
		...subjectOf(item),
		body,
		device: session.keys.bundle.text,
		isVerified: true,
		state: "decided",
		reason: choice.reason ?? null,
		actionId: choice.actionId ?? null,
		grant: choice.grant ?? null,
	};
}
