// The language of the page: the first one that the person's browser wants and that there are texts
// for.

/**
 * Languages beside English, each one file. It exports `texts` with the members that it translates,
 * as in `texts.js`; the others stay English. For German: `de: () => import('./de.js')`.
 * @type {Record<string, () => Promise<{ texts: object }>>}
 */
const LANGUAGES = {};

/**
 * @param {readonly string[]} wanted such as `de-AT`, the best one first
 * @param {string[]} offered such as `de`
 */
export function languageOf(wanted, offered) {
	const names = wanted.map((name) => name.toLowerCase().split("-")[0]);
	return names.find((name) => name === "en" || offered.includes(name)) ?? "en";
}

/**
 * @param {Record<string, any>} texts
 * @param {Record<string, any>} translated
 */
function replace(texts, translated) {
	for (const [name, text] of Object.entries(translated)) {
		const isGroup =
			text !== null &&
			typeof text === "object" &&
			!Array.isArray(text) &&
			name in texts;
		if (isGroup) replace(texts[name], text);
		else texts[name] = text;
	}
}

/**
 * Puts the texts of the person's language in place of the English ones.
 * @param {Record<string, any>} texts
 * @param {readonly string[]} [wanted]
 * @param {typeof LANGUAGES} [languages]
 */
export async function translate(
	texts,
	wanted = globalThis.navigator?.languages ?? [],
	languages = LANGUAGES,
) {
	const name = languageOf(wanted, Object.keys(languages));
	const load = languages[name];
	if (!load) return "en";
	replace(texts, (await load()).texts);
	if (globalThis.document) document.documentElement.lang = name;
	return name;
}
