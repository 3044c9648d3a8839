// Builds the page's elements. Text becomes text nodes and never markup.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * @typedef {{
 *   class?: string | (string | false | null | undefined)[],
 *   on?: Record<string, (event: any) => void>,
 *   [attribute: string]: any,
 * }} Props
 */

/**
 * @param {Element} element
 * @param {Props} props
 */
function assign(element, props) {
	for (const [name, value] of Object.entries(props)) {
		if (value === undefined || value === null || value === false) continue;
		if (name === "class") {
			const names = Array.isArray(value)
				? value.filter(Boolean).join(" ")
				: value;
			if (names) element.setAttribute("class", names);
		} else if (name === "on") {
			for (const [type, listener] of Object.entries(value)) {
				element.addEventListener(type, /** @type {EventListener} */ (listener));
			}
		} else {
			element.setAttribute(name, value === true ? "" : String(value));
		}
	}
}

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props | null} [props]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, props, ...children) {
	const element = document.createElement(tag);
	if (props) assign(element, props);
	append(element, children);
	return element;
}

/**
 * @param {string} tag
 * @param {Props} props
 * @param {...Node} children
 */
export function svg(tag, props, ...children) {
	const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
	assign(element, props);
	element.append(...children);
	return element;
}

/**
 * @param {Element | DocumentFragment} parent
 * @param {(Child | Child[])[]} children
 */
function append(parent, children) {
	for (const child of children.flat()) {
		if (child === null || child === undefined || child === false) continue;
		parent.append(typeof child === "number" ? String(child) : child);
	}
}

/**
 * Replaces the children.
 * @param {Element} parent
 * @param {...(Child | Child[])} children
 */
export function fill(parent, ...children) {
	parent.replaceChildren();
	append(parent, children);
}

let serial = 0;

/** An id for `for`, `aria-labelledby` and the like. */
export function freshId() {
	serial += 1;
	return `id${serial}`;
}
