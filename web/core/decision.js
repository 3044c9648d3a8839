// Signing a decision, always in the full form. Only an opened artifact can be approved: there is no
// function that approves anything else. A person's reason is encrypted to the enforcer, since the
// gateway reads decisions.

import { fromBase64url, toBase64url, utf8 } from "./bytes.js";
import {
	canonical,
	canonicalNode,
	cleanText,
	isWithin,
	Reader,
	spellTime,
} from "./canonical.js";
import { sign, verifies } from "./keys.js";
import { Problem } from "./problem.js";
import { seal } from "./seal.js";

/** @typedef {import('./json.js').Node} Node */
/** @typedef {import('./keys.js').DeviceKeys} DeviceKeys */
/** @typedef {import('./keys.js').DeviceBundle} DeviceBundle */
/** @typedef {import('./artifact.js').PinnedEnforcer} PinnedEnforcer */
/** @typedef {import('./seal.js').Random} Random */
/** @typedef {import('./types.js').Artifact} Artifact */
/** @typedef {import('./types.js').Choice} Choice */
/** @typedef {import('./types.js').JsonObject} JsonObject */
/** @typedef {import('./types.js').Scope} Scope */
/** @typedef {import('./types.js').TeamHead} TeamHead */
/** @typedef {import('./types.js').Verdict} Verdict */

const WHAT = "decision";
const MAX_GRANT_SECONDS = 24 * 60 * 60;
/**
 * How long a rejection of something that could not be opened counts: the time beside it may be a
 * lie.
 */
const REJECTION_SECONDS = 60 * 60;
const MAX_REASON_CHARS = 4_000;
const MAX_ACTION_CHARS = 1_024;
const MAX_QUESTIONS = 16;
const MAX_ANSWER_TEXTS = 64;
const MAX_ANSWER_CHARS = 4_000;
const MAX_NONCE_CHARS = 512;
const SCOPES = /** @type {const} */ (["once", "timebox", "session"]);
const VERDICTS = /** @type {const} */ (["approve", "reject"]);

/**
 * The subject of a decision.
 * @typedef {object} Subject
 * @property {string} requestId
 * @property {string} artifactHash
 * @property {string} repoRef
 * @property {PinnedEnforcer | null} enforcer null if it is not paired
 */

/**
 * @typedef {object} Signing
 * @property {DeviceKeys} keys
 * @property {Random} random
 * @property {number} now in milliseconds
 */

/**
 * The body of `decision.submit` about an artifact that was opened, canonical and signed.
 * @param {Artifact} artifact
 * @param {PinnedEnforcer} enforcer
 * @param {Choice} choice
 * @param {Signing} signing
 * @param {TeamHead[]} [teams] those of the rule, as this device knows them
 */
export async function decideOpened(
	artifact,
	enforcer,
	choice,
	signing,
	teams = [],
) {
	if (choice.actionId !== undefined) {
		const action = artifact.actions.find(({ id }) => id === choice.actionId);
		if (action === undefined) throw Problem.of("actionUnknown", {});
		if (action.verdict !== choice.verdict)
			throw Problem.of("actionOpposite", {});
	}
	const { requestId, hash: artifactHash, repoRef } = artifact;
	const expiresAt = expiryOf(artifact, choice, signing.now);
	return spellDecision(
		{ requestId, artifactHash, repoRef, enforcer },
		choice,
		expiresAt,
		signing,
		teams,
	);
}

/**
 * Rejects what could not be opened. Its repository is not known, so `repoRef` is empty, unless the
 * artifact came unencrypted: the gateway then compares it.
 * @param {Subject} subject
 * @param {string | undefined} reason
 * @param {Signing} signing
 */
export function rejectUnopened(subject, reason, signing) {
	const expiresAt = spellTime(signing.now + REJECTION_SECONDS * 1000);
	/** @type {Choice} */
	const choice =
		reason === undefined
			? { verdict: "reject" }
			: { verdict: "reject", reason };
	return spellDecision(subject, choice, expiresAt, signing);
}

/**
 * @param {Artifact} artifact
 * @param {Choice} choice
 * @param {number} now
 */
function expiryOf(artifact, { scope = "once", lastsSeconds, grant }, now) {
	if (scope === "once") {
		if (lastsSeconds !== undefined) throw Problem.of("onceHasNoTime", {});
		return artifact.expiresAt;
	}
	if (lastsSeconds === undefined || grant === undefined)
		throw Problem.of("grantIncomplete", {});
	const isEdit = grant.match === "file" || grant.match === "project";
	if (isEdit && scope !== "session") throw Problem.of("editsForSession", {});
	if (lastsSeconds > MAX_GRANT_SECONDS)
		throw Problem.of("grantTooLong", { limit: MAX_GRANT_SECONDS });
	return spellTime(now + lastsSeconds * 1000);
}

/**
 * @param {Subject} subject
 * @param {Choice} choice
 * @param {string} expiresAt
 * @param {Signing} signing
 * @param {TeamHead[]} [teams]
 */
