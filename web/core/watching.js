// Keeps the inbox current beside the channel. Nothing is asked while nobody can see the page.

import { waitForAny } from "./exchange.js";
import { isHidden, jittered, sleep } from "./gateway.js";
import { wantsIntroduction } from "./item.js";
import { Problem } from "./problem.js";

/** @typedef {import('./inbox.js').InboxModel} InboxModel */

/** How long the gateway is to wait; it answers before if a request has ended. */
const WAIT_SECONDS = 25;
/** And how long its answer may take beyond that. */
const ANSWER_MS = 10_000;
/** The most that one wait may be about. */
const MAX_WAITED_FOR = 200;
/** The wait of each turn, if there are more. */
const TURN_SECONDS = 2;
/** An answer without news that comes sooner is no answer. */
const EARLY_MS = 1_000;
/** Requests that come in one after the other are waited for together. */
const GATHER_MS = 300;
/** How often the inbox is read while no channel is open. */
const POLL_MS = 3_000;
/** And at least, however long the gateway has been away. */
const LONGEST_POLL_MS = 60_000;
/** Sooner, nothing would be looked for again. */
const FIRST_LOOK_MS = 2_500;
const LONGEST_DELIVERY_PAUSE_MS = 60_000;

/**
 * How long to wait before the inbox is read again.
 * @param {number} failures in a row
 */
export function pollPause(failures) {
	return Math.min(POLL_MS * 2 ** Math.min(failures, 10), LONGEST_POLL_MS);
}

/** @param {InboxModel} model */
function isOffline(model) {
	const { connection } = model.live.value;
	return connection === "offline" || connection === "refused";
}

/**
 * Which requests are waited for now: all of them, or some in turn, and the first in any case.
 * @param {string[]} pending
 * @param {number} from
 */
export function turnOf(pending, from) {
	if (pending.length <= MAX_WAITED_FOR)
		return { waitedFor: pending, next: 0, seconds: WAIT_SECONDS };
	const [first, ...others] = pending;
	const start = from % others.length;
	const turn = [...others.slice(start), ...others.slice(0, start)].slice(
		0,
		MAX_WAITED_FOR - 1,
	);
	return {
		waitedFor: [String(first), ...turn],
		next: start + turn.length,
		seconds: TURN_SECONDS,
	};
}

/**
 * Waits until requests have ended, and asks what has become of them: nothing is pushed when another
 * device decides.
 * @param {InboxModel} model
 * @param {number} run
 */
export async function waitForEnds(model, run) {
	/** Rounds in a row from which nothing was learned. */
	let idle = 0;
	let from = 0;
	while (model.isRunning && model.run === run) {
		const { waitedFor, next, seconds } = turnOf(model.pendingIds(), from);
		if (waitedFor.length === 0 || isHidden() || isOffline(model)) {
			await nextChange(model, LONGEST_POLL_MS);
			continue;
		}
		from = next;
		const began = Date.now();
		const ended = await endedOf(model, waitedFor, seconds);
		if (!model.isRunning) return;
		await Promise.all(
			(ended ?? []).map((requestId) => model.askQuietly(requestId)),
		);
		// A node that stops answers at once.
		const isEarly =
			ended?.length === 0 &&
			!hasMore(model, waitedFor) &&
			Date.now() - began < EARLY_MS;
		const isNews =
			ended !== null &&
			!isEarly &&
			ended.every((requestId) => !model.pendingIds().includes(requestId));
		idle = isNews ? 0 : idle + 1;
		if (isNews) continue;
		// The gateway knows no waits, refuses them, or names what has not ended.
		await sleep(jittered(pollPause(idle - 1)));
		if (model.isRunning && !isOffline(model)) await model.refresh();
	}
}

/**
 * Whether there is another one to wait for. Of more than can be waited for at once, only the first
 * counts.
 * @param {InboxModel} model
 * @param {string[]} waitedFor
 */
function hasMore(model, waitedFor) {
	const pending = model.pendingIds();
	const all = pending.length <= MAX_WAITED_FOR ? pending : pending.slice(0, 1);
	return all.some((requestId) => !waitedFor.includes(requestId));
}

