// The checks of an enforcer before it acts on a decision, in their order. A decision that is not
// accepted denies.

import {
	isWithin,
	parseCanonical,
	Reader,
	readTime,
} from "./core/canonical.js";
import {
	type ReadDecision,
	readDecision,
	verifyDecision,
} from "./core/decision.js";
import type { Node } from "./core/json.js";
import { type DeviceBundle, readDeviceId } from "./core/keys.js";
import { Problem } from "./core/problem.js";
import { open, parseCiphertext } from "./core/seal.js";
import type { DeviceTrust } from "./core/statements.js";
import type { EncryptionKeys } from "./keys.js";

const MAX_REASON_CHARS = 4_000;
const MAX_ACTION_CHARS = 1_024;
const MAX_QUESTIONS = 16;
const MAX_ANSWER_TEXTS = 64;
const MAX_ANSWER_CHARS = 4_000;

/** The enforcer's own record of its request. */
export interface OwnRequest {
	requestId: string;
	artifactHash: string;
	repoRef: string;
	/** RFC 3339. */
	expiresAt: string;
	enforcerId: string;
}

/** A person's additions to a decision. */
export interface Hints {
	reason?: string;
	actionId?: string;
	answers?: string[][];
}

/** A decision that passed every check. Only an approval allows anything. */
export interface VerifiedDecision {
	isApproval: boolean;
	approver: string;
	device: DeviceBundle;
	/** In milliseconds. */
	expiresAt: number;
	/** Empty if those of a rejection could not be read: a rejection stands without them. */
	hints: Hints;
}

/** A decision that is not accepted, with the number of the check that it failed. */
export class DecisionRefused extends Error {
	readonly check: number;
	readonly isUnknownDevice: boolean;
	readonly isExpired: boolean;

	constructor(check: number, reason: string) {
		super(`check ${check}: ${reason}`);
		this.check = check;
		this.isUnknownDevice = reason === "unknownDevice";
		this.isExpired = check === 5 || check === 6;
	}
}

/** Judges the body of a decision about `request`, at `now` by the enforcer's own clock. */
export async function accept(
	decision: Node,
	request: OwnRequest,
	keys: EncryptionKeys,
	asked: DeviceTrust[],
	now: number,
): Promise<VerifiedDecision> {
	const claimed = await failing(1, () => readFullDecision(decision));
	const { trust, device } = await failing(2, () =>
		findSigner(claimed.signer, asked),
	);
	const subject = {
		requestId: request.requestId,
		hash: request.artifactHash,
		repoRef: request.repoRef,
	};
	try {
		await verifyDecision(claimed, subject, device);
	} catch (error) {
		throw refusalOf(isProblem(error, "decisionSignature") ? 3 : 4, error);
	}
	const expiresAt = Number(readTime(claimed.expiresAt));
	if (!(expiresAt > now)) throw new DecisionRefused(5, "decisionExpired");
	if (!(Number(readTime(request.expiresAt)) > now))
		throw new DecisionRefused(6, "requestExpired");
	const isApproval = claimed.verdict === "approve";
	const hints = await failing(7, () =>
		readHints(decision, request, keys, device),
	).catch((error) => {
		if (isApproval || !(error instanceof DecisionRefused)) throw error;
		return {};
	});
	const approver = trust.subject.approverId;
	return { isApproval, approver, device, expiresAt, hints };
}

function readFullDecision(node: Node): ReadDecision {
	const decision = readDecision(node);
	if (decision.signature.length !== 64)
		throw Problem.of("length", { what: "signature", expected: 64 });
	return decision;
}

/** The device, and the approver that it belongs to, among those that were asked. */
function findSigner(deviceId: string, asked: DeviceTrust[]) {
	let refusal = Problem.of("unknownDevice", {
		deviceId: readDeviceId(deviceId),
	});
	for (const trust of asked) {
		try {
			return { trust, device: trust.device(deviceId) };
		} catch (error) {
			if (!(error instanceof Problem)) throw error;
			if (error.code === "revokedDevice") refusal = error;
		}
	}
	throw refusal;
}

async function failing<T>(
	check: number,
	act: () => T | Promise<T>,
): Promise<T> {
	try {
		return await act();
	} catch (error) {
		throw refusalOf(check, error);
	}
}

/** Only a problem is an opinion about the decision; anything else is a defect. */
function refusalOf(check: number, error: unknown): unknown {
	return error instanceof Problem
		? new DecisionRefused(check, error.code)
		: error;
}

function isProblem(error: unknown, code: string): boolean {
	return error instanceof Problem && error.code === code;
}

async function readHints(
	decision: Node,
	request: OwnRequest,
	keys: EncryptionKeys,
	device: DeviceBundle,
): Promise<Hints> {
	const node = new Reader("decision", decision).optionalObject("policyHints");
	if (node === undefined) return {};
	const reader = new Reader("decision", node, "/policyHints");
	const sealed = reader.optional("sealed");
	if (sealed === undefined) return readPlainHints(node);
	reader.finish();
	const context = {
		v: 1,
		requestId: request.requestId,
		artifactHash: request.artifactHash,
		enforcerId: request.enforcerId,
		deviceId: device.deviceId,
	};
	const content = await open(
		parseCiphertext("hints", sealed),
		request.enforcerId,
		keys,
		device.encryptionKey,
		context,
	);
	return readPlainHints(parseCanonical("decision", content));
}

function readPlainHints(node: Node): Hints {
	const reader = new Reader("decision", node, "/policyHints");
	const reason = reader.optionalString("reason");
	const actionId = reader.optionalString("actionId");
	// A grant is not used: the approval counts for this request only, which is less than was signed.
	reader.optional("grant");
	const answers = readAnswers(reader);
	// Something unknown could be a condition, so a decision that has it is not acted on.
	reader.finish();
	if (reason !== null && !isWithin(reason, MAX_REASON_CHARS))
		throw reader.invalid("reason", `<= ${MAX_REASON_CHARS}`);
	if (actionId !== null && !isWithin(actionId, MAX_ACTION_CHARS))
		throw reader.invalid("actionId", `<= ${MAX_ACTION_CHARS}`);
	return {
		...(reason === null ? {} : { reason }),
		...(actionId === null ? {} : { actionId }),
		...(answers === null ? {} : { answers }),
	};
}

function readAnswers(reader: Reader): string[][] | null {
	if (reader.optional("answers") === undefined) return null;
	const refused = reader.invalid("answers", "text[][]");
	const read = (node: Node, most: number): Node[] => {
		const { value } = node;
		if (!Array.isArray(value) || value.length === 0 || value.length > most)
			throw refused;
		return value;
	};
	const text = ({ value }: Node): string => {
		if (
			typeof value !== "string" ||
			value === "" ||
			!isWithin(value, MAX_ANSWER_CHARS)
		)
			throw refused;
		return value;
	};
	const answers = reader.required("answers", "text[][]");
	return read(answers, MAX_QUESTIONS).map((texts) =>
		read(texts, MAX_ANSWER_TEXTS).map(text),
	);
}
