// A document for views: elements that hold attributes, children and listeners, and nothing more.

import assert from "node:assert/strict";

class FakeElement {
	constructor(tag) {
		this.tag = tag;
		this.attributes = new Map();
		this.listeners = new Map();
		this.childNodes = [];
		this.parent = null;
		this.value = "";
		this.disabled = false;
		this.isConnected = false;
		this.classList = { toggle() {}, add() {} };
	}

	get id() {
		return this.getAttribute("id") ?? "";
	}

	set id(id) {
		this.setAttribute("id", id);
	}

	get textContent() {
		return this.childNodes
			.map((node) => (typeof node === "string" ? node : node.textContent))
			.join("");
	}

	set textContent(text) {
		this.childNodes = [text];
	}

	getAttribute(name) {
		return this.attributes.get(name) ?? null;
	}

	setAttribute(name, value) {
		this.attributes.set(name, String(value));
	}

	removeAttribute(name) {
		this.attributes.delete(name);
	}

	append(...nodes) {
		this.childNodes.push(...nodes);
		for (const node of nodes) if (typeof node !== "string") node.parent = this;
	}

	replaceChildren(...nodes) {
		this.childNodes = [];
		this.append(...nodes);
	}

	remove() {
		const siblings = this.parent?.childNodes ?? [];
		if (siblings.includes(this)) siblings.splice(siblings.indexOf(this), 1);
	}

	addEventListener(type, listener) {
		this.listeners.set(type, listener);
	}

	/** Gives what the listener returns, so that a test can wait for it. */
	fire(type, event = { preventDefault() {} }) {
		return this.listeners.get(type)?.({ target: this, ...event });
	}

	dispatchEvent({ type }) {
		this[`on${type}`]?.();
	}

	click() {
		return this.fire("click");
	}

	focus() {
		document.activeElement = this;
	}

	showModal() {}

	close() {
		this.fire("close");
	}

	/** @param {string} tag */
	querySelector(tag) {
		return this.all((element) => element.tag === tag)[0] ?? null;
	}

	/** All elements below this one that `isWanted`. */
	all(isWanted) {
		return this.childNodes.flatMap((node) =>
			typeof node === "string"
				? []
				: [...(isWanted(node) ? [node] : []), ...node.all(isWanted)],
		);
	}
}

const { setInterval } = globalThis;

/** Lets views be made. Call it before they are imported. */
export function fakeDocument() {
	// The page's clock would keep the test from ending.
	globalThis.setInterval = (...args) => setInterval(...args).unref();
	globalThis.document = {
		body: new FakeElement("body"),
		activeElement: null,
		createElement: (tag) => new FakeElement(tag),
		createElementNS: (_, tag) => new FakeElement(tag),
		querySelectorAll: () => [],
	};
	return globalThis.document;
}

/** The buttons of an element, by what they say. */
export function buttonsOf(element) {
	const found = element.all(({ tag }) => tag === "button");
	return new Map(found.map((one) => [captionOf(one), one]));
}

/** Keys are shown on the buttons, and hidden from those who hear them. */
function captionOf(button) {
	return button.childNodes
		.filter((node) => typeof node === "string" || node.tag !== "kbd")
		.map((node) => (typeof node === "string" ? node : node.textContent))
		.join("");
}

/** Lets what has begun go on. */
export const settled = () => new Promise((resolve) => setImmediate(resolve));

/** The element of a view, once its first calls have been answered. */
export async function shown(view, approver, args = []) {
	// The fake document finds nothing.
	const { element } = view({ approver, args, go() {}, enrolled() {} });
	element.querySelector = () => null;
	await settled();
	return element;
}

/** The newest dialog, which has these words. */
export function dialogOf(words) {
	const dialog = document.body.childNodes.at(-1);
	assert.ok(dialog.textContent.includes(words), dialog.textContent);
	return dialog;
}
