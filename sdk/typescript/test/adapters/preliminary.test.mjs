// Tools of the AI SDK that give preliminary results.

import assert from "node:assert/strict";
import { test } from "node:test";
import { gate } from "@countersign/client/ai-sdk";
import { FakeApprover } from "@countersign/client/testing";
import { streamText, tool } from "ai";
import { z } from "zod";
import { scripted } from "./ai_sdk.mjs";

const CALLS = [{ id: "c1", name: "pay", args: { amount: 2 } }];

async function* counting({ amount }) {
	for (let part = 1; part <= amount; part += 1) yield { part };
}

/** The outputs that a run shows, the preliminary ones first, and its error. */
async function outputsOf(execute, decide) {
	const approver = await FakeApprover.create();
	decide(approver.when({}));
	const inputSchema = z.object({ amount: z.number() });
	const tools = gate({ pay: tool({ inputSchema, execute }) }, approver.client);
	const result = streamText({ model: scripted(CALLS), tools, prompt: "go" });
	const [outputs, errors] = [[], []];
	for await (const part of result.fullStream) {
		if (part.type === "tool-result") outputs.push(part.output);
		if (part.type === "tool-error") errors.push(part.error.message);
	}
	return { outputs, errors };
}

test("a generator keeps its preliminary results", async () => {
	const shown = await outputsOf(counting, (rule) => rule.approve());
	assert.deepEqual(shown.outputs, [{ part: 1 }, { part: 2 }, { part: 2 }]);
	assert.deepEqual(shown.errors, []);
});

test("a function that returns a generator keeps its last result", async () => {
	const execute = (args) => counting(args);
	const shown = await outputsOf(execute, (rule) => rule.approve());
	assert.deepEqual(shown.outputs, [{ part: 2 }]);
});

for (const [kind, wrap] of [
	["generator", (ran) => counted(ran)],
	["function that returns a generator", (ran) => (args) => counted(ran)(args)],
])
	test(`a ${kind} that is denied does not start`, async () => {
		const ran = [];
		const shown = await outputsOf(wrap(ran), (rule) => rule.reject("no"));
		assert.deepEqual(ran, []);
		assert.deepEqual(shown.outputs, []);
		assert.match(shown.errors[0], /"no"\. Nothing was executed/);
	});

function counted(ran) {
	return async function* execute(args) {
		ran.push(args);
		yield* counting(args);
	};
}
