// What a person could overlook in a request.

import { countMarks } from '../ui/marked.js';
import { texts } from '../texts.js';
import { el } from '../ui/dom.js';
import { LONG_LINE } from '../ui/mono.js';
import { note } from '../ui/parts.js';

/** @typedef {import('../core/types.js').Artifact} Artifact */
/** @typedef {import('../core/types.js').JsonValue} JsonValue */

/**
 * @param {JsonValue} value
 * @param {string[]} found
 */
function collect(value, found) {
  if (typeof value === 'string') found.push(value);
  else if (value !== null && typeof value === 'object') {
    for (const [name, member] of Object.entries(value)) {
      if (!Array.isArray(value)) found.push(name);
      collect(member, found);
    }
  }
}

/** @param {string} text */
function longestLine(text) {
  let longest = 0;
  for (let from = 0; from <= text.length;) {
    const at = text.indexOf('\n', from);
    const end = at < 0 ? text.length : at;
    longest = Math.max(longest, end - from);
    from = end + 1;
  }
  return longest;
}

/** @param {Artifact} artifact */
function foreignLetters(artifact) {
  const { argv, command, kind } = artifact.payload;
  if (kind !== 'command') return [];
  const text = Array.isArray(argv) ? argv.join('') : typeof command === 'string' ? command : '';
  return [...new Set(text.match(/(?![A-Za-z])\p{Alphabetic}/gu) ?? [])].sort();
}

/** @param {Artifact} artifact */
export function warnings(artifact) {
  /** @type {string[]} */
  const found = [artifact.repoRef, artifact.baseRevision ?? '', artifact.sessionId ?? ''];
  collect(artifact.payload, found);
  collect(artifact.rest, found);
  const marks = found.reduce((sum, text) => sum + countMarks(text), 0);
  const longest = found.reduce((most, text) => Math.max(most, longestLine(text)), 0);
  const letters = foreignLetters(artifact).map((letter) => `${letter} (U+${letter.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')})`);
  const words = [
    marks > 0 && texts.request.marked(marks),
    letters.length > 0 && texts.request.lookAlike(letters.join(', ')),
    longest > LONG_LINE && texts.request.longLine(longest),
  ].filter(Boolean);
  if (words.length === 0) return null;
  return note('warn', el('strong', null, texts.request.careful), words.map((text) => el('p', null, text)));
}
