// The messages of an enforcer about a request: its artifact, encrypted, and messages in Envelopes.

import { utf8, uuidv7 } from "./core/bytes.js";
import { parse, Reader, spellTime } from "./core/canonical.js";
import { Problem } from "./core/problem.js";
import { RANDOM, seal } from "./core/seal.js";
import type { Artifact } from "./core/types.js";
import type { Enforcer } from "./enforcer.js";
import { Changed, NotPaired, ProfileError } from "./errors.js";
import type { OutcomeKey } from "./keys.js";
import type { AskedApprover } from "./trust.js";

/** A request of this enforcer, as it was or will be sent. */
export interface OwnExchange {
	artifact: Artifact;
	outcomeKey: OutcomeKey;
}

/** The text to send, the same for each attempt, and the devices that can open it. */
export interface Submission {
	envelope: string;
	recipients: string[];
}

/** Encrypts an artifact to every device in force of the approvers. */
export async function sealArtifact(
	{ enforcerId, keys }: Enforcer,
	artifact: Artifact,
	approvers: AskedApprover[],
): Promise<{ body: object; recipients: string[] }> {
	// One device may act for two of the approvers.
	const recipients = new Map<string, Bytes>();
	for (const { trust } of approvers)
		for (const { deviceId, encryptionKey } of trust.inForce) {
			const other = recipients.get(deviceId);
			if (other !== undefined && !Buffer.from(other).equals(encryptionKey))
				throw new ProfileError("two devices have the same id and other keys");
			recipients.set(deviceId, encryptionKey);
		}
	if (recipients.size === 0)
		throw new NotPaired("no device of the approver is in force");
	const beside = {
		artifactType: artifact.artifactType,
		artifactHash: artifact.hash,
		expiresAt: artifact.expiresAt,
	};
	const ciphertext = await seal(
		"artifact",
		keys,
		[...recipients].map(([name, key]) => ({ name, key })),
		{ v: 1, ...beside, requestId: artifact.requestId, enforcerId },
		utf8(artifact.text),
		RANDOM,
	);
	// Without a token the gateway sends it to every paired approver. Those who are not pinned here
	// cannot read it.
	const [only, ...others] = approvers;
	const metadata = only !== undefined &&
		others.length === 0 && {
			metadata: { routingToken: only.routingToken },
		};
	return {
		body: { ...beside, ciphertext, ...metadata },
		recipients: [...recipients.keys()].sort(),
	};
}

export function spellEnvelope(
	{ clock, enforcerId }: Enforcer,
	requestId: string,
	msgType: string,
	body: object,
): string {
	return JSON.stringify({
		msgId: uuidv7(clock.now()),
		msgType,
		requestId,
		createdAt: spellTime(clock.now()),
		sender: { enforcerId },
		body,
	});
}

/** A submission as it is kept under its key before it is sent. `request` is a pending record. */
export interface StoredSubmission extends Submission {
	request: string;
}

export function spellStored(stored: StoredSubmission): string {
	const { request, envelope, recipients } = stored;
	return JSON.stringify({ v: 1, request, envelope, recipients });
}

export function parseStored(text: string): StoredSubmission {
	try {
		const reader = new Reader("answer", parse("answer", text));
		reader.version();
		const recipients = reader.array("recipients").map(({ value }) => {
			if (typeof value !== "string") throw reader.invalid("recipients", "text");
			return value;
		});
		const stored = {
			request: reader.string("request"),
			envelope: reader.string("envelope"),
			recipients,
		};
		reader.finish();
		return stored;
	} catch (error) {
		if (!(error instanceof Problem)) throw error;
		throw new Changed(undefined, "the stored submission is damaged");
	}
}
