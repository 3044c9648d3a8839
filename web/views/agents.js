// The agents that this device is paired with.

import { texts } from '../texts.js';
import { ago } from '../ui/clock.js';
import { el, fill } from '../ui/dom.js';
import { icon } from '../ui/icons.js';
import { visibleText } from '../ui/marked.js';
import { empty, linkButton, page } from '../ui/parts.js';
import { agentName } from '../ui/who.js';

/** @typedef {import('../core/types.js').Agent} Agent */

const REFRESH_MS = 15_000;

/** @param {Agent} agent */
export function presenceChip(agent) {
  const status = agent.presence?.status;
  return el('span', { class: `chip ${status === 'online' ? 'good' : ''}` }, el('span', { class: 'dot' }), texts.agents[status ?? 'unknown']);
}

/** @param {Agent} agent */
function entry(agent) {
  const workspace = agent.presence?.workspaceName;
  return el('li', null, el('a', { href: `#/agents/${encodeURIComponent(agent.enforcerId)}` },
    el('span', { class: 'sign' }, icon('agents')),
    el('span', { class: 'entry-main' }, el('span', { class: 'entry-title' }, agentName(agent)),
      el('span', { class: 'entry-line' },
        agent.label && agent.label !== agent.enforcerId && el('span', null, visibleText(agent.enforcerId)),
        workspace && el('span', null, visibleText(workspace)),
        agent.presence?.status === 'offline' && el('span', null, `${texts.agents.seen} `, ago(agent.presence.lastSeenAt)))),
    presenceChip(agent), icon('next', 'small')));
}

/**
 * Keeps presence current while a view is open.
 * @param {import('../core/approver.js').Approver} approver
 */
export function watchPresence(approver) {
  // Without it, what was known before is shown.
  const refresh = () => approver.refreshAgents().catch(() => {});
  refresh();
  const timer = setInterval(refresh, REFRESH_MS);
  return () => clearInterval(timer);
}

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {import('../ui/view.js').View}
 */
export function view({ approver }) {
  const content = el('div', { class: 'stack' });
  const render = (/** @type {Agent[]} */ agents) => {
    const { title, text, action } = texts.agents.empty;
    fill(content, agents.length > 0 ? el('div', { class: 'card' }, el('ul', { class: 'list' }, agents.map(entry)))
      : empty('agents', title, text, linkButton(action, '#/pair', 'primary', 'plus')));
  };
  const ends = [approver.agents.subscribe(render), watchPresence(approver)];
  const actions = [linkButton(texts.agents.pair, '#/pair', 'primary small', 'plus')];
  return {
    title: texts.agents.title,
    element: page(texts.agents.title, { actions }, content),
    dispose: () => ends.forEach((end) => end()),
  };
}
