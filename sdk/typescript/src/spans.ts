// Spans for OpenTelemetry, if the program has its API. They say which request, which tool and who
// decided; never arguments, reasons or keys.

import { Approved } from "./approved.js";
import { visibleText } from "./core/visible.js";
import { Denied, errorName } from "./errors.js";

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
const MAX_CHARS = 200;
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

	/** Runs an action in a span that says how it ended: `ok`, `cancelled`, a cause or an error's class. */
	async record<T>(
		name: "ask" | "submit" | "outcome" | "use" | "withdraw",
		about: { tool: string | undefined; requestId?: string },
		action: () => Promise<T>,
		signal?: AbortSignal,
	): Promise<T> {
		const span = this.#tracer?.startSpan(`countersign.${name}`);
		if (span === undefined) return action();
		const note = (attribute: string, value: unknown) => {
			if (typeof value !== "string") return;
			const shown = visibleText(value).slice(0, MAX_CHARS);
			span.setAttribute(`countersign.${attribute}`, shown);
		};
		const end = (result: unknown, word: string) => {
			note("tool", about.tool);
			note("request_id", about.requestId ?? Object(result).requestId);
			if (result instanceof Approved) note("approver", result.approver);
			note("end", result instanceof Denied ? result.cause : word);
			span.end();
		};
		try {
			const result = await action();
			end(result, "ok");
			return result;
		} catch (error) {
			end(error, signal?.aborted ? "cancelled" : errorName(error));
			throw error;
		}
	}
}
