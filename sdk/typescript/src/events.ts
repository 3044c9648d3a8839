// Events for logs: which request, which tool, who decided. Never arguments or reasons.

import { Approved } from "./approved.js";
import type { Subject } from "./call.js";
import { visibleText } from "./core/visible.js";
import type { Denied } from "./errors.js";
import type { Exchange } from "./exchange.js";
import type { ClientEvent } from "./options.js";

export class EventLog {
	readonly #listener: ((event: ClientEvent) => void) | undefined;

	constructor(listener: ((event: ClientEvent) => void) | undefined) {
		this.#listener = listener;
	}

	tell(event: ClientEvent): void {
		try {
			this.#listener?.(event);
		} catch {
			// An approval does not depend on logs.
		}
	}

	asked(exchange: Exchange): void {
		this.tell({ event: "asked", ...about(exchange) });
	}

	/** Without an exchange, the request was denied before there was one. */
	ended(
		outcome: Approved | Denied,
		exchange: Exchange | undefined,
		subject?: Pick<Subject, "tool">,
	): void {
		const shown = exchange === undefined ? toolOf(subject) : about(exchange);
		if (outcome instanceof Approved)
			this.tell({ event: "decided", ...shown, approver: outcome.approver });
		else
			this.tell({
				event: "denied",
				...shown,
				cause: outcome.cause,
				detail: outcome.message,
			});
	}
}

function toolOf(subject: Pick<Subject, "tool"> | undefined): { tool?: string } {
	return subject?.tool === undefined ? {} : { tool: visibleText(subject.tool) };
}

function about(exchange: Exchange): { requestId: string; tool?: string } {
	const { kind, tool } = exchange.own.artifact.payload;
	const named = kind === "tool" && typeof tool === "string";
	const shown = named ? { tool: visibleText(tool) } : {};
	return { requestId: exchange.requestId, ...shown };
}
