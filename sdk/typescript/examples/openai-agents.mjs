// An agent of the OpenAI Agents SDK that is suspended while a person decides about a transfer, and
// resumed by another run of this program.
//
//   npm install @openai/agents zod @countersign/client
//   node openai-agents.mjs "Send 500 euros to DE02 1203 0000 0000 2020 51"
//   node openai-agents.mjs        goes on, once the person has decided

import { readFile, rm, writeFile } from "node:fs/promises";
import { argv } from "node:process";
import { pathToFileURL } from "node:url";
import { Client } from "@countersign/client";
import { gate, settle } from "@countersign/client/openai-agents";
import { Agent, RunState, run, tool } from "@openai/agents";
import { z } from "zod";

export const sent = [];

const transfer = tool({
	name: "transfer",
	description: "Sends money",
	parameters: z.object({ iban: z.string(), amount: z.number() }),
	execute: async ({ iban, amount }) => {
		sent.push({ iban, amount });
		return `sent ${amount} to ${iban}`;
	},
});

export function agentOf(client, model) {
	const options = { timeout: "24h", durable: true };
	const tools = [gate(transfer, client, options)];
	return new Agent({ name: "clerk", tools, ...(model && { model }) });
}

/** Runs until the end or until a person has to decide. Returns the answer, if there is one. */
export async function goOn(agent, input, file) {
	const result = await run(agent, input);
	if (result.interruptions.length === 0) {
		await rm(file, { force: true });
		return result.finalOutput;
	}
	// Asks. The state has the arguments in plain.
	await settle(result.state);
	await writeFile(file, result.state.toString(), { mode: 0o600 });
	return undefined;
}

/** The kept run, if everybody has decided. */
export async function keptRun(agent, file) {
	const state = await RunState.fromString(agent, await readFile(file, "utf8"));
	return (await settle(state, { wait: "25s" })) ? state : undefined;
}

if (import.meta.url === pathToFileURL(argv[1]).href) {
	const client = await Client.fromProfile();
	const agent = agentOf(client);
	const file = "run.json";
	const input = argv[2] ?? (await keptRun(agent, file));
	const text = input && (await goOn(agent, input, file));
	console.log(text ?? "A person has to decide. Run this again without a text.");
	client.close();
}
