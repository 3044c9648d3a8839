// Many rows of text, of which only those near the screen exist. Rows may wrap: heights are
// estimated first, and measured once they are shown. The page itself scrolls, so there is no second
// scroll bar.

import { el } from "./dom.js";

/** Up to here everything is rendered at once, so that the browser's own search finds it. */
const ALL_AT_ONCE = 800;
const ALL_AT_ONCE_PX = 30_000;
const OVERSCAN_PX = 300;

/**
 * @typedef {object} Source
 * @property {number} count
 * @property {(index: number) => HTMLElement} render
 * @property {(index: number, width: number) => number} estimate the height in pixels
 */

export class Rows {
	/** @type {Source} */
	#source = { count: 0, render: () => el("div"), estimate: () => 0 };
	#heights = new Float64Array(0);
	/** Where each row begins; right up to `#valid`. */
	#tops = new Float64Array(1);
	#valid = 0;
	#first = 0;
	#last = 0;
	#scheduled = false;
	#isWhole = true;
	#window = el("div", { class: "rows-window" });
	/** @type {ResizeObserver} */
	#resize;
	#width = 0;
	/** @type {(() => void) | null} */
	onScroll = null;

	/** @param {string} label */
	constructor(label) {
		this.element = el(
			"div",
			{ class: "rows", role: "group", "aria-label": label, tabindex: "-1" },
			this.#window,
		);
		this.schedule = this.schedule.bind(this);
		window.addEventListener("scroll", this.schedule, { passive: true });
		this.#resize = new ResizeObserver(() => {
			const width = this.element.clientWidth;
			// Rows that are all in the page wrap by themselves.
			if (width !== this.#width && !this.#isWhole) this.#remeasure();
		});
		this.#resize.observe(this.element);
	}

	dispose() {
		window.removeEventListener("scroll", this.schedule);
		this.#resize.disconnect();
	}

	/** @param {Source} source */
	show(source) {
		this.#source = source;
		this.#remeasure();
	}

	#remeasure() {
		const { count, estimate, render } = this.#source;
		const width = this.element.clientWidth;
		this.#width = width;
		let total = 0;
		this.#heights = new Float64Array(count);
		for (let index = 0; index < count; index += 1) {
			this.#heights[index] = estimate(index, width);
			total += this.#heights[index];
		}
		this.#isWhole = count <= ALL_AT_ONCE && total <= ALL_AT_ONCE_PX;
		if (this.#isWhole) {
			this.element.style.height = "";
			this.#window.style.transform = "";
			this.#window.classList.remove("floating");
			this.#window.replaceChildren(
				...Array.from({ length: count }, (_, index) => render(index)),
			);
			[this.#first, this.#last] = [0, count];
			return;
		}
		this.#window.classList.add("floating");
		this.#tops = new Float64Array(count + 1);
		this.#valid = 0;
		[this.#first, this.#last] = [0, 0];
		this.#window.replaceChildren();
		this.#update();
	}

	/**
	 * Makes rows that exist anew, at the same height.
	 * @param {(index: number) => boolean} isWanted
	 */
	refresh(isWanted) {
		const children = [...this.#window.children];
		for (let index = this.#first; index < this.#last; index += 1)
			if (isWanted(index))
				children[index - this.#first]?.replaceWith(this.#source.render(index));
	}

	/** @param {number} index */
	#top(index) {
		for (; this.#valid < index; this.#valid += 1) {
			this.#tops[this.#valid + 1] =
				this.#tops[this.#valid] + this.#heights[this.#valid];
		}
		return this.#tops[index];
	}

	/**
	 * The row at a distance from the top.
	 * @param {number} y
	 */
	#at(y) {
		this.#top(this.#source.count);
		let [low, high] = [0, this.#source.count - 1];
		while (low < high) {
			const middle = (low + high + 1) >> 1;
			if (this.#tops[middle] <= y) low = middle;
			else high = middle - 1;
		}
		return Math.max(low, 0);
	}

	schedule() {
		if (this.#scheduled) return;
		this.#scheduled = true;
		requestAnimationFrame(() => {
			this.#scheduled = false;
			if (!this.element.isConnected) return;
			if (!this.#isWhole) this.#update();
			this.onScroll?.();
		});
	}

	#update() {
		const above = -this.element.getBoundingClientRect().top;
		const from = this.#at(above - OVERSCAN_PX);
		const to = Math.min(
			this.#at(above + innerHeight + OVERSCAN_PX) + 1,
			this.#source.count,
		);
		if (from !== this.#first || to !== this.#last) this.#render(from, to);
		this.#measure(this.#at(Math.max(above, 0)));
	}

	/**
	 * @param {number} from
	 * @param {number} to
	 */
	#render(from, to) {
		const kept = this.#window.children;
		const overlap = from < this.#last && to > this.#first;
		if (!overlap) {
			this.#window.replaceChildren(...this.#make(from, to));
		} else {
			for (let index = this.#first; index < from; index += 1) kept[0].remove();
			for (let index = this.#last; index > to; index -= 1)
				kept[kept.length - 1].remove();
			this.#window.prepend(...this.#make(from, this.#first));
			this.#window.append(...this.#make(Math.max(this.#last, from), to));
		}
		[this.#first, this.#last] = [from, to];
	}

	/**
	 * @param {number} from
	 * @param {number} to
	 */
	#make(from, to) {
		const made = [];
		for (let index = from; index < to; index += 1)
			made.push(this.#source.render(index));
		return made;
	}

	/**
	 * Takes over real heights, and keeps the row that is being read where it is.
	 * @param {number} anchor
	 */
	#measure(anchor) {
		const before = this.#top(anchor);
		let changed = -1;
		const children = this.#window.children;
		for (let index = this.#first; index < this.#last; index += 1) {
			const height =
				children[index - this.#first].getBoundingClientRect().height;
			if (Math.abs(height - this.#heights[index]) < 0.5) continue;
			this.#heights[index] = height;
			if (changed < 0) changed = index;
		}
		if (changed >= 0) this.#valid = Math.min(this.#valid, changed);
		this.element.style.height = `${this.#top(this.#source.count)}px`;
		this.#window.style.transform = `translateY(${this.#top(this.#first)}px)`;
		const moved = this.#top(anchor) - before;
		if (moved !== 0) window.scrollBy(0, moved);
	}

	/**
	 * The first row on the screen, below what covers the top.
	 * @param {number} covered
	 */
	firstVisible(covered) {
		const y = covered - this.element.getBoundingClientRect().top;
		if (y < 0) return -1;
		if (!this.#isWhole) return this.#at(y);
		const children = [...this.#window.children];
		const top = this.#window.getBoundingClientRect().top;
		return children.findIndex(
			(child) => child.getBoundingClientRect().bottom - top > y,
		);
	}

	/**
	 * Scrolls a row below what covers the top of the screen.
	 * @param {number} index
	 * @param {number} covered
	 */
	reveal(index, covered) {
		// Heights on the way are estimates: after the first jump those around the row are measured.
		for (let round = 0; round < 3; round += 1) {
			const child = this.#isWhole ? this.#window.children[index] : null;
			const top = child
				? child.getBoundingClientRect().top
				: this.element.getBoundingClientRect().top + this.#top(index);
			window.scrollBy(0, top - covered);
			if (!this.#isWhole) this.#update();
		}
	}

	/**
	 * The element of a row, if it exists now.
	 * @param {number} index
	 */
	elementOf(index) {
		return index >= this.#first && index < this.#last
			? /** @type {HTMLElement} */ (this.#window.children[index - this.#first])
			: null;
	}
}
