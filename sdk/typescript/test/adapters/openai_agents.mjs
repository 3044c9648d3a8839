// Runs of the OpenAI Agents SDK with a scripted model, for the tests of its adapter.

import { gate, settle } from "@countersign/client/openai-agents";
import {
	Agent,
	handoff,
	Runner,
	RunState,
	run,
	setTracingDisabled,
	tool,
	Usage,
} from "@openai/agents";
import { z } from "zod";

// No network.
setTracingDisabled(true);

/** A model that makes the calls in its first turn, and says "done" in the next one. */
export function scripted(calls) {
	const requests = [];
	const items = calls.map(functionCall);
	const turn = (request) => {
		requests.push(request);
		const isFirst = requests.length === 1 && items.length > 0;
		const output = isFirst ? items : [saying("done")];
		return { usage: new Usage(), output, responseId: `r${requests.length}` };
	};
	return {
		requests,
		items,
		getResponse: async (request) => turn(request),
		async *getStreamedResponse(request) {
			const { output, responseId: id } = turn(request);
			const usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };
			yield { type: "response_started" };
			yield { type: "response_done", response: { id, usage, output } };
		},
	};
}

function functionCall({ id, name, args }) {
	const text = typeof args === "string" ? args : JSON.stringify(args);
	return {
		type: "function_call",
		name,
		callId: id,
		status: "completed",
		arguments: text,
	};
}

function saying(text) {
	return {
		type: "message",
		role: "assistant",
		status: "completed",
		content: [{ type: "output_text", text }],
	};
}

/** The text that the model was told for each call. */
function toldBy({ requests }) {
	const { input } = requests.at(-1);
	const results = input.filter(({ type }) => type === "function_call_result");
	return Object.fromEntries(
		results.map(({ callId, output }) => [callId, output.text ?? output]),
	);
}

const ENTRIES = {
	run: (agent, input, options) => run(agent, input, options),
	"run, streamed": async (agent, input, options) => {
		const result = await run(agent, input, { ...options, stream: true });
		await result.completed;
		return result;
	},
	Runner: (agent, input, options) =>
		new Runner({ tracingDisabled: true }).run(agent, input, options),
};

/** The tool `pay`, which records its runs. `members` replace some of its own. */
export function payTool(ran, { approvalHook, schema, ...members } = {}) {
	return tool({
		name: "pay",
		description: "Pays",
		parameters: schema ?? z.object({ amount: z.number() }),
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
		name: "search",
		description: "Searches",
		parameters: z.object({ query: z.string() }),
		execute: async ({ query }) => ({ found: query }),
	});
	return [gate(payTool(ran, pay), client, options), search];
}

function nest(agent, nesting) {
	if (nesting === "handoff") {
		const id = "outer";
		const model = scripted([{ id, name: "transfer_to_payer", args: {} }]);
		return new Agent({ name: "desk", model, handoffs: [handoff(agent)] });
	}
	const delegate = agent.asTool({
		toolName: "delegate",
		toolDescription: "Delegates",
	});
	const args = { input: "go" };
	const model = scripted([{ id: "outer", name: "delegate", args }]);
	return new Agent({ name: "desk", model, tools: [delegate] });
}

export const openaiAgents = {
	name: "openai-agents",
	gate: (client, options) => gate(payTool([]), client, options),
	gateAgain: (client) => gate(gate(payTool([]), client), client),
	gateWithout: (client) => gate({ type: "hosted_tool", name: "pay" }, client),
	entries: Object.keys(ENTRIES),
	nestings: ["handoff", "agent as a tool"],
	/** Refusals that do not exist here, and why. */
	gaps: {
		16: "a tool is gated, not its name, and of two tools with one name the framework runs the last",
	},

	/** One run. `told` has the text for each call, `error` the error that ended the run. */
	async run(setup) {
		const { calls, entry = "run", signal, nesting, toolMs } = setup;
		const model = scripted(calls);
		setup.onItems?.(model.items);
		const pay = { ...setup.pay, ...(toolMs && { timeoutMs: toolMs }) };
		const tools = setup.tools ?? toolsOf({ ...setup, pay });
		const inner = new Agent({ name: "payer", model, tools });
		const agent = nesting ? nest(inner, nesting) : inner;
		try {
			await ENTRIES[entry](agent, "go", signal ? { signal } : {});
			return { told: toldBy(model) };
		} catch (error) {
			return { told: {}, error };
		}
	},

	/** Adds a tool of a gated name afterwards. */
	replaceLater({ client, ran }) {
		const gated = gate(payTool(ran), client, { timeout: "5s" });
		return { tools: [gated, payTool(ran)] };
	},

	/** Starts a durable run. Returns the text to keep while it is suspended. */
	async suspend(setup) {
		const result = await run(agentOf(setup, setup.calls), "go");
		return result.state.toString();
	},

	/** Goes on with a durable run. Null while nobody has decided. */
	async resume({ stored, wait = "0s", isForced, signal, ...setup }) {
		const agent = agentOf(setup, []);
		const state = await RunState.fromString(agent, stored);
		if (isForced)
			for (const item of state.getInterruptions()) state.approve(item);
		else if (!(await settle(state, { wait }))) return null;
		await run(agent, state, signal ? { signal } : {});
		return { told: toldBy(agent.model) };
	},

	/** Settles, and runs nothing. True if no call of a gated tool is to be answered. */
	async settle({ stored, settling, ...setup }) {
		const state = await RunState.fromString(agentOf(setup, []), stored);
		return settle(state, settling);
	},

	/** The stored text with another amount. */
	edit: (stored, from, to) =>
		stored.replaceAll(`\\"amount\\":${from}`, `\\"amount\\":${to}`),
};

function agentOf(setup, calls) {
	const tools = toolsOf({
		...setup,
		options: { durable: true, ...setup.options },
	});
	return new Agent({ name: "payer", model: scripted(calls), tools });
}
