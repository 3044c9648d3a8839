// A gateway in memory, with the calls that an enforcer makes. It can also lie, as a hostile one can.

import { sleep } from "../clock.js";
import { utf8, uuidv7 } from "../core/bytes.js";
import { spellTime } from "../core/canonical.js";
import {
	type Transport,
	type TransportAnswer,
	TransportError,
	type TransportRequest,
} from "../gateway.js";

interface FakeExchange {
	expiresAt: number;
	state: "pendingApproval" | "decided" | "delivered" | "withdrawn";
	/** The signed body. */
	decision: string | undefined;
	/** Of the message that delivers the decision. */
	msgId: string;
	/** As the enforcer sent it with its acknowledgement. */
	outcome: string | undefined;
	changed: AbortController;
}

/** A submission as the gateway sees it. */
export interface SealedSubmission {
	requestId: string;
	/** The body of the Envelope, as text. */
	body: string;
}

export class FakeGateway {
	readonly #exchanges = new Map<string, FakeExchange>();
	#isDown = false;
	#isSilent = false;
	readonly #withheld = new Set<string>();
	/** @internal */
	lie: "forge" | "replay" | "swapArtifact" | undefined;
	/** @internal */
	statements: string[] = [];
	/** @internal */
	onSubmit: (submission: SealedSubmission) => Promise<void> = async () => {};
	/** @internal Changes a decision on its way. */
	tamper: (requestId: string, decision: string) => Promise<string> = async (
		_,
		decision,
	) => decision;
	/** How often each call was made, such as `"POST /v1/artifacts"`. */
	readonly calls = new Map<string, number>();

