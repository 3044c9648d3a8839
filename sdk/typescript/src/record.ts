// A decision as a file that `countersign verify` checks without a gateway. It has the artifact in
// plain: protect it as you protect the arguments.

import { inspect } from "node:util";
import { parseArtifact } from "./core/artifact.js";
import { utf8 } from "./core/bytes.js";
import { parse, Reader } from "./core/canonical.js";
import { readDecision, verifyDecision } from "./core/decision.js";
import { hasSameKeys, parseDeviceBundle } from "./core/keys.js";
import { Problem } from "./core/problem.js";
import type { DeviceTrust } from "./core/statements.js";
import { CountersignError } from "./errors.js";
import { writePrivate } from "./private_file.js";

/** The facts that the signature in a record proves. */
export interface VerifiedRecord {
	approver: string;
	requestId: string;
	decision: "approve" | "reject";
	/** RFC 3339. */
	expiresAt: string;
}

export class DecisionRecord {
	readonly #text: string;

	/** @internal */
	constructor(text: string) {
		this.#text = text;
	}

	/** The whole record, the artifact included. */
	text(): string {
		return this.#text;
	}

	/** Writes a file that only its owner can read. */
	save(path: string): Promise<void> {
		return writePrivate(path, this.#text);
	}

	toJSON(): string {
		return "DecisionRecord(redacted)";
	}

	[inspect.custom](): string {
		return this.toJSON();
	}
}

/**
 * Verifies a record, and that its device is one that `trustOf` knows or that follows from those.
 * @internal
 */
export async function verifyRecord(
	text: string,
	trustOf: (approverId: string) => Promise<DeviceTrust>,
	tenantId: string,
): Promise<VerifiedRecord> {
	try {
		const reader = new Reader("answer", parse("answer", text));
		reader.version();
		const tenant = reader.id("tenantId");
		const approver = reader.id("approverId");
		reader.id("enforcerId");
		const artifact = await parseArtifact(utf8(reader.string("artifact")));
		const decision = readDecision(parse("decision", reader.string("decision")));
		const device = await parseDeviceBundle(reader.string("device"));
		const statements = reader.array("statements").map(({ value }) => {
			if (typeof value !== "string") throw reader.invalid("statements", "text");
			return value;
		});
		reader.finish();
		await verifyDecision(decision, artifact, device);
		if (tenant !== tenantId) throw Problem.of("otherApprover", {});
		const trust = await trustOf(approver);
		// A statement that cannot be read proves nothing.
		const readable = statements.flatMap((statement) => {
			try {
				return [parse("statement", statement)];
			} catch {
				return [];
			}
		});
		await trust.followAll(readable);
		const { deviceId } = device;
		if (!hasSameKeys(trust.device(deviceId), device))
			throw Problem.of("unknownDevice", { deviceId });
		return {
			approver,
			requestId: artifact.requestId,
			decision: decision.verdict,
			expiresAt: decision.expiresAt,
		};
	} catch (error) {
		if (!(error instanceof Problem)) throw error;
		throw new CountersignError(`the record is not verified (${error.code})`);
	}
}
