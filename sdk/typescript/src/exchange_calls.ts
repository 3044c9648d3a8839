// Calls about one request, besides those that wait for its decision.

import { Deadline } from "./clock.js";
import { spellTime } from "./core/canonical.js";
import { denialOf } from "./denials.js";
import type { Enforcer } from "./enforcer.js";
import { type GatewayCall, GatewayRefusal, path } from "./gateway.js";
import { spellEnvelope } from "./submission.js";

/** Of an acknowledgement or a withdrawal. */
export const ACK_TIMEOUT_MS = 3_000;
/** Answers to a withdrawal: the request has ended, and nobody has decided. */
const ENDED_CODES = ["EXPIRED", "INVALID_STATE"];

/** Acknowledges a decision. A failure is ignored: the answer to the caller does not depend on it. */
export async function acknowledge(
	enforcer: Enforcer,
	requestId: string,
	msgId: string,
	outcome: string | undefined,
): Promise<void> {
	const { clock, gateway } = enforcer;
	const body = spellEnvelope(enforcer, requestId, "ack.submit", {
		msgId,
		status: "processed",
		ackAt: spellTime(clock.now()),
		...(outcome === undefined ? {} : { outcome }),
	});
	try {
		await gateway.call(
			{ method: "POST", path: "/v1/acks", body, expect: [200, 404] },
			Deadline.after(clock, ACK_TIMEOUT_MS),
		);
	} catch {
		// Then the gateway delivers the decision again.
	}
}

/** Takes a request back. It does not matter if it has ended meanwhile, or if this fails. */
export async function withdraw(
	enforcer: Enforcer,
	requestId: string,
	reason: string,
): Promise<void> {
	const call = withdrawal(enforcer, requestId, reason);
	try {
		await enforcer.gateway.call(
			{ ...call, expect: [200, 404, 409] },
			Deadline.after(enforcer.clock, ACK_TIMEOUT_MS),
		);
	} catch {
		// The request expires.
	}
}

/**
 * Takes a request back, and says whether it was decided before. An error means that it may have been
 * decided, or may still be.
 */
export async function takeBack(
	enforcer: Enforcer,
	requestId: string,
	{ reason, isSent }: { reason: string; isSent: boolean },
	deadline: Deadline,
): Promise<boolean> {
	try {
		const call = withdrawal(enforcer, requestId, reason);
		await enforcer.gateway.call(call, deadline);
	} catch (error) {
		if (!(error instanceof GatewayRefusal)) throw denialOf(error, requestId);
		if (error.code === "ALREADY_DECIDED") return true;
		const isUnknown = !isSent && [404, 409].includes(error.status);
		if (!isUnknown && !ENDED_CODES.includes(error.code))
			throw denialOf(error, requestId);
	}
	return false;
}

function withdrawal(
	enforcer: Enforcer,
	requestId: string,
	reason: string,
): GatewayCall {
	return {
		method: "POST",
		path: path("v1", "exchanges", requestId, "withdraw"),
		body: spellEnvelope(enforcer, requestId, "exchange.withdrawn", { reason }),
		expect: [200],
	};
}
