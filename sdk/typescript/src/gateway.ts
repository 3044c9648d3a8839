// Calls to the gateway: any node of a list, attempts that are bounded in time, and retries where
// they can do no harm. The gateway is believed nothing that is not signed.

import { type Deadline, sleep } from "./clock.js";
import { fromUtf8 } from "./core/bytes.js";
import { parse, Reader } from "./core/canonical.js";
import type { Node } from "./core/json.js";
import { Problem } from "./core/problem.js";
import { visibleText } from "./core/visible.js";

/** For one attempt, unless a call waits for something. */
const ATTEMPT_TIMEOUT_MS = 15_000;
const FIRST_RETRY_INTERVAL_MS = 100;
const MAX_RETRY_INTERVAL_MS = 5_000;

export interface TransportRequest {
	method: "GET" | "POST" | "PUT";
	/** With its query. */
	path: string;
	body: string | undefined;
	/** Ends the attempt. */
	signal: AbortSignal;
}

export interface TransportAnswer {
	status: number;
	/** In lower case. */
	headers: ReadonlyMap<string, string>;
	body: Bytes;
}

/** One attempt to reach the gateway. Anything but an answer is a `TransportError`. */
export interface Transport {
	readonly nodes: number;
	send(request: TransportRequest): Promise<TransportAnswer>;
	/** The next attempt goes to another node. */
	leaveNode(): void;
	close(): void;
}

export class TransportError extends Error {
	/** Whether trying again is useless, as with a certificate that is not trusted. */
	readonly isFinal: boolean;

	constructor(detail: string, isFinal = false) {
		super(visibleText(detail));
		this.isFinal = isFinal;
	}
}

/** The gateway did not answer in time, or not sensibly, or says that it cannot now. */
export class GatewayAway extends Error {
	/** Whether trying again is useless. */
	readonly isFinal: boolean;

	constructor(detail: string, isFinal = false) {
		super(detail);
		this.isFinal = isFinal;
	}
}

/** It did not answer in time. The caller's own time may have been too short for it. */
export class LateAnswer extends GatewayAway {
	constructor() {
		super("the gateway did not answer in time");
	}
}

export class GatewayRefusal extends Error {
	readonly status: number;
	/** Without the protocol's prefix, such as `NOT_FOUND`. */
	readonly code: string;

	constructor(status: number, code: string, message: string) {
		super(`the gateway refuses: ${message || `status ${status}`}`);
		this.status = status;
		this.code = code;
	}
}

/** One call. Its effect must be the same however often it arrives. */
export interface GatewayCall {
	method?: "GET" | "POST" | "PUT";
	path: string;
	body?: string;
	/** How long the gateway may take to answer, beyond an attempt's own time. */
	waitMs?: number;
	/** Statuses that are no refusal. */
	expect: number[];
}

export interface GatewayAnswer {
	status: number;
	headers: ReadonlyMap<string, string>;
	/** The body as strict JSON. */
	json(): Node;
}

/** A path with one segment for each part, whatever characters they have. */
export function path(...parts: string[]): string {
	return parts.map((part) => `/${encodeURIComponent(part)}`).join("");
}

export class Gateway {
	readonly #transport: Transport;
	readonly #onAway: (detail: string) => void;

	constructor(transport: Transport, onAway: (detail: string) => void) {
		this.#transport = transport;
		this.#onAway = onAway;
	}

	close(): void {
		this.#transport.close();
	}

