// A value that views subscribe to.

/**
 * A `Live` of `types.js`.
 * @template T
 */
export class LiveValue {
	/** @param {T} value */
	constructor(value) {
		/** @type {T} */
		this.value = value;
		/** @type {Set<(value: T) => void>} */
		this.listeners = new Set();
	}

	/** @param {T} value */
	set(value) {
		this.value = value;
		for (const listener of [...this.listeners]) listener(value);
	}

	/**
	 * @param {(value: T) => void} listener
	 * @returns {() => void}
	 */
	subscribe(listener) {
		this.listeners.add(listener);
		listener(this.value);
		return () => {
			this.listeners.delete(listener);
		};
	}
}
