// Orders to an enforcer: signed as the Rust clients sign them, sealed, and confirmed by a receipt
// that the gateway cannot know. `node --test web/tests/`.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { toHex, utf8 } from "../core/bytes.js";
import { canonical } from "../core/canonical.js";
import { grantSession, isConfirmed, signOrder } from "../core/orders.js";
import { sealContent } from "../core/prompts.js";
import { RANDOM } from "../core/seal.js";
import { deviceOf, enforcerOf } from "./support.js";

const read = async (/** @type {string} */ name) =>
	JSON.parse(
		await readFile(
			new URL(`../../tests/vectors/${name}.json`, import.meta.url),
			"utf8",
		),
	);
const [encryption, vector] = [await read("encryption"), await read("control")];

test("an order is signed byte for byte as in the terminal", async () => {
	const keys = await deviceOf(encryption, "phone");
	const parties = {
		tenantId: "acme",
		approverId: "alice",
		enforcerId: "build-bot",
		at: "2026-02-21T12:01:00Z",
	};
	const order = { order: "agent.pause", until: "2026-02-21T13:01:00Z" };
	const control = await signOrder(keys, parties, order);
	assert.equal(canonical(control), vector.control);
});

test("an order is sealed, and its receipt follows from its content", async () => {
	const keys = await deviceOf(encryption, "phone");
	const { pinned } = await enforcerOf(encryption);
	const { control, requestId, createdAt } = JSON.parse(vector.plaintext);
	const { body, receipt } = await sealContent(
		keys,
		"alice",
		pinned,
		{ requestId, createdAt, sessionId: null },
		{ control },
		RANDOM,
	);
	assert.ok(!("control" in body) && !("text" in body), "nothing is in plain");
	assert.equal(receipt.length, 64);
	assert.notEqual(receipt, vector.receipt, "it depends on the salt");
	const known = utf8(`countersign receipt v1\n${vector.plaintext}`);
	const hash = await crypto.subtle.digest("SHA-256", known);
	assert.equal(toHex(new Uint8Array(hash)), vector.receipt);
	const sent = { status: "delivered", receipt, expects: receipt };
	assert.ok(isConfirmed(sent));
	assert.ok(!isConfirmed({ ...sent, receipt: null }));
	assert.ok(!isConfirmed({ ...sent, receipt: vector.receipt }));
	assert.ok(!isConfirmed({ ...sent, status: "rejected" }));
});

test("the session of a grant is the one that the enforcer reports under", async () => {
	const id = await grantSession("bot", "0199a8e2-7c1b-7d30-9c55-3f1d2a6b8c90");
	assert.equal(id, "d8c3088c-2b49-8579-afa2-bdfdd616cf68");
});
