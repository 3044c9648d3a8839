// Decisions that this device has made or seen: listed, and saved as files.

import { parseArtifact } from "./artifact.js";
import { utf8 } from "./bytes.js";
import { readDevices } from "./devices.js";
import { describeDecision } from "./exchange.js";
import { parseDeviceBundle } from "./keys.js";
import { Problem } from "./problem.js";
import { spellRecord } from "./record.js";

/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./types.js').HistoryEntry} HistoryEntry */

/**
 * The newest decisions that this device has made or seen, older than `before`.
 * @param {Session} session
 * @param {string | null} before
 * @param {number} limit
 * @returns {Promise<HistoryEntry[]>}
 */
export async function readHistory(session, before, limit) {
	const records = await session.store.decisions(before, limit);
	return Promise.all(
		records.map(async (record) => {
			const {
				requestId,
				enforcerId,
				label,
				artifactType,
				decidedAt,
				state,
				artifact,
			} = record;
			return {
				requestId,
				enforcerId,
				label,
				artifactType,
				decidedAt,
				state,
				decision: describeDecision(session, record),
				artifact:
					artifact === null ? null : await parseArtifact(utf8(artifact)),
			};
		}),
	);
}

/**
 * A decision as a file that can be verified offline. Only of what was opened: the file has the
 * artifact.
 * @param {Session} session
 * @param {string} requestId
 */
export async function exportDecision(session, requestId) {
	const record = await session.store.decision(requestId);
	if (record === null || record.artifact === null || record.device === "")
		throw Problem.of("nothingToSave", {});
	const { enforcerId, artifact, body: decision, device } = record;
	const { deviceId } = await parseDeviceBundle(device);
	// They let others verify it who know another device of this approver. Without them it is still
	// complete.
	const statements = await readDevices(session).then(
		(devices) => devices.statements,
		() => [],
	);
	const text = spellRecord(
		session.subject,
		{ enforcerId, artifact, decision, device },
		statements,
	);
	return {
		name: `countersign-${requestId}-${deviceId.slice(0, 6)}.json`,
		text,
	};
}
