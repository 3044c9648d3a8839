// For the OpenAI Agents SDK (`@openai/agents` 0.20): tools that run only if a person has approved
// exactly this call.

import type { AdapterOptions, SettleOptions } from "./adapter.js";
import { ToolGate, withMembers } from "./adapter.js";
import { Approved } from "./approved.js";
import type { Client } from "./client.js";
import { canonical } from "./core/canonical.js";
import type { JsonObject } from "./core/types.js";
import { CountersignError, Denied } from "./errors.js";

export type { AdapterOptions, SettleOptions };

type CallItem = { name: string; callId: string; namespace?: string };
type CallDetails = { toolCall?: CallItem; signal?: AbortSignal };
type Invoke = (
	context: unknown,
	input: string,
	details?: CallDetails,
) => Promise<unknown>;

/** A call for which a run is suspended, as far as it is read here. */
interface ApprovalItem {
	rawItem: object;
	agent: { tools: readonly object[] };
	arguments?: string | undefined;
}

/** The state of a run, as far as it is used here. */
interface RunState<I> {
	getInterruptions(): I[];
	approve(item: I): void;
	reject(item: I, options: { message: string }): void;
}

const FRAMEWORK = "openai-agents";
const GATES = new WeakMap<object, ToolGate>();

/** The same tool, gated. The model reads why a call was denied as the tool's output. */
export function gate<T extends { name: string }>(
	tool: T,
	client: Client,
	options: AdapterOptions = {},
): T {
	const { name } = tool;
	const { invoke: inner } = tool as T & { invoke?: Invoke };
	if (typeof inner !== "function")
		throw new CountersignError(`gate: ${name} is no function tool`);
	if (GATES.has(inner))
		throw new CountersignError(`gate: ${name} is gated already`);
	const toolGate = new ToolGate(FRAMEWORK, client, options);
	const invoke: Invoke = async (context, input, details) => {
		const ran = await toolGate.run(
			{
				name: qualifiedName(name, details?.toolCall?.namespace),
				args: readArguments(input),
				callId: details?.toolCall?.callId ?? "",
				signal: details?.signal,
			},
			// The text that was approved, not the one that was given.
			(args) => inner(context, canonical(args as JsonObject), details),
		);
		return "result" in ran ? ran.result : ran.denial.forModel();
	};
	GATES.set(invoke, toolGate);
	const suspending = { needsApproval: async () => true };
	const members = toolGate.isDurable ? { invoke, ...suspending } : { invoke };
	return withMembers(tool, members);
}

/** Tools of one name in several namespaces are different tools. */
function qualifiedName(name: string, namespace: string | undefined): string {
	return namespace === undefined ? name : `${namespace}.${name}`;
}

/** A text that is not JSON stays as it is, and is refused: it is no object. */
function readArguments(input: unknown): object {
	try {
		return JSON.parse(String(input));
	} catch {
		return input as object;
	}
}

/**
 * Approves or rejects the calls for which a run is suspended, as people decided. The first time, a
 * person is asked. True if none of them waits any more. Calls of tools that are not gated as durable
 * are left alone: those ask when they run. The tool verifies the decision again before it runs.
 */
export async function settle<I extends ApprovalItem>(
	state: RunState<I>,
	options: SettleOptions = {},
): Promise<boolean> {
	const items = state.getInterruptions().map(async (item) => {
		const { name, namespace, callId } = item.rawItem as CallItem;
		const toolGate = (item.agent.tools as { name: string; invoke: Invoke }[])
			.filter((tool) => tool.name === name)
			.map(({ invoke }) => GATES.get(invoke))
			.find((found) => found?.isDurable);
		if (toolGate === undefined) return true;
		const args = readArguments(item.arguments);
		const outcome = await toolGate.outcome(
			{ name: qualifiedName(name, namespace), args, callId },
			options,
		);
		if (outcome instanceof Approved) state.approve(item);
		else if (outcome instanceof Denied)
			state.reject(item, { message: outcome.forModel() });
		else return false;
		return true;
	});
	return (await Promise.all(items)).every(Boolean);
}
