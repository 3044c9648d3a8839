// Completing an artifact: what a person is shown, with a salt, the devices that this enforcer obeys,
// and the key of the outcome. Its hash is what a decision is about.

import { type JsonObject, type Subject, spell } from "./call.js";
import { parseArtifact } from "./core/artifact.js";
import {
	randomBytes,
	sha256,
	toBase64url,
	toHex,
	utf8,
	uuidv7,
} from "./core/bytes.js";
import { spellTime } from "./core/canonical.js";
import { Problem } from "./core/problem.js";
import { RULE } from "./core/rule.js";
import type { ApprovalRule, Artifact, AskedPeople } from "./core/types.js";
import { NotAskable } from "./errors.js";
import type { OutcomeKey } from "./keys.js";
import type { AskedApprover } from "./trust.js";

const MAX_REPOSITORY_CHARS = 1_024;
const ACTIONS = "org.proto.requestedActions";
const MAX_ACTIONS = 5;
const MAX_CAPTION_CHARS = 80;
/** The gateway takes no more of the ciphertext's text, which is base64url. */
const MAX_ARTIFACT_BYTES = Math.floor(((2 << 20) * 3) / 4) - 16;

/** A choice that a request offers. What counts is the verdict; the caption is for people. */
export interface RequestedAction {
	id: string;
	caption: string;
	decision: "approve" | "reject";
}

export const Action = {
	approve: (id: string, caption: string): RequestedAction => ({
		id,
		caption,
		decision: "approve",
	}),
	reject: (id: string, caption: string): RequestedAction => ({
		id,
		caption,
		decision: "reject",
	}),
};

/** @internal */
export interface ArtifactOptions {
	/** The repository or place that the call is about, as people name it. */
	repoRef: string;
	actions: RequestedAction[];
	metadata: object | undefined;
	/** A UUID or ULID. */
	sessionId: string | undefined;
	/** Milliseconds since 1970. */
	createdAt: number;
	expiresAt: number;
	/** Undefined: one decision settles the request. */
	rule?: ApprovalRule;
}

/** @internal */
export async function completeArtifact(
	subject: Subject,
	options: ArtifactOptions,
	asked: AskedApprover[],
	outcomeKey: OutcomeKey,
): Promise<Artifact> {
	const repository = {
		salt: toBase64url(randomBytes(16)),
		text: shownRepository(options.repoRef),
	};
	const hidden = `countersign repository v1\n${repository.salt}\n${repository.text}`;
	const devices = asked.map(({ id, trust }) => [
		id,
		trust.inForce.map(({ deviceId }) => deviceId),
	]);
	const members: JsonObject = {
		requestId: uuidv7(options.createdAt),
		artifactType: subject.artifactType,
		repoRef: `sha256:${toHex(await sha256(utf8(hidden)))}`,
		createdAt: spellTime(options.createdAt),
		expiresAt: spellTime(options.expiresAt),
		payload: JSON.parse(subject.payload),
		artifactHashAlg: "SHA-256",
		...(options.metadata === undefined
			? {}
			: { metadata: JSON.parse(spell(options.metadata)) }),
		...(options.sessionId === undefined
			? {}
			: { sessionId: options.sessionId }),
		extensions: {
			...actionsExtension(options.actions),
			"countersign.salt": toBase64url(randomBytes(16)),
			"countersign.repository": repository,
			"countersign.devices": Object.fromEntries(devices),
			"countersign.outcome": { v: 1, key: outcomeKey.publicKey() },
			...(options.rule === undefined ? {} : { [RULE]: ruleJson(options.rule) }),
		},
	};
	return hashed(members);
}

/**
 * The artifact of another part of the set. It differs in these two, and in the hash.
 * @internal
 */
export async function artifactForPart(
	{ text, rule }: Artifact,
	requestId: string,
	seat: string,
): Promise<Artifact> {
	if (rule === null || rule === "unknown")
		throw new NotAskable("the artifact has no rule");
	const { artifactHash: _, extensions, ...members } = JSON.parse(text);
	const seated = { ...extensions, [RULE]: ruleJson({ ...rule, seat }) };
	return hashed({ ...members, requestId, extensions: seated });
}

/** @internal */
export function ruleJson(rule: ApprovalRule): JsonObject {
	const asks = rule.asks.map(({ approvals, escalate, ...asked }) => {
		const steps = escalate.map(({ after, ...later }) => ({
			after,
			...askedJson(later),
		}));
		return {
			approvals,
			...askedJson(asked),
			...(steps.length === 0 ? {} : { escalate: steps }),
		};
	});
	const { enforcerId, set, seat, rejections, comment, notBy } = rule;
	return {
		v: 1,
		enforcerId,
		set,
		asks,
		rejections,
		comment,
		...(seat === null ? {} : { seat }),
		...(notBy.length === 0 ? {} : { notBy }),
	};
}

function askedJson({ from, team }: AskedPeople): JsonObject {
	return team === null ? { from } : { team };
}

async function hashed(members: JsonObject): Promise<Artifact> {
	const artifactHash = toHex(await sha256(utf8(spell(members))));
	const bytes = utf8(spell({ ...members, artifactHash }));
	if (bytes.length > MAX_ARTIFACT_BYTES)
		throw new NotAskable("it is too large to be shown to a person");
	return readOwn(bytes);
}

/** @internal */
export function shownRepository(repoRef: string): string {
	return [...repoRef].slice(0, MAX_REPOSITORY_CHARS).join("");
}

/**
 * Whether an artifact offers exactly these choices.
 * @internal
 */
export function hasActions(
	{ text }: Artifact,
	actions: RequestedAction[],
): boolean {
	const { extensions } = JSON.parse(text);
	const offered = extensions?.[ACTIONS];
	const found = offered === undefined ? {} : { [ACTIONS]: offered };
	return spell(found) === spell(actionsExtension(actions));
}

/** An artifact as devices will read it: what they would refuse is not sent. */
async function readOwn(bytes: Bytes): Promise<Artifact> {
	try {
		return await parseArtifact(bytes);
	} catch (error) {
		if (!(error instanceof Problem)) throw error;
		throw new NotAskable(`the request is malformed (${error.code})`);
	}
}

function actionsExtension(actions: RequestedAction[]): JsonObject {
	if (actions.length === 0) return {};
	const ids = new Set(actions.map(({ id }) => String(id).toLowerCase()));
	const isSound = ({ id, caption, decision }: RequestedAction) =>
		typeof id === "string" &&
		id !== "" &&
		typeof caption === "string" &&
		caption.trim() !== "" &&
		[...caption].length <= MAX_CAPTION_CHARS &&
		(decision === "approve" || decision === "reject");
	if (
		actions.length > MAX_ACTIONS ||
		ids.size < actions.length ||
		!actions.every(isSound)
	)
		throw new NotAskable(
			"actions: expected at most 5, with different ids and captions of 1 to 80 characters",
		);
	const list = actions.map(({ id, caption, decision }) => ({
		id,
		caption,
		decision,
	}));
	return { [ACTIONS]: { version: 1, actions: list } };
}
