// A gateway that sends too much, or tells to come back at once: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayClient } from "../core/gateway.js";
import { Store } from "../core/store.js";
import { Database, installStorage } from "./memory.mjs";

const CALL = { path: "/x", expect: [200] };

test("an answer that is too long is not read to its end", async () => {
	let sent = 0;
	const chunk = new Uint8Array(1 << 20).fill(0x61);
	const pull = (controller) => {
		sent += 1;
		controller.enqueue(chunk);
	};
	globalThis.fetch = async () => new Response(new ReadableStream({ pull }));
	await assert.rejects(new GatewayClient(["https://g"], null).call(CALL), {
		code: "answer",
	});
	assert.ok(sent < 40, `${sent} MiB were read`);
});

test("an answer in pieces is put together", async () => {
	const parts = [...new TextEncoder().encode('{"a":"ä€😀"}')].map((byte) =>
		Uint8Array.of(byte),
	);
	globalThis.fetch = async () =>
		new Response(
			new ReadableStream({
				pull: (controller) =>
					parts.length ? controller.enqueue(parts.shift()) : controller.close(),
			}),
		);
	assert.equal(
		(await new GatewayClient(["https://g"], null).call(CALL)).text,
		'{"a":"ä€😀"}',
	);
	globalThis.fetch = async () => new Response(null, { status: 200 });
	assert.equal(
		(await new GatewayClient(["https://g"], null).call(CALL)).text,
		"",
	);
});

test("whoever is told to come back at once still waits", async () => {
	for (const after of ["-5", "0", "-99999999", "soon"]) {
		let calls = 0;
		globalThis.fetch = async () => {
			calls += 1;
			return new Response("{}", {
				status: 503,
				headers: { "Retry-After": after },
			});
		};
		await assert.rejects(
			new GatewayClient(["https://g"], null).call({ ...CALL, patienceMs: 400 }),
			{ code: "refused" },
		);
		assert.ok(calls < 20, `${after}: ${calls} calls`);
	}
});

test("a later version of the database adds only what is missing", async () => {
	const databases = installStorage();
	const earlier = new Database();
	earlier.createObjectStore("profile");
	earlier.tables.get("profile").rows.set("approver", { tenantId: "t" });
	databases.set("countersign", earlier);
	const store = await Store.open();
	assert.equal((await store.profile()).tenantId, "t");
	assert.deepEqual(await store.enforcers(), []);
});