	/** Makes a call, and repeats it until an answer or the deadline. */
	async call(
		call: GatewayCall,
		deadline: Deadline,
		signal?: AbortSignal,
	): Promise<GatewayAnswer> {
		let pause = FIRST_RETRY_INTERVAL_MS;
		for (let tried = 1; ; tried += 1) {
			signal?.throwIfAborted();
			const { answer, away, wait } = await this.#attempt(
				call,
				deadline,
				signal,
			);
			if (answer !== null) return answer;
			signal?.throwIfAborted();
			this.#onAway(away.message);
			this.#transport.leaveNode();
			// Another node may be fine: there is no pause before each was tried once.
			const isUntried = wait === null && tried < this.#transport.nodes;
			const time = wait ?? (isUntried ? 0 : pause * (0.5 + Math.random()));
			if (time >= deadline.left()) throw away;
			await sleep(time, signal);
			if (!isUntried) pause = Math.min(2 * pause, MAX_RETRY_INTERVAL_MS);
		}
	}

	async #attempt(
		call: GatewayCall,
		deadline: Deadline,
		signal: AbortSignal | undefined,
	): Promise<
		| { answer: GatewayAnswer; away: null; wait: null }
		| { answer: null; away: GatewayAway; wait: number | null }
	> {
		const aborter = new AbortController();
		const giveUp = () => aborter.abort();
		const time = Math.min(
			deadline.left(),
			ATTEMPT_TIMEOUT_MS + (call.waitMs ?? 0),
		);
		const timer = setTimeout(giveUp, time);
		signal?.addEventListener("abort", giveUp);
		try {
			const answer = await this.#transport.send({
				method: call.method ?? "GET",
				path: call.path,
				body: call.body,
				signal: aborter.signal,
			});
			if (call.expect.includes(answer.status))
				return { answer: readable(answer), away: null, wait: null };
			const refusal = readRefusal(answer);
			if (![429, 500, 502, 503, 504].includes(answer.status)) throw refusal;
			const away = new GatewayAway(refusal.message);
			return { answer: null, away, wait: retryAfter(answer) };
		} catch (error) {
			if (aborter.signal.aborted)
				return { answer: null, away: new LateAnswer(), wait: null };
			if (!(error instanceof TransportError)) throw error;
			if (error.isFinal) throw new GatewayAway(error.message, true);
			return { answer: null, away: new GatewayAway(error.message), wait: null };
		} finally {
			clearTimeout(timer);
			signal?.removeEventListener("abort", giveUp);
		}
	}
}

function readable(answer: TransportAnswer): GatewayAnswer {
	return {
		status: answer.status,
		headers: answer.headers,
		json: () => {
			const text = fromUtf8(answer.body);
			if (text === null) throw new GatewayAway("an answer that is no text");
			return reading(() => parse("answer", text));
		},
	};
}

/** Answers that make no sense come from no gateway: something stands in between. */
export function reading<T>(read: () => T): T {
	try {
		return read();
	} catch (error) {
		if (!(error instanceof Problem)) throw error;
		throw new GatewayAway(`an answer that makes no sense (${error.code})`);
	}
}

function retryAfter({ headers }: TransportAnswer): number | null {
	const seconds = headers.get("retry-after") ?? "";
	return /^\d{1,6}$/.test(seconds) ? Number(seconds) * 1000 : null;
}

/** An `error` of the gateway, as an Envelope or as plain JSON. Its text may be hostile. */
function readRefusal({ status, body }: TransportAnswer): GatewayRefusal {
	let members: Map<string, Node> = new Map();
	try {
		const { value } = parse("answer", fromUtf8(body) ?? "");
		const inner = value instanceof Map ? value.get("body")?.value : undefined;
		if (value instanceof Map) members = inner instanceof Map ? inner : value;
	} catch (error) {
		// Then the status is all that is known.
		if (!(error instanceof Problem)) throw error;
	}
	const text = (name: string): string => {
		const value = members.get(name)?.value;
		return typeof value === "string" ? visibleText(value).slice(0, 500) : "";
	};
	const code = text("code").replace(/^.*_ERR_/, "");
	return new GatewayRefusal(status, code, text("message"));
}

/** The members of a message that are used. The others are the gateway's word. */
export interface Message {
	msgId: string;
	msgType: string;
	requestId: string;
	body: Node;
}

export function readMessage(node: Node): Message {
	return reading(() => {
		const reader = new Reader("answer", node);
		return {
			msgId: reader.string("msgId"),
			msgType: reader.string("msgType"),
			requestId: reader.id("requestId"),
			body: reader.object("body"),
		};
	});
}
