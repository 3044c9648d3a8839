// Enforcers that this device knows: whether they are there, what they report, and ending a pairing.

import { path } from './gateway.js';
import { Problem } from './problem.js';

/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./types.js').Agent} Agent */
/** @typedef {import('./types.js').Presence} Presence */

/** More pairings than anyone has: a gateway that pages for ever is stopped. */
const MAX_PAGES = 100;

/** @param {unknown} value */
export function textOrNull(value) {
  return typeof value === 'string' && value !== '' ? value : null;
}

/**
 * Ends a pairing, here and at the gateway, there for all devices. Here it ends even if the gateway cannot be told.
 * @param {Session} session
 * @param {string} enforcerId
 */
export async function unpair(session, enforcerId) {
  const record = session.enforcers.get(enforcerId);
  if (record === undefined) return;
  await session.unpin(record);
  const token = (await tokenOf(session, enforcerId)) ?? record.routingToken;
  if (token !== null) await revokePairing(session, token);
}

/**
 * The token of the pairing as it is now: another device may have paired last.
 * @param {Session} session
 * @param {string} enforcerId
 * @returns {Promise<string | null>}
 */
async function tokenOf({ client, identity }, enforcerId) {
  let cursor = '';
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const from = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const { members } = await client.members({ path: `/v1/pairings?limit=100${from}`, expect: [200] });
    const { items, nextCursor } = members;
    if (!Array.isArray(items)) throw Problem.of('answer', { expected: 'items' });
    const found = items.find((line) => line?.enforcerId === enforcerId && line.approverId === identity.approverId);
    if (found !== undefined) return textOrNull(found.routingToken);
    if (typeof nextCursor !== 'string' || nextCursor === cursor) return null;
    cursor = nextCursor;
  }
  return null;
}

/**
 * @param {Session} session
 * @param {string} routingToken
 */
export async function revokePairing({ client }, routingToken) {
  const body = JSON.stringify({ routingToken });
  await client.call({ method: 'POST', path: '/v1/pairing/revoke', body, expect: [200] });
}

/**
 * The pinned enforcers, by label. With `readPresence`, the gateway is asked about them.
 * @param {Session} session
 * @param {boolean} readPresence
 * @returns {Promise<Agent[]>}
 */
export async function listAgents(session, readPresence) {
  const trust = await session.trust();
  const agents = [...session.enforcers.values()].map(async ({ enforcerId, label, pairedAt, introducedBy }) => ({
    enforcerId,
    label,
    pairedAt,
    introducedBy: introducedBy === null ? null : describeIntroducer(trust, introducedBy),
    presence: readPresence ? await presenceOf(session, enforcerId) : null,
  }));
  const name = (/** @type {Agent} */ { label, enforcerId }) => label ?? enforcerId;
  return (await Promise.all(agents)).sort((one, other) => name(one).localeCompare(name(other)));
}

/**
 * @param {import('./statements.js').DeviceTrust} trust
 * @param {string} deviceId
 */
function describeIntroducer(trust, deviceId) {
  const device = trust.inForce.find((bundle) => bundle.deviceId === deviceId);
  return { deviceId, name: device?.name ?? null, isRevoked: trust.revoked.has(deviceId) };
}

/**
 * @param {Session} session
 * @param {string} enforcerId
 * @returns {Promise<Presence | null>}
 */
async function presenceOf({ client }, enforcerId) {
  const answer = await client.members({ path: path('v1', 'presence', 'enforcers', enforcerId), expect: [200, 404] });
  if (answer.status === 404) return null;
  const { status, lastSeenAt, transport, workspaceName } = answer.members;
  return {
    status: status === 'online' ? 'online' : 'offline',
    lastSeenAt: String(lastSeenAt),
    transport: transport === 'websocket' || transport === 'sse' ? transport : 'poll',
    workspaceName: textOrNull(workspaceName),
  };
}

/**
 * @param {Session} session
 * @param {string} enforcerId
 * @returns {Promise<import('./types.js').Session[]>}
 */
export async function readSessions({ client, store }, enforcerId) {
  const seen = (await store.sessions()).filter((record) => record.enforcerId === enforcerId);
  const newest = seen.sort((one, other) => (one.seenAt < other.seenAt ? 1 : -1)).slice(0, 20);
  const read = newest.map(async ({ sessionId }) => {
    const { status, members: known } = await client.members({ path: path('v1', 'session', sessionId), expect: [200, 404] });
    if (status === 404 || known.enforcerId !== enforcerId) return [];
    const text = (/** @type {string} */ name) => textOrNull(known[name]);
    return [{
      sessionId, enforcerId, state: String(known.state), agentHost: text('agentHost'), repoRef: text('repoRef'),
      startedAt: text('startedAt'), updatedAt: String(known.updatedAt), endedAt: text('endedAt'), reason: text('reason'),
      snapshots: (Array.isArray(known.snapshots) ? known.snapshots : []).map((/** @type {any} */ snapshot) => ({
        snapshotId: String(snapshot?.snapshotId),
        snapshotType: String(snapshot?.snapshotType),
        createdAt: String(snapshot?.createdAt),
      })),
    }];
  });
  return (await Promise.all(read)).flat();
}
