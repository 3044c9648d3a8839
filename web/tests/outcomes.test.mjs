// The source of an outcome: the agent's machine, or the gateway alone: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../core/problem.js";
import { delivered } from "./delivered.mjs";
import { REQUEST } from "./hostile.mjs";

test("an outcome signed by the agent’s machine is shown as confirmed", async () => {
	const { item } = await delivered((sign) => sign());
	assert.deepEqual(
		[item.state, item.decision.outcome],
		["delivered", "allowed"],
	);
	const changed = await delivered((sign) =>
		sign({ outcome: "denied", cause: "changed" }),
	);
	assert.equal(changed.item.decision.outcome, "changed");
});

test("without it, only the gateway says that it was delivered", async () => {
	const { item } = await delivered(() => {
		throw Problem.of("refused", {
			status: 404,
			code: "NOT_FOUND",
			message: "",
		});
	});
	assert.deepEqual([item.state, item.decision.outcome], ["delivered", null]);
});

test("a confirmation that another key signed, or that is about something else, is called forged", async () => {
	const other = await crypto.subtle.generateKey({ name: "Ed25519" }, true, [
		"sign",
		"verify",
	]);
	for (const serve of [
		(sign) => sign({}, other),
		(sign) => sign({ decisions: ["0".repeat(64)] }),
		(sign) => sign({ enforcerId: "prod" }),
		(sign) => sign({ tenantId: "other" }),
		() => "{}",
	]) {
		const { item } = await delivered(serve);
		assert.equal(item.decision.outcome, "forged");
	}
});

test("while the gateway does not answer, it is not called delivered", async () => {
	const { item } = await delivered(() => {
		throw Problem.of("unreachable", { cause: "" });
	});
	assert.equal(item.state, "decided");
});

test("a gateway that withholds a confirmation later does not undo it", async () => {
	let isServed = true;
	const { model } = await delivered((sign) => {
		if (isServed) return sign();
		throw Problem.of("refused", {
			status: 404,
			code: "NOT_FOUND",
			message: "",
		});
	});
	isServed = false;
	model.settle({ ...model.find(REQUEST), state: "decided" });
	await model.ask(REQUEST);
	assert.equal(model.find(REQUEST).decision.outcome, "allowed");
});
