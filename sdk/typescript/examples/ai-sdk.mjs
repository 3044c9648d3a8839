// An agent of the AI SDK whose transfers wait for a person.
//
//   npm install ai zod @ai-sdk/openai @countersign/client
//   MODEL=gpt-5 node ai-sdk.mjs "Send 500 euros to DE02 1203 0000 0000 2020 51"

import { argv, env } from "node:process";
import { pathToFileURL } from "node:url";
import { Client } from "@countersign/client";
import { gate } from "@countersign/client/ai-sdk";
import { generateText, isStepCount, tool } from "ai";
import { z } from "zod";

export const sent = [];

const transfer = tool({
	description: "Sends money",
	inputSchema: z.object({ iban: z.string(), amount: z.number() }),
	execute: async ({ iban, amount }) => {
		sent.push({ iban, amount });
		return `sent ${amount} to ${iban}`;
	},
});

export async function answer(client, model, prompt) {
	const options = { timeout: "10m", show: ["amount", "iban"] };
	const tools = gate({ transfer }, client, options);
	const result = await generateText({
		model,
		tools,
		prompt,
		stopWhen: isStepCount(5),
	});
	return result.text;
}

if (import.meta.url === pathToFileURL(argv[1]).href) {
	const { openai } = await import("@ai-sdk/openai");
	const client = await Client.fromProfile();
	console.log(await answer(client, openai(env.MODEL), argv[2]));
	client.close();
}
