// Every refusal runs with every adapter. A refusal that a framework cannot have is declared as a gap.

import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeApprover } from "@countersign/client/testing";
import { aiSdk } from "./ai_sdk.mjs";
import { openaiAgents } from "./openai_agents.mjs";

export const ADAPTERS = [aiSdk, openaiAgents];
/** The refusals of this process, by number. */
export const covered = new Set();

/** An approver that says yes to everything, and the runs of the gated tool `pay`. */
export async function scene(adapter, clientOptions = {}) {
	const approver = await FakeApprover.create(clientOptions);
	approver.when({}).approve();
	const ran = [];
	const run = (calls, setup = {}) =>
		adapter.run({
			client: approver.client,
			options: { timeout: "5s", ...setup.options },
			ran,
			calls,
			...without(setup, "options"),
		});
	return { approver, ran, run };
}

function without(setup, name) {
	const { [name]: _, ...rest } = setup;
	return rest;
}

export function pay(amount, id = "c1") {
	return { id, name: "pay", args: { amount } };
}

/** Nothing ran, and the model was told so, or the run ended. */
export function assertDenied({ told, error }, ran, id = "c1") {
	assert.deepEqual(ran, []);
	if (error === undefined) {
		assert.match(
			told[id] ?? "nothing",
			/This call was denied: .*Nothing was executed\. Do not repeat this call/,
		);
	}
}

/** Nothing ran now, and the model was told that it may have run before. */
export function assertUsed({ told }, ran) {
	assert.deepEqual(ran, []);
	assert.match(
		told.c1 ?? "nothing",
		/not executed again: the approval was used before\. It may have been executed then\./,
	);
	assert.doesNotMatch(told.c1, /Nothing was executed|not done/);
}

/** A test for each adapter. Where it is a gap, the gap is shown to be real. */
export function refusal(number, title, body) {
	covered.add(number);
	for (const adapter of ADAPTERS) {
		const name = `${number}. ${adapter.name}: ${title}`;
		const gap = adapter.gaps[number];
		if (gap === undefined) test(name, (t) => body(adapter, t));
		else
			test(`gap: ${name} (${gap})`, async (t) => {
				await assert.rejects(body(adapter, t), { code: "ERR_ASSERTION" });
			});
	}
}
