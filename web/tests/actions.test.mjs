// The choices that an enforcer offers: `node --test web/tests/`.

import assert from 'node:assert/strict';
import { test } from 'node:test';

globalThis.WebSocket ??= { OPEN: 1 };

const { request, scene } = await import('./hostile.mjs');

const approve = { id: 'yes', caption: 'Go on', decision: 'approve' };
const reject = { id: 'no', caption: 'Stop', decision: 'reject', style: 'danger' };

/** What an artifact offers whose extensions have these actions. */
async function offered(actions, further = {}) {
  const { device, enforcers, shows } = await scene();
  const extensions = { 'org.proto.requestedActions': { version: 1, actions }, ...further };
  const { content } = await shows(await request(enforcers.bot, device, { further: { extensions } }));
  assert.ok(content.opened);
  return { ids: content.artifact.actions.map(({ id }) => id), isOdd: content.artifact.hasOddActions };
}

test('actions are offered with their verdict', async () => {
  assert.deepEqual(await offered([approve, reject]), { ids: ['yes', 'no'], isOdd: false });
  const longest = { ...approve, caption: 'x'.repeat(80) };
  assert.deepEqual(await offered([longest]), { ids: ['yes'], isOdd: false });
});

test('actions that cannot be shown, or told apart, are not offered, and the page can say so', async () => {
  const many = Array.from({ length: 9 }, (_, at) => ({ ...approve, id: `a${at}` }));
  const odd = [
    many, [{ ...approve, caption: 'x'.repeat(81) }], [{ ...approve, caption: ' ' }], [approve, { ...reject, id: 'YES' }], [{ ...approve, decision: 'maybe' }], 'x', [null],
  ];
  for (const actions of odd) assert.deepEqual(await offered(actions), { ids: [], isOdd: true }, JSON.stringify(actions));
  assert.deepEqual(await offered([approve], { 'org.other.requestedActions': { actions: [reject] } }), { ids: [], isOdd: true });
});
