// Text from elsewhere: what could mislead is shown by its name, in a frame.

import { pieces, visibleText } from '../core/visible.js';
import { el } from './dom.js';

export { visibleText };

/** @typedef {import('./dom.js').Child} Child */

/** Most texts have nothing else, and need no closer look. */
const DOUBTLESS = /^[\t\n\x20-\x7e]*$/;
const DOUBTLESS_LINE = /^[\x20-\x7e]*$/;

/** @param {string} text */
export function hasMarks(text) {
  return !DOUBTLESS.test(text) && pieces(text).some((piece) => piece.mark !== null);
}

/** @param {string} text */
export function countMarks(text) {
  let count = 0;
  // Only lines with something doubtful: the text may have megabytes.
  for (const [rest] of text.matchAll(/[^\t\n\x20-\x7e][^\n]*/g)) count += pieces(rest).filter((piece) => piece.mark !== null).length;
  return count;
}

/**
 * @param {string} text
 * @param {{ strict?: boolean, singleLine?: boolean }} [options] strict: letters that look like Latin ones are marked too
 * @returns {Child[]}
 */
export function marked(text, options) {
  if ((options?.singleLine ? DOUBTLESS_LINE : DOUBTLESS).test(text)) return [text];
  return pieces(text, options).map((piece) => {
    if (piece.mark === null) return piece.text;
    if (piece.mark === 'lookalike') return el('span', { class: 'mark lookalike' }, piece.text, el('sub', null, piece.name));
    return el('span', { class: `mark ${piece.mark}` }, piece.name);
  });
}

/**
 * A name, a path or an address: it has one line, and letters that look like Latin ones are marked.
 * @param {string} text
 */
export function markedName(text) {
  return marked(text, { strict: true, singleLine: true });
}
