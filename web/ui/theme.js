// Light or dark: as the system says, unless the person chose.

const KEY = "countersign.theme";

/** @typedef {'system' | 'light' | 'dark'} Theme */

/** @returns {Theme} */
export function currentTheme() {
	const kept = localStorage.getItem(KEY);
	return kept === "light" || kept === "dark" ? kept : "system";
}

export function applyTheme() {
	const theme = currentTheme();
	if (theme === "system") delete document.documentElement.dataset.theme;
	else document.documentElement.dataset.theme = theme;
}

/** @param {Theme} theme */
export function chooseTheme(theme) {
	if (theme === "system") localStorage.removeItem(KEY);
	else localStorage.setItem(KEY, theme);
	applyTheme();
}
