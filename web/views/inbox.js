// What waits for a decision, live.

import { texts } from '../texts.js';
import { announce } from '../ui/announce.js';
import { timeLeft } from '../ui/clock.js';
import { el, fill } from '../ui/dom.js';
import { icon } from '../ui/icons.js';
import { empty, linkButton, note, page, waiting } from '../ui/parts.js';
import { artifactOf, headline, kindOf } from '../ui/summary.js';
import { agentName } from '../ui/who.js';
import { problemText } from '../texts/problems.js';

/** @typedef {import('../core/types.js').Item} Item */

const FILTER_FROM = 6;

/** @param {Item} item */
function address(item) {
  return `#/request/${encodeURIComponent(item.requestId)}`;
}

/** @param {Item} item */
function waitingEntry(item) {
  const artifact = artifactOf(item);
  const kind = kindOf(artifact);
  const what = artifact
    ? el('span', { class: ['entry-title', 'clip', 'lines-2', isCode(artifact) && 'mono'] }, headline(artifact))
    : el('span', { class: 'entry-title' }, texts.request.unopened);
  return el('li', null, el('a', { href: address(item), class: 'request-entry folding', 'data-id': item.requestId },
    el('span', { class: ['sign', !artifact && 'warn'] }, icon(kind.icon)),
    el('span', { class: 'entry-main' }, what,
      el('span', { class: 'entry-line dotted' },
        el('span', null, kind.label),
        el('span', null, agentName(item), !item.isPaired && `, ${texts.who.notPaired}`))),
    el('span', { class: 'entry-side fine' }, timeLeft(item.expiresAt)),
  ));
}

/** @param {import('../core/types.js').Artifact} artifact */
function isCode(artifact) {
  return artifact.payload.kind !== 'plan';
}

/** @param {Item} item */
function endedEntry(item) {
  const artifact = artifactOf(item);
  const { decision } = item;
  const good = decision?.verdict === 'approve';
  const word = decision ? texts.verdicts[decision.verdict] : texts.states[item.state];
  return el('li', null, el('a', { href: address(item), class: 'folding' },
    el('span', { class: ['sign', decision ? (good ? 'good' : 'bad') : 'plain'] }, icon(decision ? (good ? 'check' : 'cross') : 'clock')),
    el('span', { class: 'entry-main' },
      el('span', { class: ['clip', 'lines-2', artifact && isCode(artifact) && 'mono'] }, artifact ? headline(artifact) : texts.kinds.unknown),
      el('span', { class: 'entry-line' }, agentName(item))),
    el('span', { class: 'entry-side' }, el('span', { class: `chip ${decision ? (good ? 'good' : 'bad') : ''}` }, word),
      decision && el('span', { class: 'quiet fine' }, texts.states[item.state])),
  ));
}

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {import('../ui/view.js').View}
 */
export function view({ approver, go }) {
  const filter = el('input', { class: 'input filter', type: 'search', placeholder: texts.inbox.filter, 'aria-label': texts.inbox.filterLabel });
  const list = el('ul', { class: 'list' });
  const content = el('div', { class: 'stack' }, waiting());
  const element = page(texts.inbox.title, { actions: [filter] }, content);
  /** Entries are kept while their item stays the same, and with them the focus. @type {Map<string, { item: Item, entry: HTMLElement }>} */
  let shown = new Map();
  let isFirst = true;

  const matches = (/** @type {Item} */ item) => {
    const wanted = filter.value.trim().toLowerCase();
    if (!wanted) return true;
    const artifact = artifactOf(item);
    return `${agentName(item)} ${kindOf(artifact).label} ${artifact ? headline(artifact) : ''}`.toLowerCase().includes(wanted);
  };

  const render = () => {
    const inbox = approver.inbox.value;
    if (!inbox.isLoaded) {
      if (inbox.problem) fill(content, note('warn', problemText(inbox.problem)));
      return;
    }
    filter.hidden = inbox.items.length < FILTER_FROM && !filter.value && document.activeElement !== filter;
    const items = inbox.items.filter(matches);
    /** @type {typeof shown} */
    const next = new Map();
    for (const item of items) {
      const known = shown.get(item.requestId);
      if (!known && !isFirst) announce(texts.inbox.arrived(agentName(item), kindOf(artifactOf(item)).label));
      next.set(item.requestId, known?.item === item ? known : { item, entry: waitingEntry(item) });
    }
    const focused = document.activeElement?.getAttribute('data-id');
    shown = next;
    isFirst = false;
    list.replaceChildren(...[...next.values()].map(({ entry }) => entry));
    fill(content,
      items.length > 0 ? el('div', { class: 'card' }, list)
        : inbox.items.length > 0 ? el('p', { class: 'quiet' }, texts.inbox.noMatch)
          : emptyInbox(approver.agents.value.length === 0),
      inbox.hasMore && el('p', { class: 'quiet fine' }, texts.inbox.more),
      inbox.finished.length > 0 && [
        el('h2', { class: 'section' }, texts.inbox.ended),
        el('div', { class: 'card' }, el('ul', { class: 'list' }, inbox.finished.slice(0, 5).map(endedEntry))),
      ]);
    if (focused) entryOf(focused)?.focus({ preventScroll: true });
    if (items.length > 0) warmUp();
  };

  const entryOf = (/** @type {string} */ id) => shown.get(id)?.entry.querySelector('a');
  const move = (/** @type {number} */ step) => {
    const links = [...list.querySelectorAll('a')];
    const at = links.findIndex((link) => link === document.activeElement);
    links[at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + step, 0), links.length - 1)]?.focus();
  };
  filter.addEventListener('input', render);
  const ends = [approver.inbox.subscribe(render), approver.agents.subscribe(render)];
  return {
    title: texts.inbox.title,
    element,
    keys: {
      j: () => move(1),
      k: () => move(-1),
      '/': () => {
        filter.hidden = false;
        filter.focus();
      },
      // Nothing is decided that was not shown.
      a: () => openFocused(),
      r: () => openFocused(),
    },
    dispose: () => ends.forEach((end) => end()),
  };

  function openFocused() {
    const id = document.activeElement?.getAttribute('data-id');
    if (id) go(`#/request/${encodeURIComponent(id)}`);
  }
}

/** So that a request opens at once. */
function warmUp() {
  import('./request.js');
  import('./patch.js');
}

/** @param {boolean} isUnpaired */
function emptyInbox(isUnpaired) {
  if (isUnpaired) {
    const { title, text, action } = texts.inbox.unpairedEmpty;
    return empty('agents', title, text, linkButton(action, '#/pair', 'primary', 'plus'));
  }
  const { title, text, command } = texts.inbox.empty;
  return empty('inbox', title, text, el('code', { class: 'sample' }, command));
}
