// A list whose entries stay the same elements while what they show stays the same, and with them
// focus and selection.

/**
 * @template T
 * @param {HTMLElement} list
 * @param {(one: T) => string} keyOf
 * @param {(one: T) => HTMLElement} make
 */
export function keyedList(list, keyOf, make) {
	/** @type {Map<string, { shown: T, entry: HTMLElement }>} */
	let known = new Map();
	return {
		/**
		 * Returns what has come.
		 * @param {T[]} items
		 * @param {(one: T, other: T) => boolean} [isSame]
		 */
		show(items, isSame = Object.is) {
			const before = known;
			const focusedAt = [...list.children].findIndex((entry) =>
				entry.contains(document.activeElement),
			);
			const focusedKey = [...before].find(([, { entry }]) =>
				entry.contains(document.activeElement),
			)?.[0];
			known = new Map(
				items.map((one) => {
					const kept = before.get(keyOf(one));
					return [
						keyOf(one),
						kept && isSame(kept.shown, one)
							? kept
							: { shown: one, entry: make(one) },
					];
				}),
			);
			const entries = [...known.values()].map(({ entry }) => entry);
			// Only what differs is touched: an element that is moved loses the focus.
			const wanted = new Set(entries);
			for (const entry of [...list.children])
				if (!wanted.has(/** @type {HTMLElement} */ (entry))) entry.remove();
			entries.forEach((entry, at) => {
				if (list.children[at] !== entry)
					list.insertBefore(entry, list.children[at] ?? null);
			});
			if (focusedAt >= 0 && !list.contains(document.activeElement)) {
				// Its successor, if the entry itself has left.
				const next =
					(focusedKey !== undefined && known.get(focusedKey)?.entry) ||
					list.children[Math.min(focusedAt, list.children.length - 1)];
				const target =
					next?.querySelector("a, button") ?? document.querySelector("h1");
				if (target instanceof HTMLElement)
					target.focus({ preventScroll: true });
			}
			return items.filter((one) => !before.has(keyOf(one)));
		},
	};
}
