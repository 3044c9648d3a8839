// The enforcer's signed statement about a decision, so that an approver need not believe the gateway
// that it was delivered. A DSSE envelope around an in-toto statement.

import { concat, fromBase64url, sha256, toHex, utf8 } from "./core/bytes.js";
import { canonical, canonicalNode, Reader } from "./core/canonical.js";
import type { Node } from "./core/json.js";
import { ApprovalFailure } from "./errors.js";
import type { OutcomeKey } from "./keys.js";

const PAYLOAD_TYPE = "application/vnd.in-toto+json";

/** A gateway takes no longer outcome. */
const MAX_ENVELOPE_CHARS = 16 << 10;

/** Only about sets: `missing`, too few approvals, and `interrupted`. */
export type OutcomeEffect =
	| "allowed"
	| "rejected"
	| "untrusted"
	| "changed"
	| "missing"
	| "interrupted";

/** A decided request, and the digest of its decision. */
export interface OutcomeSubject {
	requestId: string;
	artifactHash: string;
	decision: string;
}

export interface OutcomeStatement {
	/** One; of a set, one for each decided part. */
	subjects: OutcomeSubject[];
	set?: string;
	tenantId: string;
	enforcerId: string;
	effect: OutcomeEffect;
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
		subject: statement.subjects.map(({ requestId, artifactHash }) => ({
			name: requestId,
			digest: { sha256: artifactHash },
		})),
		predicate: {
			v: 1,
			tenantId: statement.tenantId,
			enforcerId: statement.enforcerId,
			outcome: isAllowed ? "allowed" : "denied",
			cause: isAllowed ? "" : statement.effect,
			decisions: statement.subjects.map(({ decision }) => decision),
			at: statement.at,
			...(statement.set === undefined ? {} : { set: statement.set }),
		},
	});
	const bytes = utf8(payload);
	const head = `DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${bytes.length} `;
	const signature = key.sign(concat(utf8(head), bytes));
	const envelope = canonical({
		payload: Buffer.from(bytes).toString("base64"),
		payloadType: PAYLOAD_TYPE,
		signatures: [{ sig: Buffer.from(signature).toString("base64") }],
	});
	if (envelope.length > MAX_ENVELOPE_CHARS)
		throw new ApprovalFailure("the outcome is too long");
	return envelope;
}
