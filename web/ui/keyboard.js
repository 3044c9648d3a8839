// Single keys. They are left alone while someone types, or while a dialog is open.

import { helpDialog, isDialogOpen } from './dialog.js';

const PLACES = /** @type {Record<string, string>} */ ({ i: '#/inbox', a: '#/agents', h: '#/history', d: '#/devices', s: '#/settings' });
const PREFIX_MS = 1000;

/** @param {EventTarget | null} target */
function isTyping(target) {
  return target instanceof Element && target.closest('input, textarea, select, [contenteditable]') !== null;
}

/**
 * @param {() => Record<string, () => void>} keysOfView
 * @param {(hash: string) => void} go
 */
export function listenToKeys(keysOfView, go) {
  let prefixUntil = 0;
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
    if (isDialogOpen()) return;
    if (isTyping(event.target)) {
      if (event.key === 'Escape' && event.target instanceof HTMLElement) event.target.blur();
      return;
    }
    const place = event.timeStamp < prefixUntil ? PLACES[event.key] : undefined;
    prefixUntil = event.key === 'g' ? event.timeStamp + PREFIX_MS : 0;
    const act = place ? () => go(place) : event.key === '?' ? helpDialog : keysOfView()[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
