// Tells deceptive characters of a text apart from the rest, so that views can show them: characters
// that cannot be seen, that change the direction of text, or that only look like others. Nothing of
// the text is left out.

/**
 * `control`: a control character. `bidi`: changes the direction of text. `invisible`: takes no
 * place on the screen. `space`: looks like a space, and does not separate words. `lookalike`: may
 * look like an ASCII character, and is another one. `foreign`: a letter of a word that can be told
 * at a glance from one in ASCII, or an emoji.
 * @typedef {'control' | 'bidi' | 'invisible' | 'space' | 'lookalike' | 'foreign'} Mark
 */

/**
 * A run of the text. A marked one has one character, `count` times; `name` is how to write it, such
 * as `U+202E`. A foreign one may have several.
 * @typedef {{ text: string, mark: null } | { text: string, mark: Mark, name: string, count: number }} Piece
 */

/**
 * Letters of other scripts belong in prose. Where a command, a path or an address is shown,
 * everything but printable ASCII is marked too: `strict`. Line feeds and tabs are plain, unless
 * `singleLine`.
 * @typedef {{ strict?: boolean, singleLine?: boolean }} Options
 */

const SOURCES = {
	bidi: "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069",
	space: "\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u2800\\u3000",
	control: "\\p{Cc}",
	// Those of `Cf`, those that fonts leave empty, selectors of variants, and what is no character.
	invisible:
		"\\p{Cf}\\p{Cs}\\p{Co}\\p{Cn}\\p{Zl}\\p{Zp}\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u3164\\ufe00-\\ufe0f" +
		"\\uffa0\\ufffc\\u{1d159}\\u{e0100}-\\u{e01ef}",
};

/** The first that fits counts. */
const MARKS = /** @type {const} */ (["bidi", "space", "control", "invisible"]);
const CLASSES = MARKS.map((mark) => ({
	mark,
	pattern: new RegExp(`^[${SOURCES[mark]}]$`, "u"),
}));

const DECEIVING = SOURCES.bidi + SOURCES.space + SOURCES.invisible;
/** A character that is marked, and its repetitions, so that a million of them are one piece. */
const PATTERNS = {
	prose: new RegExp(`((?![\\n\\t])[${DECEIVING}${SOURCES.control}])\\1*`, "gu"),
	proseLine: new RegExp(`([${DECEIVING}${SOURCES.control}])\\1*`, "gu"),
	strict: /([^\n\t\x20-\x7e])\1*/gu,
	strictLine: /([^\x20-\x7e])\1*/gu,
};

/** @param {Options} options */
function patternOf({ strict = false, singleLine = false }) {
	if (strict) return singleLine ? PATTERNS.strictLine : PATTERNS.strict;
	return singleLine ? PATTERNS.proseLine : PATTERNS.prose;
}

const WORD = /[\p{L}\p{M}]+/gu;
/**
 * Letters with marks that are easily seen, and some that resemble no other; not those like ı, ł and
 * ſ.
 */
const LATIN =
	/^[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u0113\u0116-\u0130\u0134-\u0137\u0139-\u013e\u0143-\u0148\u014a-\u017e\u0218-\u021b\u1e9e]+$/;
/**
 * Other scripts, each with its letters that could pass for ASCII: a word of nothing else is no such
 * word.
 */
const SCRIPTS = [
	{
		own: /^\p{Script=Cyrillic}+$/u,
		plain: /^[аеорсухіјѕһԁԛԝӏьвнкмтгпзѵАВЕЗКМНОРСТУХІЈЅҺӀГПЬ]+$/,
	},
	{ own: /^\p{Script=Greek}+$/u, plain: /^[αβγεηικνορτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳ]+$/ },
	{
		own: /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー]+$/u,
		plain: /^[一丨丶丿〇口工卜丁八二三ノーへヘニハトロエヽヾ〆々]+$/,
	},
	{
		own: /^\p{Script=Hangul}+$/u,
		plain: /^[\u1100-\u11ff\u3131-\u318e\uffa0-\uffdc]+$/,
	},
	{ own: /^\p{Script=Arabic}+$/u, plain: /^[اهوىـ]+$/ },
	{ own: /^\p{Script=Hebrew}+$/u, plain: /^[וסןיח]+$/ },
	{ own: /^\p{Script=Devanagari}+$/u, plain: /^[ा।ऽ]+$/ },
	{ own: /^\p{Script=Thai}+$/u, plain: /^[าเแ]+$/ },
];
/** Signs of arithmetic and exclamation are left out. */
const EMOJI = /(?![\u2753-\u2757\u2795-\u2797])\p{Emoji_Presentation}/gu;

