// Requests from before this device was added: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../core/problem.js";
import { texts } from "../texts.js";
import { isEarlier } from "../views/earlier.js";

const ADDED = "2026-02-21T12:00:00Z";

function item(receivedAt, code) {
	const content =
		code === null
			? { opened: true }
			: { opened: false, problem: Problem.of(code, {}) };
	return { receivedAt, content };
}

test("only what was encrypted before this device was added is set apart", () => {
	const before = "2026-02-21T11:59:59Z";
	assert.equal(isEarlier(item(before, "notARecipient"), ADDED), true);
	// The enforcer leaves this device out, or something else is wrong: that is shown.
	assert.equal(isEarlier(item(ADDED, "notARecipient"), ADDED), false);
	assert.equal(isEarlier(item(before, "keyNotOpened"), ADDED), false);
	assert.equal(isEarlier(item(before, null), ADDED), false);
	for (const addedAt of [null, undefined, "nonsense"])
		assert.equal(isEarlier(item(before, "notARecipient"), addedAt), false);
	assert.equal(isEarlier(item(null, "notARecipient"), ADDED), false);
});

test("the line says how many they are, and where they are decided", () => {
	assert.equal(
		texts.inbox.earlier(14, ["Chrome on Linux"]),
		"14 requests were sent before this device was added. Decide them on Chrome on Linux.",
	);
	assert.equal(
		texts.inbox.earlier(1, ["phone", "laptop"]),
		"1 request was sent before this device was added. Decide it on phone or laptop.",
	);
	assert.equal(
		texts.inbox.earlier(2, []),
		"2 requests were sent before this device was added.",
	);
});
