// Errors of the gateway as denials.

import { Denied, Ended, NotPaired, Unavailable } from "./errors.js";
import { GatewayAway, GatewayRefusal } from "./gateway.js";

/** Errors that are not the gateway's are thrown on as they are. */
export function denialOf(error: unknown, requestId?: string): unknown {
	if (error instanceof Denied) return error;
	if (error instanceof GatewayRefusal) {
		if (error.code === "PAIRING_REVOKED" || error.code === "NO_APPROVER")
			return new NotPaired("the approver has ended the pairing", requestId);
		if (error.status === 404 && requestId !== undefined)
			return new Ended("unknown", requestId);
		return new Unavailable(error.message, requestId);
	}
	return error instanceof GatewayAway
		? new Unavailable(error.message, requestId)
		: error;
}