async function spellDecision(
	subject,
	choice,
	expiresAt,
	{ keys, random },
	teams = [],
) {
	const { requestId, artifactHash, repoRef, enforcer } = subject;
	const { deviceId } = keys.bundle;
	/** @type {JsonObject} */
	const members = {
		requestId,
		artifactHashAlg: "SHA-256",
		artifactHash,
		repoRef,
		decision: choice.verdict,
		scope: choice.scope ?? "once",
		expiresAt,
		nonce: toBase64url(random.bytes(16)),
		sigAlg: "Ed25519",
		signerKeyId: deviceId,
	};
	const hints = hintsOf(choice, teams);
	if (Object.keys(hints).length > 0) {
		if (enforcer === null) throw Problem.of("hintsForNobody", {});
		const sender = {
			privateKey: keys.decryption,
			publicKey: keys.bundle.encryptionKey,
		};
		const recipient = {
			name: enforcer.enforcerId,
			key: enforcer.encryptionKey,
		};
		const context = {
			v: 1,
			requestId,
			artifactHash,
			enforcerId: enforcer.enforcerId,
			deviceId,
		};
		const content = utf8(canonical(hints));
		members.policyHints = {
			sealed: await seal(
				"hints",
				sender,
				[recipient],
				context,
				content,
				random,
			),
		};
	}
	return canonical({
		...members,
		signature: await sign(keys, canonical(members)),
	});
}

/**
 * @param {Choice} choice
 * @param {TeamHead[]} teams
 * @returns {JsonObject}
 */
function hintsOf({ reason, actionId, grant, answers }, teams) {
	if (reason !== undefined && !isWithin(reason, MAX_REASON_CHARS))
		throw Problem.of("longReason", { limit: MAX_REASON_CHARS });
	if (actionId !== undefined && !isWithin(actionId, MAX_ACTION_CHARS)) {
		throw Problem.of("longAction", { limit: MAX_ACTION_CHARS });
	}
	if (answers !== undefined && !areAnswers(answers))
		throw Problem.of("oddAnswers", {});
	return {
		...(answers === undefined
			? {}
			: { answers: answers.map((texts) => texts.map(cleanText)) }),
		...(reason === undefined ? {} : { reason: cleanText(reason) }),
		...(actionId === undefined ? {} : { actionId }),
		...(grant === undefined ? {} : { grant }),
		...(teams.length === 0 ? {} : { teams }),
	};
}

/** @param {string[][]} answers */
function areAnswers(answers) {
	const isText = (/** @type {string} */ text) =>
		text !== "" && isWithin(text, MAX_ANSWER_CHARS);
	return (
		answers.length > 0 &&
		answers.length <= MAX_QUESTIONS &&
		answers.every(
			(texts) =>
				texts.length > 0 &&
				texts.length <= MAX_ANSWER_TEXTS &&
				texts.every(isText),
		)
	);
}

/**
 * A decision's members, read and nothing more.
 * @typedef {object} ReadDecision
 * @property {string} requestId
 * @property {string} artifactHash
 * @property {string} repoRef
 * @property {Verdict} verdict
 * @property {Scope} scope
 * @property {string} expiresAt
 * @property {string} signer
 * @property {Bytes} signature
 * @property {string} signable
 */

/**
 * @param {Node} node
 * @returns {ReadDecision}
 */
export function readDecision(node) {
	const reader = new Reader(WHAT, node);
	reader.oneOf("artifactHashAlg", ["SHA-256"]);
	reader.oneOf("sigAlg", ["Ed25519"]);
	const nonce = reader.string("nonce");
	if (nonce === "" || !isWithin(nonce, MAX_NONCE_CHARS))
		throw reader.invalid("nonce", `1..${MAX_NONCE_CHARS}`);
	reader.optionalObject("policyHints");
	const decision = {
		requestId: reader.id("requestId"),
		artifactHash: reader.hash("artifactHash"),
		repoRef: reader.string("repoRef"),
		verdict: reader.oneOf("decision", VERDICTS),
		scope: reader.oneOf("scope", SCOPES),
		expiresAt: reader.time("expiresAt"),
		signer: reader.string("signerKeyId"),
		// The only text that may have padding, as everywhere in the protocol.
		signature: fromBase64url(
			"signature",
			reader.string("signature").replace(/={1,2}$/, ""),
		),
		signable: canonicalNode(node, "signature"),
	};
	reader.finish();
	return decision;
}

/**
 * Verifies that `device` signed this decision, and that it is about this artifact. It says nothing
 * about whose device that is.
 * @param {ReadDecision} decision
 * @param {{ requestId: string, hash: string, repoRef: string }} artifact
 * @param {DeviceBundle} device
 */
export async function verifyDecision(decision, artifact, device) {
	const isSigned =
		decision.signer === device.deviceId &&
		(await verifies(device, decision.signable, decision.signature));
	if (!isSigned) throw Problem.of("decisionSignature", {});
	if (decision.requestId !== artifact.requestId)
		throw Problem.of("otherSubject", { what: "request" });
	if (decision.artifactHash !== artifact.hash)
		throw Problem.of("otherSubject", { what: "artifact" });
	// A device that could not open a request does not know its repository, and may still reject it.
	const isUnopened = decision.verdict === "reject" && decision.repoRef === "";
	if (decision.repoRef !== artifact.repoRef && !isUnopened)
		throw Problem.of("otherSubject", { what: "repository" });
}
