// What an enforcer sends about a request: its artifact, encrypted, and messages in Envelopes.

import { utf8, uuidv7 } from "./core/bytes.js";
import { spellTime } from "./core/canonical.js";
import { RANDOM, seal } from "./core/seal.js";
import type { Artifact } from "./core/types.js";
import type { Enforcer } from "./enforcer.js";
import { NotPaired } from "./errors.js";
import type { AskedApprover } from "./trust.js";

/** The body of a submission, and the ids of the devices that can open it. */
export interface SealedArtifact {
	body: object;
	recipients: Set<string>;
}

/** Encrypts an artifact to every device in force of the approvers. */
export async function sealArtifact(
	{ enforcerId, keys }: Enforcer,
	artifact: Artifact,
	approvers: AskedApprover[],
): Promise<SealedArtifact> {
	// One device may act for two of the approvers.
	const recipients = new Map<string, Bytes>();
	for (const { trust } of approvers)
		for (const { deviceId, encryptionKey } of trust.inForce)
			recipients.set(deviceId, encryptionKey);
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
		recipients: new Set(recipients.keys()),
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
