// A decision as a file that anyone can verify offline with `countersign verify`: the artifact in
// plain, the signed decision, and the device's public keys. Texts that were hashed or signed are
// strings in it, byte for byte.

/** @typedef {import('./statements.js').Subject} Subject */

/**
 * @param {Subject} subject
 * @param {{ enforcerId: string, artifact: string, decision: string, device: string }} decided
 * @param {string[]} statements those about the approver's devices, as the gateway serves them; may
 *   be empty
 */
export function spellRecord(
	{ tenantId, approverId },
	{ enforcerId, artifact, decision, device },
	statements,
) {
	const members = {
		v: 1,
		tenantId,
		approverId,
		enforcerId,
		artifact,
		decision,
		device,
		statements,
	};
	return `${JSON.stringify(members, null, 2)}\n`;
}