	/** It cannot be reached. */
	down(): void {
		this.#isDown = true;
		for (const { changed } of this.#exchanges.values()) changed.abort();
	}

	/** It can be reached, and delivers decisions as they were signed. */
	up(): void {
		this.lie = undefined;
		this.#isDown = false;
		this.#isSilent = false;
		this.#withheld.clear();
		for (const exchange of this.#exchanges.values()) this.#wake(exchange);
	}

	/** It takes requests, and delivers no decision. */
	silent(): void {
		this.#isSilent = true;
	}

	/** The decision about this request is not delivered. */
	withhold(requestId: string): void {
		this.#withheld.add(requestId);
	}

	/** Decisions are signed with a key that is not the device's. */
	forge(): void {
		this.lie = "forge";
	}

	/** An earlier approval, of another request, is delivered for each request. */
	replay(): void {
		this.lie = "replay";
	}

	/** Decisions are signed by the device, about another artifact. */
	swapArtifact(): void {
		this.lie = "swapArtifact";
	}

	/** The state of a request: `pendingApproval`, `decided`, `delivered` or `withdrawn`. */
	stateOf(requestId: string): string | undefined {
		return this.#exchanges.get(requestId)?.state;
	}

	/** The signed outcome that the enforcer sent, as text. */
	outcomeOf(requestId: string): string | undefined {
		return this.#exchanges.get(requestId)?.outcome;
	}

	/** The signed decision about a request, as text. */
	decisionOf(requestId: string): string | undefined {
		return this.#exchanges.get(requestId)?.decision;
	}

	/** @internal */
	decide(requestId: string, decision: string): void {
		const exchange = this.#exchanges.get(requestId);
		if (exchange?.state !== "pendingApproval") return;
		exchange.state = "decided";
		exchange.decision = decision;
		this.#wake(exchange);
	}

	/** @internal */
	transport(): Transport {
		return {
			nodes: 1,
			send: (request) => this.#send(request),
			leaveNode: () => {},
			close: () => {},
		};
	}

	#wake(exchange: FakeExchange): void {
		exchange.changed.abort();
		exchange.changed = new AbortController();
	}

	async #send(request: TransportRequest): Promise<TransportAnswer> {
		const [place = "", query = ""] = request.path.split("?");
		const parts = place.split("/").slice(2).map(decodeURIComponent);
		const [kind, id = "", action] = parts;
		const name = `${request.method} /v1/${kind}${action === undefined ? "" : `/{id}/${action}`}`;
		this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
		if (this.#isDown) throw new TransportError("the gateway is down");
		const body = request.body === undefined ? {} : JSON.parse(request.body);
		switch (name) {
			case "GET /v1/approvers/{id}/devices":
				return json(
					200,
					`{"approverId":${JSON.stringify(id)},"devices":[],"statements":[${this.statements.join(",")}]}`,
				);
			case "POST /v1/artifacts":
				return this.#submit(body);
			case "GET /v1/exchanges/{id}/wait": {
				const seconds = Number(new URLSearchParams(query).get("timeout"));
				return this.#wait(id, seconds * 1000, request.signal);
			}
			case "POST /v1/exchanges/{id}/withdraw":
				return this.#withdraw(id);
			case "PUT /v1/exchanges/{id}/ciphertext":
				return { status: 204, headers: new Map(), body: new Uint8Array() };
			case "POST /v1/acks":
				return this.#acknowledge(body);
			default:
				return refusal(404, "NOT_FOUND");
		}
	}

	async #submit(envelope: {
		requestId: string;
		body: { expiresAt: string };
	}): Promise<TransportAnswer> {
		const { requestId, body } = envelope;
		const isNew = !this.#exchanges.has(requestId);
		if (isNew) {
			this.#exchanges.set(requestId, {
				expiresAt: Date.parse(body.expiresAt),
				state: "pendingApproval",
				decision: undefined,
				msgId: uuidv7(Date.now()),
				outcome: undefined,
				changed: new AbortController(),
			});
			await this.onSubmit({ requestId, body: JSON.stringify(body) });
		}
		return message(202, "artifact.accepted", requestId, uuidv7(Date.now()), {
			requestId,
			state: "pendingApproval",
			expiresAt: body.expiresAt,
			duplicate: !isNew,
		});
	}

	async #wait(
		requestId: string,
		time: number,
		signal: AbortSignal,
	): Promise<TransportAnswer> {
		const until = Date.now() + time;
		for (;;) {
			const exchange = this.#exchanges.get(requestId);
			if (exchange === undefined) return refusal(404, "NOT_FOUND");
			if (this.#isDown) throw new TransportError("the gateway is down");
			if (signal.aborted) throw new TransportError("aborted");
			const { decision, expiresAt, state } = exchange;
			if (state === "withdrawn") return ended("withdrawn");
			const isHeld = this.#isSilent || this.#withheld.has(requestId);
			if (decision !== undefined && !isHeld) {
				const delivered = await this.tamper(requestId, decision);
				return message(
					200,
					"decision.deliver",
					requestId,
					exchange.msgId,
					JSON.parse(delivered),
				);
			}
			const now = Date.now();
			if (now >= expiresAt) return ended("expired");
			if (now >= until) return ended(undefined);
			const woken = AbortSignal.any([signal, exchange.changed.signal]);
			await sleep(Math.min(until, expiresAt) - now, woken);
		}
	}

	#withdraw(requestId: string): TransportAnswer {
		const exchange = this.#exchanges.get(requestId);
		if (exchange === undefined) return refusal(404, "NOT_FOUND");
		if (exchange.state !== "pendingApproval")
			return refusal(409, "ALREADY_DECIDED");
		exchange.state = "withdrawn";
		this.#wake(exchange);
		return message(200, "exchange.withdrawn", requestId, uuidv7(Date.now()), {
			requestId,
			state: "withdrawn",
		});
	}

	#acknowledge(envelope: {
		requestId: string;
		body: { msgId: string; status: string; outcome?: string };
	}): TransportAnswer {
		const { requestId, body } = envelope;
		const exchange = this.#exchanges.get(requestId);
		if (exchange === undefined || exchange.msgId !== body.msgId)
			return refusal(404, "NOT_FOUND");
		if (exchange.state === "decided") {
			exchange.state = "delivered";
			exchange.outcome = body.outcome;
		}
		const { msgId, status } = body;
		return message(200, "ack.accepted", requestId, uuidv7(Date.now()), {
			msgId,
			status,
		});
	}
}

function json(status: number, text: string): TransportAnswer {
	return { status, headers: new Map(), body: utf8(text) };
}

function message(
	status: number,
	msgType: string,
	requestId: string,
	msgId: string,
	body: object,
): TransportAnswer {
	const createdAt = spellTime(Date.now());
	const sender = { gatewayId: "fake" };
	return json(
		status,
		JSON.stringify({ msgId, msgType, requestId, createdAt, sender, body }),
	);
}

function refusal(status: number, code: string): TransportAnswer {
	const members = {
		code: `PROTO_ERR_${code}`,
		message: code,
		retryable: false,
	};
	return json(status, JSON.stringify(members));
}

function ended(state: string | undefined): TransportAnswer {
	const headers = new Map<string, string>();
	if (state !== undefined) headers.set("exchange-state", state);
	return { status: 204, headers, body: new Uint8Array() };
}
