// How requests end: decisions that are made here, and those that the gateway reports. Loaded after
// the first view, which shows pending requests.

import {
	describeDecision,
	isSameDecision,
	readState,
	recordForeign,
} from "./exchange.js";
import { loaded } from "./gateway.js";
import { isShown } from "./item.js";
import { Problem } from "./problem.js";

/** @typedef {import('./inbox.js').InboxModel} InboxModel */
/** @typedef {import('./store.js').DecisionRecord} DecisionRecord */
/** @typedef {import('./types.js').Choice} Choice */
/** @typedef {import('./types.js').Item} Item */

/**
 * Asks the gateway what has become of a request.
 * @param {InboxModel} model
 * @param {string} requestId
 */
export async function ask(model, requestId) {
	const { state, decision } = await readState(model.session, requestId);
	const item = model.find(requestId);
	if (
		item === null ||
		state === "pending" ||
		item.state === "deciding" ||
		(item.state === state && decision === null)
	)
		return;
	const known =
		model.unkept.get(requestId) ??
		(await model.session.store.decision(requestId));
	const isSame =
		known !== null && decision !== null && isSameDecision(known.body, decision);
	if (known?.isVerified && !isSame) contradicted(model, item, known, state);
	else if (
		(state === "decided" || state === "delivered") &&
		decision !== null
	) {
		if (
			item.state === state &&
			item.decision !== null &&
			item.gatewaySays === undefined
		)
			return;
		const record = isSame
			? { ...known, state }
			: await recordForeign(model.session, item, decision, state);
		const confirmed =
			state === "delivered" ? await withOutcome(model, item, record) : record;
		// Somebody may have decided here while the gateway was asked.
		if (model.find(requestId) !== item) return;
		await keep(model, item, confirmed);
		if (state === "decided") void model.watchDelivery(requestId);
	} else {
		model.settle({ ...item, state });
	}
}

/**
 * The record of a delivered decision, with what the agent's machine has signed about it.
 * @param {InboxModel} model
 * @param {Item} item
 * @param {DecisionRecord} record
 */
async function withOutcome(model, item, record) {
	const { readOutcome } = await loaded(import("./outcome.js"));
	// A gateway that withholds it later does not undo what was verified.
	return {
		...record,
		outcome:
			record.outcome ?? (await readOutcome(model.session, item, record.body)),
	};
}

/**
 * The gateway does not say what this device has verified before. That stays, and what the gateway
 * says is shown beside it.
 * @param {InboxModel} model
 * @param {Item} item
 * @param {DecisionRecord} known
 * @param {Item['state']} state
 */
function contradicted(model, item, known, state) {
	if (item.gatewaySays === state) return;
	model.settle({
		...item,
		state: known.state,
		decision: describeDecision(model.session, known),
		gatewaySays: state,
	});
}

/**
 * @param {InboxModel} model
 * @param {Item} item
 * @param {DecisionRecord} record
 */
async function keep(model, item, record) {
	const { gatewaySays: _, isUnkept: __, ...rest } = item;
	const decided = {
		...rest,
		state: record.state,
		decision: describeDecision(model.session, record),
	};
	// Until it is kept, what the gateway says is compared with this one.
	model.unkept.set(record.requestId, record);
	model.settle(decided);
	try {
		await model.session.store.keepDecision(record);
		model.unkept.delete(record.requestId);
	} catch (error) {
		// It has been decided nevertheless.
		if (!(error instanceof Problem)) throw error;
		model.settle({ ...decided, isUnkept: true });
	}
}

/**
 * Decides what was shown, and nothing else that may have come under the same id.
 * @param {InboxModel} model
 * @param {Item} shown
 * @param {Choice} choice
 */
export async function decideShown(model, shown, choice) {
	const { requestId } = shown;
	const item = model.items.get(requestId);
	if (item === undefined || item.state !== "pending")
		throw Problem.of("noLongerPending", {});
	if (!isShown(item, shown)) throw Problem.of("replaced", {});
	model.items.set(requestId, { ...item, state: "deciding" });
	model.publish();
	try {
		const { decide } = await loaded(import("./deciding.js"));
		await keep(model, item, await decide(model.session, item, choice));
	} catch (error) {
		model.items.set(requestId, item);
		model.publish();
		const isOver =
			error instanceof Problem &&
			[
				"alreadyDecided",
				"goneAfterSigning",
				"noLongerPending",
				"expired",
			].includes(error.code);
		if (isOver) await model.askQuietly(requestId);
		throw error;
	}
	void model.watchDelivery(requestId);
}
