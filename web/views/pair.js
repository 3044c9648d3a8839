// Pairing with an agent: by its link, by camera, or by its short code with digits to compare.

import { texts } from '../texts.js';
import { cameraReader } from '../ui/camera.js';
import { el, fill } from '../ui/dom.js';
import { icon } from '../ui/icons.js';
import { linkArgs } from '../ui/links.js';
import { busy, button, field, linkButton, note, page, segments } from '../ui/parts.js';
import { agentName } from '../ui/who.js';

/** @typedef {import('../core/types.js').Agent} Agent */

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {import('../ui/view.js').View}
 */
export function view(context) {
  const { approver, args } = context;
  const element = el('div', null);
  let dispose = () => {};
  const done = (/** @type {Agent} */ agent) => {
    dispose();
    // The link has served, and its secret need not stay in the address.
    history.replaceState(null, '', '#/pair');
    element.replaceChildren(paired(agent));
    element.querySelector('h1')?.focus();
  };
  if (args.length > 0) {
    element.replaceChildren(fromLink(approver, `#/pair/${args.join('/')}`, done));
    return { title: texts.pair.title, element };
  }
  const choice = el('div', { class: 'stack' });
  const ways = {
    link: () => linkForm(approver, done),
    camera: () => {
      const reader = cameraReader((text) => {
        const link = linkArgs(text, 'pair');
        if (link) context.go(`#/pair/${link}`);
        return link !== null;
      });
      dispose = reader.stop;
      return reader.element;
    },
    code: () => codeForm(approver, element, done),
  };
  const choose = (/** @type {keyof typeof ways} */ way) => {
    dispose();
    fill(choice, ways[way]());
  };
  const switcher = segments(texts.pair.how, [['link', texts.pair.byLink], ['camera', texts.pair.byCamera], ['code', texts.pair.byCode]], 'link', choose);
  choose('link');
  element.replaceChildren(page(texts.pair.title, { lead: texts.pair.lead, back: { href: '#/agents', text: texts.agents.title } },
    el('div', { class: 'card card-body' }, switcher, choice)));
  return { title: texts.pair.title, element, dispose: () => dispose() };
}

/** @param {Agent} agent */
function paired(agent) {
  const title = texts.pair.done(agentName(agent));
  return el('div', { class: 'card empty' }, el('div', { class: 'sign good' }, icon('check')),
    el('h1', { tabindex: '-1' }, title), el('p', null, texts.pair.doneText),
    el('div', { class: 'row' },
      linkButton(texts.pair.toAgent, `#/agents/${encodeURIComponent(agent.enforcerId)}`), linkButton(texts.join.toInbox, '#/inbox', 'primary')));
}

/**
 * @param {import('../core/approver.js').Approver} approver
 * @param {string} link
 * @param {(agent: Agent) => void} done
 */
function fromLink(approver, link, done) {
  const place = el('div', null);
  const go = button(texts.pair.action, {
    kind: 'primary',
    on: () => busy(go, place, async () => done(await approver.pairByLink(link)), texts.pair.pairing),
  });
  return page(texts.pair.opened, {},
    el('div', { class: 'card card-body' }, el('p', null, texts.pair.openedText), place,
      el('div', { class: 'row' }, go, linkButton(texts.pair.notNow, '#/inbox', 'plain'))));
}

/**
 * @param {import('../core/approver.js').Approver} approver
 * @param {(agent: Agent) => void} done
 */
function linkForm(approver, done) {
  const input = el('input', { class: 'input', autocomplete: 'off', spellcheck: 'false', required: true, placeholder: 'https://…/#/pair/…' });
  return form(field(texts.pair.linkField, input, texts.pair.linkHint), texts.pair.pairing,
    async () => done(await approver.pairByLink(input.value.trim())));
}

/**
 * @param {import('../core/approver.js').Approver} approver
 * @param {HTMLElement} element
 * @param {(agent: Agent) => void} done
 */
function codeForm(approver, element, done) {
  const input = el('input', {
    class: 'input code', autocomplete: 'off', autocapitalize: 'characters', spellcheck: 'false', maxlength: 12, required: true, placeholder: 'XXXX-XXXX',
  });
  return form(field(texts.pair.codeField, input, texts.pair.codeHint), texts.pair.comparing, async () => {
    const comparing = await approver.pairByCode(input.value.trim());
    element.replaceChildren(compare(comparing, done));
    element.querySelector('h1')?.focus();
  });
}

/**
 * @param {HTMLElement} control
 * @param {string} busyText
 * @param {() => Promise<void>} work
 */
function form(control, busyText, work) {
  const place = el('div', null);
  const go = button(texts.pair.action, { kind: 'primary', type: 'submit' });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    busy(go, place, work, busyText);
  };
  return el('form', { class: 'stack', on: { submit } }, control, place, go);
}

/**
 * @param {import('../core/types.js').Comparing} comparing
 * @param {(agent: Agent) => void} done
 */
function compare(comparing, done) {
  const place = el('div', null);
  const actions = el('div', { class: 'row' });
  const same = button(texts.pair.same, {
    kind: 'primary',
    on: () => busy(same, place, async () => done(await comparing.confirm()), texts.pair.pairing),
  });
  const differ = button(texts.pair.differ, {
    kind: 'bad-quiet',
    on: () => busy(differ, place, async () => {
      actions.remove();
      fill(place, note('warn', texts.pair.aborted));
      await comparing.abort();
    }),
  });
  actions.append(same, differ);
  return page(texts.pair.compareTitle, { lead: texts.pair.compareText(agentName(comparing)) },
    el('div', { class: 'card card-body' }, el('p', { class: 'digits' }, comparing.digits.split(' ').map((group) => el('span', null, group))), place, actions));
}
