// What keeps the inbox current beside the channel. Nothing is asked while nobody can see the page.

import { jittered, sleep } from './gateway.js';

/** @typedef {import('./inbox.js').InboxModel} InboxModel */

/** How often requests are asked about: nothing is pushed when another device decides. */
const TICK_MS = 700;
/** Beside the one that a person looks at. Few people have more open at a time; if so, each is asked about in turn. */
const ASKED_PER_TICK = 6;
/** How often the inbox is read while no channel is open. */
const POLL_MS = 3_000;
/** And at least, however long the gateway has been away. */
const LONGEST_POLL_MS = 60_000;
const WATCH_DELIVERY_MS = 30_000;

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

/**
 * Which requests are asked about now, and where to go on next time.
 * @param {string[]} open
 * @param {number} from
 * @param {string | null} attended
 */
export function turnOf(open, from, attended) {
  const start = from % Math.max(open.length, 1);
  const turn = [...open.slice(start), ...open.slice(0, start)].slice(0, ASKED_PER_TICK);
  const first = open.filter((requestId) => requestId === attended);
  return { asked: [...new Set([...first, ...turn])], next: start + ASKED_PER_TICK };
}

/**
 * Asks about the request that a person looks at, and about others in turn.
 * @param {InboxModel} model
 * @param {number} run
 */
export async function askInTurn(model, run) {
  let from = 0;
  while (model.isRunning && model.run === run) {
    await sleep(TICK_MS);
    if (isHidden() || !model.isRunning || model.live.value.connection === 'offline') continue;
    const { asked, next } = turnOf(model.openIds(), from, model.attended);
    from = next;
    await Promise.all(asked.map((requestId) => model.askQuietly(requestId)));
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
 * Waits until the enforcer has confirmed that it got the decision.
 * @param {InboxModel} model
 * @param {string} requestId
 */
export async function watchDelivery(model, requestId) {
  const until = Date.now() + WATCH_DELIVERY_MS;
  for (let pause = 100; model.isRunning && Date.now() < until; pause = Math.min(pause * 2, 1_000)) {
    await model.askQuietly(requestId);
    if (model.find(requestId)?.state === 'delivered') return;
    await sleep(pause);
  }
}
