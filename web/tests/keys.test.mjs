// Single keys decide only on purpose: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";

class Element {
	constructor(tag) {
		this.tag = tag;
	}

	closest(selector) {
		return selector.includes(this.tag) ? this : null;
	}

	blur() {}

	append() {}

	setAttribute() {}
}

let listener;
let isDialog = false;
Object.assign(globalThis, {
	Element,
	HTMLElement: Element,
	document: {
		body: new Element("body"),
		createElement: (tag) => new Element(tag),
		addEventListener: (_, given) => (listener = given),
		querySelector: () => (isDialog ? {} : null),
	},
});
const { listenToKeys } = await import("../ui/keyboard.js");

/** Presses keys at times, and tells what they did. */
function press(...keys) {
	const done = [];
	listenToKeys(
		() => ({ a: () => done.push("approve"), j: () => done.push("next") }),
		(hash) => done.push(hash),
	);
	for (const [key, timeStamp, tag = "body", further = {}] of keys) {
		listener({
			key,
			timeStamp,
			target: new Element(tag),
			preventDefault() {},
			...further,
		});
	}
	return done;
}

test("a key does what the view says", () => {
	assert.deepEqual(press(["j", 0], ["a", 10]), ["next", "approve"]);
	assert.deepEqual(
		press(
			["a", 0, "body", { ctrlKey: true }],
			["a", 1, "body", { repeat: true }],
			["a", 2, "input"],
		),
		[],
	);
});

test("whoever types decides nothing when the field goes", () => {
	assert.deepEqual(
		press(["l", 0, "input"], ["a", 200], ["a", 900], ["a", 1800]),
		[],
	);
	assert.deepEqual(press(["l", 0, "input"], ["a", 1500]), ["approve"]);
	// Escape leaves the field on purpose.
	assert.deepEqual(
		press(["l", 0, "input"], ["Escape", 100, "input"], ["a", 200]),
		["approve"],
	);
});

test("after g the next key names a place or nothing, however late", () => {
	assert.deepEqual(press(["g", 0], ["a", 100]), ["#/agents"]);
	assert.deepEqual(press(["g", 0], ["a", 60_000]), ["#/agents"]);
	assert.deepEqual(press(["g", 0], ["Shift", 10], ["j", 20], ["j", 30]), [
		"next",
	]);
	assert.deepEqual(press(["g", 0], ["x", 10, "input"], ["a", 5000]), [
		"approve",
	]);
});

test("a dialog takes the keys", () => {
	isDialog = true;
	assert.deepEqual(press(["a", 0]), []);
	isDialog = false;
});