/**
 * Whether a word can be told at a glance from one in ASCII. Mixed scripts, and words of nothing but
 * look-alikes, cannot.
 * @param {string} word
 */
function isForeign(word) {
	const composed = word.normalize("NFC");
	return (
		LATIN.test(composed) ||
		SCRIPTS.some(
			({ own, plain }) => own.test(composed) && !plain.test(composed),
		)
	);
}

/**
 * Where foreign words and emoji are, as pairs of places.
 * @param {string} text
 */
function* foreignPlaces(text) {
	for (const { index, 0: word } of text.matchAll(WORD))
		if (isForeign(word)) yield [Number(index), Number(index) + word.length];
	for (const { index, 0: sign } of text.matchAll(EMOJI))
		yield [Number(index), Number(index) + sign.length];
}

/** @type {Map<string, { mark: Mark, name: string }>} */
const known = new Map();

/**
 * @param {string} character
 * @param {boolean} isCalm it is of a foreign word
 * @returns {{ mark: Mark, name: string }}
 */
function describe(character, isCalm) {
	let found = known.get(character);
	if (found === undefined) {
		const code = Number(character.codePointAt(0))
			.toString(16)
			.toUpperCase()
			.padStart(4, "0");
		/** @type {{ mark: Mark }} */
		const { mark } = CLASSES.find(({ pattern }) => pattern.test(character)) ?? {
			mark: "lookalike",
		};
		found = { mark, name: `U+${code}` };
		known.set(character, found);
	}
	return isCalm && found.mark === "lookalike"
		? { ...found, mark: "foreign" }
		: found;
}

/**
 * @param {string} text
 * @param {Options} [options]
 * @returns {Piece[]}
 */
export function pieces(text, options = {}) {
	/** @type {Piece[]} */
	const found = [];
	const foreign = options.strict
		? [...foreignPlaces(text)].sort(([one], [other]) => one - other)
		: [];
	let [plainFrom, next] = [0, 0];
	for (const match of text.matchAll(patternOf(options))) {
		const [run, character] = match;
		const at = Number(match.index);
		if (at > plainFrom)
			found.push({ text: text.slice(plainFrom, at), mark: null });
		while (next < foreign.length && foreign[next][1] <= at) next += 1;
		const isCalm =
			next < foreign.length &&
			foreign[next][0] <= at &&
			at + run.length <= foreign[next][1];
		push(found, {
			text: run,
			...describe(String(character), isCalm),
			count: run.length / String(character).length,
		});
		plainFrom = at + run.length;
	}
	if (plainFrom < text.length)
		found.push({ text: text.slice(plainFrom), mark: null });
	return found;
}

/**
 * Foreign letters that follow each other are one piece.
 * @param {Piece[]} found
 * @param {Extract<Piece, { name: string }>} piece
 */
function push(found, piece) {
	const last = found[found.length - 1];
	if (piece.mark !== "foreign" || last?.mark !== "foreign") found.push(piece);
	else
		found[found.length - 1] = {
			...last,
			text: last.text + piece.text,
			name: `${last.name} ${piece.name}`,
			count: 1,
		};
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
	for (const { mark } of pieces(text, options))
		if (mark !== null) marks.add(mark);
	return marks;
}

/**
 * A text on one line, with what could deceive as `\u{…}`: for places that show nothing but text,
 * such as a title.
 * @param {string} text
 */
export function visibleText(text) {
	const escaped = (/** @type {string} */ character) =>
		`\\u{${Number(character.codePointAt(0)).toString(16)}}`;
	return text.replace(PATTERNS.proseLine, (run) =>
		[...run].map(escaped).join(""),
	);
}
