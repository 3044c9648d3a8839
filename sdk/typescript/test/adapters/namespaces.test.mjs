// The OpenAI Agents SDK has namespaces: tools of one name that are different tools.

import assert from "node:assert/strict";
import { test } from "node:test";
import { gate, settle } from "@countersign/client/openai-agents";
import { FakeApprover } from "@countersign/client/testing";
import { Agent, RunState, run, toolNamespace } from "@openai/agents";
import { payTool, scripted } from "./openai_agents.mjs";

const CALL = { id: "c1", name: "pay", args: { amount: 5 } };

function agentOf(client, ran, model) {
	const spaces = ["bank", "shop"].flatMap((name) => {
		const record = { push: () => ran.push(name) };
		const tools = [gate(payTool(record), client, { durable: true })];
		return toolNamespace({ name, description: name, tools });
	});
	return new Agent({ name: "payer", model, tools: spaces });
}

/** A suspended run that calls `bank.pay`, which a person has approved. */
async function approved() {
	const approver = await FakeApprover.create();
	approver.when({}).wait();
	const ran = [];
	const model = scripted([CALL]);
	model.items[0].namespace = "bank";
	const result = await run(agentOf(approver.client, ran, model), "go");
	assert.equal(await settle(result.state), false);
	assert.equal(approver.asked[0].tool, "bank.pay");
	await approver.asked[0].approve();
	const stored = result.state.toString();
	const resume = async (text, act) => {
		const agent = agentOf(await approver.newClient(), ran, scripted([]));
		const state = await RunState.fromString(agent, text);
		await act(state);
		await run(agent, state);
	};
	return { ran, stored, resume };
}

test("the namespace is a part of the name", async () => {
	const { ran, stored, resume } = await approved();
	await resume(stored, async (state) => assert.ok(await settle(state)));
	assert.deepEqual(ran, ["bank"]);
});

test("an approval counts for no other namespace", async () => {
	const { ran, stored, resume } = await approved();
	const edited = stored.replaceAll('"bank', '"shop');
	assert.notEqual(edited, stored);
	await resume(edited, async (state) => {
		for (const item of state.getInterruptions()) state.approve(item);
	}).catch(() => {});
	assert.deepEqual(ran, []);
});
