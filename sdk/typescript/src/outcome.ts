// The enforcer's signed statement about a decision, so that an approver need not believe the gateway
// that it was delivered. A DSSE envelope around an in-toto statement.

import { concat, fromBase64url, sha256, toHex, utf8 } from "./core/bytes.js";
import { canonical, canonicalNode, Reader } from "./core/canonical.js";
import type { Node } from "./core/json.js";
import type { OutcomeKey } from "./keys.js";

const PAYLOAD_TYPE = "application/vnd.in-toto+json";

export type OutcomeEffect = "allowed" | "rejected" | "untrusted" | "changed";

export interface OutcomeStatement {
	requestId: string;
	artifactHash: string;
	tenantId: string;
	enforcerId: string;
	effect: OutcomeEffect;
	/** The digest of the decision. */
	decision: string;
	at: string;
}

/** Of the text that is signed, and of the signature, however the two are spelled. */
export async function decisionDigest(decision: Node): Promise<string> {
	const signature = new Reader("decision", decision)
		.string("signature")
		.replace(/=+$/, "");
	const signed = utf8(canonicalNode(decision, "signature"));
	return toHex(
		await sha256(concat(signed, fromBase64url("signature", signature))),
	);
}

export function signOutcome(
	key: OutcomeKey,
	statement: OutcomeStatement,
): string {
	const isAllowed = statement.effect === "allowed";
	const payload = canonical({
		_type: "https://in-toto.io/Statement/v1",
		predicateType: "urn:countersign:outcome:v1",
		subject: [
			{
				name: statement.requestId,
				digest: { sha256: statement.artifactHash },
			},
		],
		predicate: {
			v: 1,
			tenantId: statement.tenantId,
			enforcerId: statement.enforcerId,
			outcome: isAllowed ? "allowed" : "denied",
			cause: isAllowed ? "" : statement.effect,
			decisions: [statement.decision],
			at: statement.at,
		},
	});
	const bytes = utf8(payload);
	const head = `DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${bytes.length} `;
	const signature = key.sign(concat(utf8(head), bytes));
	return canonical({
		payload: Buffer.from(bytes).toString("base64"),
		payloadType: PAYLOAD_TYPE,
		signatures: [{ sig: Buffer.from(signature).toString("base64") }],
	});
}
