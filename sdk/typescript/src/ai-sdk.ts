// For the AI SDK (`ai` 7): tools that run only if a person has approved exactly this call.

import type { AdapterOptions, SettleOptions } from "./adapter.js";
import { ToolGate, withMembers } from "./adapter.js";
import { Approved } from "./approved.js";
import type { Client } from "./client.js";
import { CountersignError, Denied } from "./errors.js";

export type { AdapterOptions, SettleOptions };

type CallOptions = { toolCallId: string; abortSignal?: AbortSignal };
type Execute = (input: object, options: CallOptions) => unknown;

interface MessagePart {
	type: string;
	approvalId?: string;
	toolCallId?: string;
	toolName?: string;
	input?: unknown;
}

/** A message for the model that answers its requests for approval. */
export interface ApprovalMessage {
	role: "tool";
	content: {
		type: typeof ANSWER;
		approvalId: string;
		approved: boolean;
		reason?: string;
	}[];
}

const ANSWER = "tool-approval-response";
const SUSPENDING = { needsApproval: true };
const GATES = new WeakMap<object, ToolGate>();

/** The same tools, gated. The set is frozen, so that no tool is put in the place of a gated one. */
export function gate<T extends object>(
	tools: T,
	client: Client,
	options: AdapterOptions = {},
): T {
	const gated = Object.entries(tools).map(([name, tool]) => {
		if (typeof tool?.execute !== "function")
			throw new CountersignError(`gate: ${name} has no function to execute`);
		if (GATES.has(tool.execute))
			throw new CountersignError(`gate: ${name} is gated already`);
		const toolGate = new ToolGate("ai-sdk", client, options);
		const execute = gatedExecute(name, tool, toolGate);
		GATES.set(execute, toolGate);
		const members = { execute, ...(toolGate.isDurable && SUSPENDING) };
		return [name, withMembers(tool, members)];
	});
	return Object.freeze(Object.fromEntries(gated));
}

function gatedExecute(
	name: string,
	tool: { execute: Execute },
	toolGate: ToolGate,
): Execute {
	const run = async (input: object, options: CallOptions) => {
		const { toolCallId: callId, abortSignal: signal } = options;
		const call = { name, args: input, callId, signal };
		const ran = await toolGate.run(call, (args) => tool.execute(args, options));
		if ("result" in ran) return ran.result;
		// The framework shows the model the text of an error.
		throw new Error(ran.denial.forModel(), { cause: ran.denial });
	};
	// The framework has to know before the call whether there are preliminary results.
	const kind = Object.prototype.toString.call(tool.execute);
	if (kind === "[object AsyncGeneratorFunction]")
		return async function* execute(input, options) {
			yield* (await run(input, options)) as AsyncIterable<unknown>;
		};
	return async (input, options) => {
		let result = await run(input, options);
		if (Object(result)[Symbol.asyncIterator] !== undefined)
			for await (const part of result as AsyncIterable<unknown>) result = part;
		return result;
	};
}

/**
 * The decisions about calls for which a run is suspended, as a message to append before the run goes
 * on. Null while one of them is not decided. The first time, a person is asked. Calls of tools that
 * are not gated as durable are left out: those ask when they run.
 */
export async function settle(
	messages: readonly { role: string; content: unknown }[],
	tools: object,
	options: SettleOptions = {},
): Promise<ApprovalMessage | null> {
	const parts = messages.flatMap(({ content }) =>
		Array.isArray(content) ? (content as MessagePart[]) : [],
	);
	const find = (type: string, id: "approvalId" | "toolCallId", of: string) =>
		parts.find((part) => part.type === type && part[id] === of);
	const answers = parts.map(async (request) => {
		const { type, approvalId = "", toolCallId = "" } = request;
		if (type !== "tool-approval-request") return [];
		if (find(ANSWER, "approvalId", approvalId) !== undefined) return [];
		const call = find("tool-call", "toolCallId", toolCallId);
		const name = call?.toolName ?? "";
		const toolGate = GATES.get(Object(Object(tools)[name]).execute);
		if (!toolGate?.isDurable) return [];
		const args = call?.input as object;
		const asked = { name, args, callId: toolCallId };
		const outcome = await toolGate.outcome(asked, options);
		const answer = { type: ANSWER, approvalId, approved: true } as const;
		if (outcome instanceof Approved) return [answer];
		return outcome instanceof Denied
			? [{ ...answer, approved: false, reason: outcome.forModel() }]
			: [null];
	});
	const found = (await Promise.all(answers)).flat();
	const content = found.filter((answer) => answer !== null);
	const isDecided = content.length > 0 && content.length === found.length;
	return isDecided ? { role: "tool", content } : null;
}
