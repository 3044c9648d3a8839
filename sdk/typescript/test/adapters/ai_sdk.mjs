// Runs of the AI SDK with a scripted model, for the tests of its adapter.

import { gate, settle } from "@countersign/client/ai-sdk";
import { generateText, isStepCount, streamText, ToolLoopAgent, tool } from "ai";
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";
import { z } from "zod";

const USAGE = {
	inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
	outputTokens: { total: 0, text: 0, reasoning: 0 },
};
const STOP = { unified: "stop", raw: "stop" };
const CALLS = { unified: "tool-calls", raw: "tool-calls" };
const stopWhen = isStepCount(5);

/** A model that makes the calls in its first turn, and says "done" in the next one. */
export function scripted(calls) {
	const turn = (prompt) =>
		prompt.some(({ role }) => role === "tool" || role === "assistant")
			? { content: [{ type: "text", text: "done" }], finishReason: STOP }
			: { content: calls.map(toolCall), finishReason: CALLS };
	return new MockLanguageModelV4({
		doGenerate: async ({ prompt }) => ({
			...turn(prompt),
			usage: USAGE,
			warnings: [],
		}),
		doStream: async ({ prompt }) => ({
			stream: simulateReadableStream({ chunks: chunks(turn(prompt)) }),
		}),
	});
}

function toolCall({ id, name, args }) {
	const input = typeof args === "string" ? args : JSON.stringify(args);
	return { type: "tool-call", toolCallId: id, toolName: name, input };
}

function chunks({ content: [first, ...others], finishReason }) {
	const content =
		first.type === "text"
			? [
					{ type: "text-start", id: "1" },
					{ type: "text-delta", id: "1", delta: first.text },
					{ type: "text-end", id: "1" },
				]
			: [first, ...others];
	return [
		{ type: "stream-start", warnings: [] },
		...content,
		{ type: "finish", finishReason, usage: USAGE },
	];
}

/** The text that the model was told for each call. */
function toldBy(model) {
	const { prompt } = [...model.doGenerateCalls, ...model.doStreamCalls].at(-1);
	const results = prompt
		.filter(({ role }) => role === "tool")
		.flatMap(({ content }) => content)
		.filter(({ type }) => type === "tool-result");
	return Object.fromEntries(
		results.map(({ toolCallId, output }) => {
			const { type, value, reason } = output;
			const text = type === "execution-denied" ? reason : value;
			return [
				toolCallId,
				typeof text === "string" ? text : JSON.stringify(text),
			];
		}),
	);
}

const ENTRIES = {
	generateText: (settings) => generateText({ ...settings, stopWhen }),
	streamText: async (settings) => {
		const result = streamText({ ...settings, stopWhen, onError: () => {} });
		await result.consumeStream();
		return result;
	},
	"ToolLoopAgent.generate": ({ model, tools, toolApproval, ...call }) =>
		new ToolLoopAgent({ model, tools, toolApproval, stopWhen }).generate(call),
	"ToolLoopAgent.stream": async ({ model, tools, toolApproval, ...call }) => {
		const settings = { model, tools, toolApproval, stopWhen };
		const result = await new ToolLoopAgent(settings).stream(call);
		await result.consumeStream();
		return result;
	},
};

/** The tool `pay`, which records its runs. `members` replace some of its own. */
export function payTool(ran, { approvalHook, schema, ...members } = {}) {
	return tool({
		description: "Pays",
		inputSchema: schema ?? z.object({ amount: z.number() }),
		execute: async (args) => {
			ran.push(args);
			return { paid: args.amount };
		},
		...(approvalHook && { needsApproval: approvalHook }),
		...members,
	});
}

function toolsOf({ client, options, ran, pay }) {
	const search = tool({
		inputSchema: z.object({ query: z.string() }),
		execute: async ({ query }) => ({ found: query }),
	});
	return { ...gate({ pay: payTool(ran, pay) }, client, options), search };
}

