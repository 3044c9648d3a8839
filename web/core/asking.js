// What is asked again and again: what became of requests, and what waits while no channel is open.

import { sleep } from './gateway.js';

/** @typedef {import('./inbox.js').InboxModel} InboxModel */

/** How often the inbox is read while no channel is open. */
const POLL_MS = 3_000;
/** How often requests are asked about: nothing is pushed when another device decides. */
const TICK_MS = 1_000;
/** Beside the one that a person looks at. */
const ASKED_PER_TICK = 2;
const WATCH_DELIVERY_MS = 30_000;

/**
 * Asks about the request that a person looks at, and about others in turn.
 * @param {InboxModel} model
 * @param {number} run
 */
export async function keepAsking(model, run) {
  let asked = 0;
  while (model.isRunning && model.run === run) {
    await sleep(TICK_MS);
    if (isHidden() || !model.isRunning || model.live.value.connection === 'offline') continue;
    const undelivered = model.finished.filter(({ state }) => state === 'decided');
    const open = [...model.items.values(), ...undelivered].map(({ requestId }) => requestId);
    const from = asked % Math.max(open.length, 1);
    asked = from + ASKED_PER_TICK;
    const turn = [...open.slice(from), ...open.slice(0, from)].slice(0, ASKED_PER_TICK);
    const attended = open.filter((requestId) => requestId === model.attended);
    await Promise.all([...new Set([...attended, ...turn])].map((requestId) => model.askQuietly(requestId)));
  }
}

/**
 * Reads the inbox while no channel is open.
 * @param {InboxModel} model
 * @param {number} run
 */
export async function keepReading(model, run) {
  while (model.isRunning && model.run === run) {
    await sleep(POLL_MS);
    if (model.isRunning && !isHidden() && model.live.value.connection !== 'live') await model.refresh();
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

export function isHidden() {
  return globalThis.document?.visibilityState === 'hidden';
}
