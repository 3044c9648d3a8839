// What this device has learned about devices and decisions is not forgotten: `node --test web/tests/`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from '../core/canonical.js';
import { sign } from '../core/keys.js';
import { Session } from '../core/session.js';
import { DeviceTrust, spellSigned, spellStatement } from '../core/statements.js';
import { Store } from '../core/store.js';
import { installStorage } from './memory.mjs';

globalThis.WebSocket ??= { OPEN: 1 };

const { newDevice } = await import('./hostile.mjs');
installStorage();

const SUBJECT = { tenantId: 't', approverId: 'alice' };
const AT = '2026-01-01T00:00:00Z';

async function adds(by, device) {
  const text = spellStatement(SUBJECT, { add: device.bundle }, AT, by.bundle.deviceId);
  return parse('statement', spellSigned(text, await sign(by, text), await sign(device, text)));
}

async function revokes(by, device) {
  const text = spellStatement(SUBJECT, { revoke: device.bundle.deviceId }, AT, by.bundle.deviceId);
  return parse('statement', spellSigned(text, await sign(by, text), null));
}

test('a statement counts also if its signer is added later in the list', async () => {
  const [own, other, stolen] = [await newDevice('own'), await newDevice('other'), await newDevice('stolen')];
  const trust = new DeviceTrust(SUBJECT, [own.bundle]);
  const unreadable = parse('statement', '{}');
  await trust.followAll([await adds(own, stolen), unreadable, await revokes(other, stolen), await adds(own, other)]);
  assert.deepEqual(trust.inForce.map(({ name }) => name), ['own', 'other']);
  assert.ok(trust.revoked.has(stolen.bundle.deviceId));
});

test('a revocation is not forgotten when two lists are read at once', async () => {
  const [own, other, stolen] = [await newDevice('own'), await newDevice('other'), await newDevice('stolen')];
  const store = await Store.open();
  const session = { store, keys: own, subject: SUBJECT, identity: { deviceId: own.bundle.deviceId } };
  const [trustOf, remember] = ['trust', 'remember'].map((name) => Session.prototype[name].bind(session));
  const start = await trustOf();
  await start.followAll([await adds(own, stolen)]);
  await remember(start);
  const [one, two] = [await trustOf(), await trustOf()];
  await one.followAll([await revokes(own, stolen)]);
  await two.followAll([await adds(own, other)]);
  await Promise.all([remember(one), remember(two)]);
  const now = await trustOf();
  assert.deepEqual(now.inForce.map(({ name }) => name).sort(), ['other', 'own']);
  assert.ok(now.revoked.has(stolen.bundle.deviceId));
});

test('a verified record is not replaced by one that is not', async () => {
  const store = await Store.open();
  const keep = (body, isVerified) => store.keepDecision({ requestId: 'r', decidedAt: AT, body, isVerified });
  await keep('gateway', false);
  await keep('own', true);
  await keep('forged', false);
  assert.equal((await store.decision('r')).body, 'own');
});
