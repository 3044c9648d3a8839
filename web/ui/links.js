// Links of this page, wherever it is hosted: only what follows `#/` counts.

/**
 * The parts after `#/name/`, or null if it is another kind of link.
 * @param {string} text
 * @param {'join' | 'pair' | 'device'} name
 */
export function linkArgs(text, name) {
	const at = text.trim().indexOf(`#/${name}/`);
	return at < 0 ? null : text.trim().slice(at + name.length + 3);
}
