// What could deceive in a text is told apart from the rest, so that views can show it: characters that cannot be seen, that change
// the direction of text, or that only look like others. Nothing of the text is left out.

/**
 * `control`: a control character. `bidi`: changes the direction of text. `invisible`: takes no place on the screen. `space`: looks
 * like a space, and is none that separates words. `lookalike`: may look like an ASCII character, and is another one.
 * @typedef {'control' | 'bidi' | 'invisible' | 'space' | 'lookalike'} Mark
 */

/**
 * A run of the text. A marked one has one character, `count` times; `name` is how to write it, such as `U+202E`.
 * @typedef {{ text: string, mark: null } | { text: string, mark: Mark, name: string, count: number }} Piece
 */

/**
 * Letters of other scripts belong in prose. Where a command, a path or an address is shown, every letter, digit and sign that may be
 * mistaken for an ASCII one is marked too: `strict`. Line feeds and tabs are plain, unless `singleLine`.
 * @typedef {{ strict?: boolean, singleLine?: boolean }} Options
 */

const SOURCES = {
  bidi: '\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069',
  space: '\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u2800\\u3000',
  control: '\\p{Cc}',
  // Those of `Cf`, those that fonts leave empty, selectors of variants, and what is no character.
  invisible:
    '\\p{Cf}\\p{Cs}\\p{Co}\\p{Cn}\\p{Zl}\\p{Zp}\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u3164\\ufe00-\\ufe0f' +
    '\\uffa0\\ufffc\\u{1d159}\\u{e0100}-\\u{e01ef}',
  lookalike:
    '\\p{L}\\p{N}\\p{M}\\p{Pd}\\p{Pi}\\p{Pf}\\p{Pc}\\u00b4\\u02b0-\\u02ff\\u2024-\\u2026\\u2032-\\u2037\\u2044\\u2053\\u2212\\u2215' +
    '\\u2216\\u2217\\u2223\\u2236\\u223c\\u2768-\\u2775\\u29f5\\u29f8\\u29f9\\uff01-\\uff5e',
};

/** The first that fits counts. */
const MARKS = /** @type {const} */ (['bidi', 'space', 'control', 'invisible', 'lookalike']);
const CLASSES = MARKS.map((mark) => ({ mark, pattern: new RegExp(`^[${SOURCES[mark]}]$`, 'u') }));

const DECEIVING = SOURCES.bidi + SOURCES.space + SOURCES.invisible;
/** A character that is marked, and its repetitions, so that a million of them are one piece. */
const PATTERNS = {
  prose: new RegExp(`((?![\\n\\t])[${DECEIVING}${SOURCES.control}])\\1*`, 'gu'),
  proseLine: new RegExp(`([${DECEIVING}${SOURCES.control}])\\1*`, 'gu'),
  strict: new RegExp(`((?![\\n\\t\\x20-\\x7e])[${DECEIVING}${SOURCES.control}${SOURCES.lookalike}])\\1*`, 'gu'),
  strictLine: new RegExp(`((?![\\x20-\\x7e])[${DECEIVING}${SOURCES.control}${SOURCES.lookalike}])\\1*`, 'gu'),
};

/** @param {Options} options */
function patternOf({ strict = false, singleLine = false }) {
  if (strict) return singleLine ? PATTERNS.strictLine : PATTERNS.strict;
  return singleLine ? PATTERNS.proseLine : PATTERNS.prose;
}

/** @type {Map<string, { mark: Mark, name: string }>} */
const known = new Map();

/** @param {string} character */
function describe(character) {
  let found = known.get(character);
  if (found === undefined) {
    const code = Number(character.codePointAt(0)).toString(16).toUpperCase().padStart(4, '0');
    const { mark } = CLASSES.find(({ pattern }) => pattern.test(character)) ?? { mark: 'lookalike' };
    found = { mark, name: `U+${code}` };
    known.set(character, found);
  }
  return found;
}

/**
 * @param {string} text
 * @param {Options} [options]
 * @returns {Piece[]}
 */
export function pieces(text, options = {}) {
  /** @type {Piece[]} */
  const found = [];
  let plainFrom = 0;
  for (const match of text.matchAll(patternOf(options))) {
    const [run, character] = match;
    const at = Number(match.index);
    if (at > plainFrom) found.push({ text: text.slice(plainFrom, at), mark: null });
    found.push({ text: run, ...describe(String(character)), count: run.length / String(character).length });
    plainFrom = at + run.length;
  }
  if (plainFrom < text.length) found.push({ text: text.slice(plainFrom), mark: null });
  return found;
}

/**
 * The marks that a text has.
 * @param {string} text
 * @param {Options} [options]
 * @returns {Set<Mark>}
 */
export function marksOf(text, options = {}) {
  /** @type {Set<Mark>} */
  const marks = new Set();
  for (const [, character] of text.matchAll(patternOf(options))) marks.add(describe(String(character)).mark);
  return marks;
}

/**
 * A text on one line, with what could deceive as `\u{…}`: for places that show nothing but text, such as a title.
 * @param {string} text
 */
export function visibleText(text) {
  const escape = (/** @type {string} */ character) => `\\u{${Number(character.codePointAt(0)).toString(16)}}`;
  return text.replace(PATTERNS.proseLine, (run) => [...run].map(escape).join(''));
}
