// What is said aside: short messages on the screen, and the same for screen readers.

import { el } from './dom.js';

const SHOWN_MS = 4000;

const live = el('div', { class: 'unseen', 'aria-live': 'polite', role: 'status' });
const toasts = el('div', { class: 'toasts' });

/** To be added to the page once. */
export const announcements = [live, toasts];

/** @param {string} text */
export function announce(text) {
  // A text that was said before is said again only if it is a new node.
  live.replaceChildren(el('p', null, text));
}

/** @param {string} text */
export function toast(text) {
  const shown = el('div', { class: 'toast' }, text);
  toasts.append(shown);
  announce(text);
  setTimeout(() => shown.remove(), SHOWN_MS);
}
