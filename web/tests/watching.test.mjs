// What keeps the inbox current: `node --test web/tests/`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InboxModel } from '../core/inbox.js';
import { Problem } from '../core/problem.js';
import { pollPause, turnOf } from '../core/watching.js';

test('the inbox is read less and less often while the gateway is away', () => {
  assert.deepEqual([0, 1, 2, 3, 4, 5, 6, 1000].map(pollPause), [3_000, 6_000, 12_000, 24_000, 48_000, 60_000, 60_000, 60_000]);
});

test('every open request is asked about in turn, and the attended one each time', () => {
  const open = Array.from({ length: 14 }, (_, at) => `r${at}`);
  const asked = new Set();
  let from = 0;
  for (let round = 0; round < 3; round += 1) {
    const turn = turnOf(open, from, 'r13');
    assert.equal(turn.asked[0], 'r13');
    assert.ok(turn.asked.length <= 7);
    turn.asked.forEach((requestId) => asked.add(requestId));
    from = turn.next;
  }
  assert.equal(asked.size, 14);
  assert.deepEqual(turnOf(['a', 'b'], 5, null).asked, ['b', 'a']);
  assert.deepEqual(turnOf([], 6, 'gone').asked, []);
});

/** A model whose gateway cannot be reached, and that counts what it does. */
function model() {
  const client = { credential: 'x', channelUrl: () => 'ws://127.0.0.1:1/', leaveNode() {}, json: async () => Promise.reject(Problem.of('unreachable', {})) };
  const made = new InboxModel({ client, identity: { approverId: 'a' } }, () => {});
  const calls = [];
  made.refresh = async () => calls.push('read');
  made.channel.reopen = () => calls.push('reopen');
  made.channel.check = () => calls.push('check');
  return { made, calls };
}

test('a network that came back is used at once', () => {
  const { made, calls } = model();
  made.reopen();
  assert.deepEqual(calls, ['reopen', 'read']);
});

test('a page that is seen again reads at once, a hidden one nothing', () => {
  const { made, calls } = model();
  globalThis.document = { visibilityState: 'hidden' };
  made.check();
  assert.deepEqual(calls, []);
  globalThis.document = { visibilityState: 'visible' };
  made.check();
  delete globalThis.document;
  assert.deepEqual(calls, ['check', 'read']);
});
