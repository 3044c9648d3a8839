// The examples, with scripted models.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { FakeApprover } from "@countersign/client/testing";
import * as aiSdkExample from "../../examples/ai-sdk.mjs";
import * as agentsExample from "../../examples/openai-agents.mjs";
import { directory } from "../support.mjs";
import { scripted as scriptedAiSdk } from "./ai_sdk.mjs";
import { scripted as scriptedAgents } from "./openai_agents.mjs";

const CALLS = [{ id: "c1", name: "transfer", args: { iban: "X", amount: 5 } }];
const SENT = [{ iban: "X", amount: 5 }];

test("the AI SDK: approved, then rejected", async () => {
	const { answer, sent } = aiSdkExample;
	const approver = await FakeApprover.create();
	approver.when({}).approve();
	const { client } = approver;
	assert.equal(await answer(client, scriptedAiSdk(CALLS), "go"), "done");
	assert.deepEqual(sent, SENT);
	approver.when({}).reject();
	await answer(client, scriptedAiSdk(CALLS), "go");
	assert.deepEqual(sent, SENT);
	assert.deepEqual(approver.asked[1].payload.order, ["amount", "iban"]);
});

test("the OpenAI Agents SDK: suspended, kept, and resumed", async (t) => {
	const { agentOf, goOn, keptRun, sent } = agentsExample;
	const file = join(await directory(t), "run.json");
	const approver = await FakeApprover.create();
	approver.when({}).wait();
	const first = agentOf(approver.client, scriptedAgents(CALLS));
	assert.equal(await goOn(first, "go", file), undefined);
	assert.equal(approver.asked.length, 1);
	assert.deepEqual(sent, []);
	await approver.asked[0].approve();
	const second = agentOf(await approver.newClient(), scriptedAgents([]));
	const state = await keptRun(second, file);
	assert.equal(await goOn(second, state, file), "done");
	assert.deepEqual(sent, SENT);
});
