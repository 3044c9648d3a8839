// What keeps the inbox current beside the channel. Nothing is asked while nobody can see the page.

import { waitForAny } from './exchange.js';
import { jittered, sleep } from './gateway.js';
import { wantsIntroduction } from './item.js';
import { Problem } from './problem.js';

/** @typedef {import('./inbox.js').InboxModel} InboxModel */

/** How long the gateway is to wait; it answers before if a request has ended. */
const WAIT_SECONDS = 25;
/** And how long its answer may take beyond that. */
const ANSWER_MS = 10_000;
/** The most that one wait may be about. */
const MAX_WAITED_FOR = 200;
/** An answer without news that comes sooner is no answer. */
const EARLY_MS = 1_000;
/** Requests that come in one after the other are waited for together. */
const GATHER_MS = 300;
/** How often the inbox is read while no channel is open. */
const POLL_MS = 3_000;
/** And at least, however long the gateway has been away. */
const LONGEST_POLL_MS = 60_000;
const LONGEST_DELIVERY_PAUSE_MS = 60_000;

export function isHidden() {
  return globalThis.document?.visibilityState === 'hidden';
}

/**
 * How long to wait before the inbox is read again.
 * @param {number} failures in a row
 */
export function pollPause(failures) {
  return Math.min(POLL_MS * 2 ** Math.min(failures, 10), LONGEST_POLL_MS);
}

/** @param {InboxModel} model */
function isOffline(model) {
  return model.live.value.connection === 'offline';
}

/**
 * Waits until requests have ended, and asks what has become of them: nothing is pushed when another device decides.
 * @param {InboxModel} model
 * @param {number} run
 */
export async function waitForEnds(model, run) {
  /** Rounds in a row from which nothing was learned. */
  let idle = 0;
  while (model.isRunning && model.run === run) {
    const waitedFor = model.pendingIds().slice(0, MAX_WAITED_FOR);
    if (waitedFor.length === 0 || isHidden() || isOffline(model)) {
      await nextChange(model, LONGEST_POLL_MS);
      continue;
    }
    const began = Date.now();
    const ended = await endedOf(model, waitedFor);
    await Promise.all((ended ?? []).map((requestId) => model.askQuietly(requestId)));
    // A node that stops answers at once.
    const isEarly = ended?.length === 0 && !hasMore(model, waitedFor) && Date.now() - began < EARLY_MS;
    const isNews = ended !== null && !isEarly && ended.every((requestId) => !model.pendingIds().includes(requestId));
    idle = isNews ? 0 : idle + 1;
    if (isNews) continue;
    // The gateway knows no waits, refuses them, or names what has not ended.
    await sleep(jittered(pollPause(idle - 1)));
    if (model.isRunning && !isOffline(model)) await model.refresh();
  }
}

/**
 * Whether there are others to wait for.
 * @param {InboxModel} model
 * @param {string[]} waitedFor
 */
function hasMore(model, waitedFor) {
  return model.pendingIds().slice(0, MAX_WAITED_FOR).some((requestId) => !waitedFor.includes(requestId));
}

/**
 * Those of these requests that have ended, as soon as there is one; none when the time is over, or when there are others to wait for.
 * Null if the gateway does not tell.
 * @param {InboxModel} model
 * @param {string[]} waitedFor
 */
async function endedOf(model, waitedFor) {
  const aborter = new AbortController();
  let timer = 0;
  const leave = model.live.subscribe(() => {
    if (timer === 0 && (hasMore(model, waitedFor) || isHidden() || !model.isRunning)) timer = setTimeout(() => aborter.abort(), GATHER_MS);
  });
  try {
    return await waitForAny(model.session, waitedFor, WAIT_SECONDS, ANSWER_MS, aborter.signal);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return aborter.signal.aborted ? [] : null;
  } finally {
    clearTimeout(timer);
    leave();
  }
}

/**
 * Waits until the inbox is published again.
 * @param {InboxModel} model
 * @param {number} longestMs
 */
function nextChange(model, longestMs) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, longestMs);
    let isFirst = true;
    const leave = model.live.subscribe(() => {
      // It is called with what there is, too.
      if (isFirst) return;
      clearTimeout(timer);
      resolve(undefined);
      queueMicrotask(() => leave());
    });
    isFirst = false;
  });
}

/**
 * Reads the inbox again while it has requests of an enforcer that another device may be about to introduce.
 * @param {InboxModel} model
 * @param {number} run
 */
export async function waitForIntroductions(model, run) {
  let rounds = 0;
  while (model.isRunning && model.run === run) {
    if (isHidden() || isOffline(model) || ![...model.items.values()].some(wantsIntroduction)) {
      await nextChange(model, LONGEST_POLL_MS);
      rounds = 0;
      continue;
    }
    await sleep(jittered(pollPause(rounds)));
    rounds += 1;
    if (model.isRunning) await model.refresh();
  }
}

/**
 * Reads the inbox while no channel is open; less and less often while the gateway cannot be reached.
 * @param {InboxModel} model
 * @param {number} run
 */
export async function pollWhileClosed(model, run) {
  let due = 0;
  let failures = 0;
  while (model.isRunning && model.run === run) {
    await sleep(POLL_MS);
    // It may have come back by itself meanwhile.
    if (model.live.value.connection !== 'offline') [due, failures] = [0, 0];
    if (!model.isRunning || isHidden() || model.live.value.connection === 'live' || Date.now() < due) continue;
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
  for (let pause = 100; model.isRunning; pause = Math.min(pause * 2, LONGEST_DELIVERY_PAUSE_MS)) {
    await sleep(pause);
    if (!isHidden()) await model.askQuietly(requestId);
    if (model.find(requestId)?.state !== 'decided') return;
  }
}