/** Inside of a tool of another agent. */
function nestedTools(inner) {
	return {
		delegate: tool({
			inputSchema: z.object({}),
			execute: async (_, { abortSignal }) => {
				const agent = new ToolLoopAgent({ ...inner, stopWhen });
				return (await agent.generate({ prompt: "go", abortSignal })).text;
			},
		}),
	};
}

export const aiSdk = {
	name: "ai-sdk",
	gate: (client, options) => gate({ pay: payTool([]) }, client, options),
	gateAgain: (client) => gate(gate({ pay: payTool([]) }, client), client),
	gateWithout: (client) =>
		gate({ pay: payTool([], { execute: undefined }) }, client),
	entries: Object.keys(ENTRIES),
	nestings: ["agent in a tool"],
	/** Refusals that do not exist here, and why. */
	gaps: {},

	/** One run. `told` has the text for each call, `error` the error that ended the run. */
	async run(setup) {
		const { calls, entry = "generateText", signal, nesting, toolMs } = setup;
		const model = scripted(calls);
		const tools = setup.tools ?? toolsOf(setup);
		const { approvalHook } = setup.pay ?? {};
		let settings = { model, tools };
		if (approvalHook) settings.toolApproval = approvalHook;
		if (nesting)
			settings = {
				model: scripted([{ id: "outer", name: "delegate", args: {} }]),
				tools: nestedTools({ model, tools }),
			};
		try {
			await ENTRIES[entry]({
				...settings,
				prompt: "go",
				...(signal && { abortSignal: signal }),
				...(toolMs && { timeout: { toolMs } }),
			});
			return { told: toldBy(model) };
		} catch (error) {
			return { told: {}, error };
		}
	},

	/** Replaces a gated tool afterwards. */
	replaceLater({ client, ran }) {
		const tools = gate({ pay: payTool(ran) }, client, { timeout: "5s" });
		try {
			tools.pay = payTool(ran);
		} catch (error) {
			if (!(error instanceof TypeError)) throw error;
		}
		return { tools };
	},

	/** Starts a durable run. Returns the text to keep while it is suspended. */
	async suspend(setup) {
		const tools = toolsOf({ ...setup, options: durable(setup) });
		const prompt = [{ role: "user", content: "go" }];
		const model = scripted(setup.calls);
		const result = await generateText({ model, tools, prompt, stopWhen });
		return JSON.stringify([...prompt, ...result.response.messages]);
	},

	/** Goes on with a durable run. Null while nobody has decided. */
	async resume({ stored, wait = "0s", isForced, signal, ...setup }) {
		const tools = toolsOf({ ...setup, options: durable(setup) });
		const messages = JSON.parse(stored);
		const answer = isForced
			? forcedAnswer(messages)
			: await settle(messages, tools, { wait });
		if (answer === null) return null;
		const model = scripted([]);
		const prompt = [...messages, answer];
		const limits = signal ? { abortSignal: signal } : {};
		await generateText({ model, tools, prompt, stopWhen, ...limits });
		return { told: toldBy(model) };
	},

	/** Settles, and runs nothing. True if no call of a gated tool is to be answered. */
	async settle({ stored, settling, ...setup }) {
		const tools = toolsOf({ ...setup, options: durable(setup) });
		return (await settle(JSON.parse(stored), tools, settling)) === null;
	},

	/** The stored text with another amount. */
	edit: (stored, from, to) =>
		stored.replaceAll(`"amount":${from}`, `"amount":${to}`),
};

function durable({ options }) {
	return { durable: true, ...options };
}

/** An answer that nobody signed. */
function forcedAnswer(messages) {
	const requests = messages
		.flatMap(({ content }) => (Array.isArray(content) ? content : []))
		.filter(({ type }) => type === "tool-approval-request");
	const type = "tool-approval-response";
	return {
		role: "tool",
		content: requests.map(({ approvalId }) => ({
			type,
			approvalId,
			approved: true,
		})),
	};
}
