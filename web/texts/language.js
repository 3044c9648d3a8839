// The language of the page: the one that the person chose, or else the first one that the browser
// wants and that there are texts for.

const KEY = "countersign.language";

/** As each language calls itself. */
export const LANGUAGE_NAMES = {
	en: "English",
	de: "Deutsch",
	es: "Español",
};

/**
 * Languages beside English. They load when they are wanted.
 * @type {Record<string, () => Promise<{ texts: object }>>}
 */
const LANGUAGES = {
	de: () => import("./de.js"),
	es: () => import("./es.js"),
};

let locale = "en";

/** For dates: the page's language, with the person's region if the browser names one. */
export const pageLocale = () => locale;

/** What the person chose; null: as the browser wants. */
export function chosenLanguage() {
	const kept = localStorage.getItem(KEY);
	return kept !== null && Object.hasOwn(LANGUAGE_NAMES, kept) ? kept : null;
}

/** @param {string | null} name */
export function chooseLanguage(name) {
	if (name === null) localStorage.removeItem(KEY);
	else localStorage.setItem(KEY, name);
}

function wantedLanguages() {
	// Tests without a browser are in English, wherever they run.
	if (!globalThis.document?.documentElement) return [];
	const chosen = chosenLanguage();
	return chosen === null
		? navigator.languages
		: [chosen, ...navigator.languages];
}

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
	wanted = wantedLanguages(),
	languages = LANGUAGES,
) {
	let name = languageOf(wanted, Object.keys(languages));
	try {
		const translation = await languages[name]?.();
		if (translation) replace(texts, translation.texts);
	} catch (error) {
		// Without a network, a language that was never loaded is missing.
		console.warn(error);
		name = "en";
	}
	const regional = new RegExp(`^${name}-[a-z]{2}$`, "i");
	locale = wanted.find((it) => regional.test(it)) ?? name;
	const root = globalThis.document?.documentElement;
	if (root) root.lang = name;
	return name;
}
