// The types of the adapters, with those of the frameworks, in a strict program.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, realpath, symlink, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { directory } from "../support.mjs";

const run = promisify(execFile);
const here = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const tools = resolve(here, "../../target/sdk-typescript");

const PROGRAM = `
import type { Client } from "@countersign/client";
import { gate, settle } from "@countersign/client/ai-sdk";
import * as agents from "@countersign/client/openai-agents";
import { Agent, run, tool as agentTool } from "@openai/agents";
import { generateText, tool, type LanguageModel, type ModelMessage } from "ai";
import { z } from "zod";

export async function aiSdk(client: Client, model: LanguageModel, messages: ModelMessage[]) {
	const pay = tool({
		inputSchema: z.object({ amount: z.number() }),
		execute: async ({ amount }) => ({ paid: amount }),
	});
	const tools = gate({ pay }, client, { timeout: "24h", durable: true });
	const answer = await settle(messages, tools, { wait: "25s" });
	if (answer !== null) messages.push(answer);
	const result = await generateText({ model, tools, messages });
	for (const { toolName, output } of result.staticToolResults) {
		const name: "pay" = toolName;
		const paid: number = output.paid;
		console.log(name, paid);
	}
	// @ts-expect-error there is no way to wait for ever
	gate({ pay }, client, { timeout: "none" });
	// @ts-expect-error adapters have no conditions
	gate({ pay }, client, { askIf: () => false });
	// @ts-expect-error a client is needed
	gate({ pay });
}

export async function openaiAgents(client: Client) {
	const pay = agentTool({
		description: "Pays",
		name: "pay",
		parameters: z.object({ amount: z.number() }),
		execute: async ({ amount }) => ({ paid: amount }),
	});
	const gated = agents.gate(pay, client, { durable: true });
	const same: typeof pay = gated;
	const agent = new Agent({ name: "clerk", tools: [same] });
	const result = await run(agent, "go");
	const isDecided: boolean = await agents.settle(result.state, { wait: "0s" });
	return isDecided;
}
`;

test("types of the adapters", async (t) => {
	const place = await directory(t);
	const installed = join(place, "package/node_modules/@countersign/client");
	await mkdir(installed, { recursive: true });
	await cp(join(here, "dist"), join(installed, "dist"), { recursive: true });
	await cp(join(here, "package.json"), join(installed, "package.json"));
	const frameworks = await realpath(join(here, "node_modules"));
	await symlink(frameworks, join(place, "node_modules"));
	await writeFile(join(place, "package/program.mts"), PROGRAM);
	const options = {
		compilerOptions: {
			strict: true,
			noEmit: true,
			skipLibCheck: true,
			exactOptionalPropertyTypes: true,
			target: "es2022",
			module: "nodenext",
			types: ["node"],
			typeRoots: [join(tools, "node_modules/@types")],
		},
		files: ["package/program.mts"],
	};
	await writeFile(join(place, "tsconfig.json"), JSON.stringify(options));
	const compiler = join(tools, "node_modules/typescript/bin/tsc");
	await run(process.execPath, [compiler, "--project", place]).catch((error) =>
		assert.fail(error.stdout),
	);
});
