// Spans for OpenTelemetry, if the program has its API. They say which request, which tool and who
// decided; never arguments, reasons or keys.

import { Approved } from "./approved.js";
import { visibleText } from "./core/visible.js";
import { Denied } from "./errors.js";

/** Of the API, as far as it is used here. */
interface Span {
	setAttribute(name: string, value: string): unknown;
	end(): void;
}
interface Tracer {
	startSpan(name: string): Span;
}

// A variable, so that neither the compiler nor a bundler needs the package.
const API: string = "@opentelemetry/api";
let loading: Promise<Tracer | undefined> | undefined;

async function loadTracer(): Promise<Tracer | undefined> {
	try {
		const { trace } = await import(API);
		return trace.getTracer("@countersign/client");
	} catch {
		// It is optional, and an approval does not depend on it.
		return undefined;
	}
}

export class SpanRecorder {
	readonly #tracer: Tracer | undefined;

	private constructor(tracer: Tracer | undefined) {
		this.#tracer = tracer;
	}

	static async load(): Promise<SpanRecorder> {
		loading ??= loadTracer();
		return new SpanRecorder(await loading);
	}

	/** Runs an action in a span that ends with its outcome. */
	async record<T>(
		name: "ask" | "submit" | "outcome",
		tool: string | undefined,
		action: () => Promise<T>,
	): Promise<T> {
		const span = this.#tracer?.startSpan(`countersign.${name}`);
		if (span === undefined) return action();
		const set = (attribute: string, value: unknown) => {
			if (typeof value !== "string") return;
			span.setAttribute(`countersign.${attribute}`, visibleText(value));
		};
		const end = (result: unknown, outcome: string) => {
			set("tool", tool);
			set("request_id", Object(result).requestId);
			if (result instanceof Approved) set("approver", result.approver);
			set("outcome", result instanceof Denied ? result.cause : outcome);
			span.end();
		};
		try {
			const result = await action();
			const known = result instanceof Approved ? "approved" : "waiting";
			end(result, known);
			return result;
		} catch (error) {
			end(error, "error");
			throw error;
		}
	}
}