/**
 * Those of these requests that have ended, as soon as there is one; none when the time is over, or
 * when there are others to wait for. Null if the gateway does not tell.
 * @param {InboxModel} model
 * @param {string[]} waitedFor
 * @param {number} seconds
 */
async function endedOf(model, waitedFor, seconds) {
	const aborter = new AbortController();
	const giveUp = () => aborter.abort();
	model.stopping.signal.addEventListener("abort", giveUp);
	let timer = 0;
	const leave = model.live.subscribe(() => {
		if (timer === 0 && (hasMore(model, waitedFor) || isHidden()))
			timer = setTimeout(giveUp, GATHER_MS);
	});
	try {
		return await waitForAny(
			model.session,
			waitedFor,
			seconds,
			ANSWER_MS,
			aborter.signal,
		);
	} catch (error) {
		if (!(error instanceof Problem)) throw error;
		return aborter.signal.aborted ? [] : null;
	} finally {
		clearTimeout(timer);
		leave();
		model.stopping.signal.removeEventListener("abort", giveUp);
	}
}

/**
 * Waits until the inbox is published again, or the page is left.
 * @param {InboxModel} model
 * @param {number} longestMs
 */
function nextChange(model, longestMs) {
	return new Promise((resolve) => {
		let isFirst = true;
		const finish = () => {
			// It is called with what there is, too.
			if (isFirst) return;
			clearTimeout(timer);
			leave();
			model.stopping.signal.removeEventListener("abort", finish);
			resolve(undefined);
		};
		const timer = setTimeout(finish, longestMs);
		const leave = model.live.subscribe(finish);
		model.stopping.signal.addEventListener("abort", finish);
		isFirst = false;
	});
}

/**
 * Reads the inbox again while it has requests of an enforcer that another device may be about to
 * introduce.
 * @param {InboxModel} model
 * @param {number} run
 */
export async function waitForIntroductions(model, run) {
	/** @type {Set<string>} */
	let known = new Set();
	let rounds = 0;
	let due = Infinity;
	while (model.isRunning && model.run === run) {
		const wanting = [...model.items.values()]
			.filter(wantsIntroduction)
			.map(({ requestId }) => requestId);
		// A new one may be introduced soon, whatever became of others.
		if (wanting.some((requestId) => !known.has(requestId)))
			[rounds, due] = [0, Date.now() + introductionPause(0)];
		known = new Set(wanting);
		if (wanting.length === 0 || isHidden() || isOffline(model))
			await nextChange(model, LONGEST_POLL_MS);
		else if (Date.now() < due) await nextChange(model, due - Date.now());
		else {
			rounds += 1;
			due = Date.now() + introductionPause(rounds);
			await model.refresh();
		}
	}
}

/** @param {number} rounds */
function introductionPause(rounds) {
	return Math.max(jittered(pollPause(rounds)), FIRST_LOOK_MS);
}

/**
 * Reads the inbox while no channel is open; less and less often while the gateway cannot be
 * reached.
 * @param {InboxModel} model
 * @param {number} run
 */
export async function pollWhileClosed(model, run) {
	let due = 0;
	let failures = 0;
	while (model.isRunning && model.run === run) {
		await sleep(POLL_MS);
		// It may have come back by itself meanwhile.
		if (!isOffline(model)) [due, failures] = [0, 0];
		if (
			!model.isRunning ||
			isHidden() ||
			model.live.value.connection === "live" ||
			Date.now() < due
		)
			continue;
		await model.refresh();
		failures += 1;
		due = Date.now() + jittered(pollPause(failures));
	}
}

/**
 * Asks until the enforcer has confirmed that it got the decision, less and less often.
 * @param {InboxModel} model
 * @param {string} requestId
 */
export async function watchDelivery(model, requestId) {
	for (
		let pause = 100;
		model.isRunning;
		pause = Math.min(pause * 2, LONGEST_DELIVERY_PAUSE_MS)
	) {
		await sleep(pause);
		if (!isHidden()) await model.askQuietly(requestId);
		if (model.find(requestId)?.state !== "decided") return;
	}
}
