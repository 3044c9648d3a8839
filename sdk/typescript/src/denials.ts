// Errors of the gateway, and decisions that are not accepted, as denials.

import { DecisionRefused } from "./accept.js";
import {
	Denied,
	Expired,
	NotPaired,
	TimedOut,
	Unavailable,
	Untrusted,
} from "./errors.js";
import { GatewayAway, GatewayRefusal } from "./gateway.js";

/**
 * Other errors are thrown on as they are. No failed call is final: a 404 may come from a wrong path or
 * a proxy.
 */
export function denialOf(error: unknown, requestId?: string): unknown {
	if (error instanceof Denied) return error;
	if (error instanceof DecisionRefused && requestId !== undefined)
		return error.isExpired
			? new Expired(requestId)
			: new Untrusted(error.message, requestId);
	if (error instanceof GatewayRefusal) {
		if (error.code === "PAIRING_REVOKED" || error.code === "NO_APPROVER")
			return new NotPaired("the approver has ended the pairing", requestId);
		if (error.code === "EXPIRED") return new TimedOut(requestId);
		return new Unavailable(error.message, requestId);
	}
	return error instanceof GatewayAway
		? new Unavailable(error.message, requestId)
		: error;
}
