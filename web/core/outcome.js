// An enforcer's outcome of a decision, signed with a key that the sealed artifact names: so it is
// the word of the agent's machine, not of the gateway. A DSSE envelope around an in-toto statement.

import {
	concat,
	fromBase64url,
	fromUtf8,
	sha256,
	toHex,
	utf8,
} from "./bytes.js";
import { canonicalNode, parse, parseCanonical, Reader } from "./canonical.js";
import { isRefusedWith, path } from "./gateway.js";
import { readMessage } from "./item.js";
import { verifies } from "./keys.js";
import { Problem } from "./problem.js";

/** @typedef {import('./json.js').Node} Node */
/** @typedef {import('./types.js').Artifact} Artifact */
/** @typedef {import('./types.js').DecisionOutcome} DecisionOutcome */
/** @typedef {import('./types.js').Item} Item */

const WHAT = "outcome";
const PAYLOAD_TYPE = "application/vnd.in-toto+json";
const STATEMENT_TYPE = "https://in-toto.io/Statement/v1";
const PREDICATE_TYPE = "urn:countersign:outcome:v1";
const CAUSES = /** @type {const} */ ([
	"rejected",
	"missing",
	"untrusted",
	"interrupted",
	"changed",
]);
const MAX_DECISIONS = 64;
const MAX_SUBJECTS = 64;
const HASH = /^[0-9a-f]{64}$/;

/**
 * The outcome of a decision that the gateway calls delivered. Null: only the gateway says that.
 * `forged`: it serves an outcome that the agent's machine has not signed about this decision.
 * @param {import('./session.js').Session} session
 * @param {Item} item
 * @param {string} decision
 * @returns {Promise<DecisionOutcome | null>}
 */
export async function readOutcome(
	{ client, subject },
	{ requestId, enforcerId, content },
	decision,
) {
	if (!content.opened || content.artifact.outcomeKey === null) return null;
	// Its outcome may have a form that this page does not know either.
	if (content.artifact.rule === "unknown") return null;
	let outcome;
	try {
		const { body } = readMessage(
			await client.json({
				path: path("v1", "exchanges", requestId, "outcome"),
				expect: [200],
			}),
		);
		outcome = new Reader("answer", body).string("outcome");
	} catch (error) {
		if (isRefusedWith(error, "NOT_FOUND")) return null;
		throw error;
	}
	try {
		const about = {
			tenantId: subject.tenantId,
			enforcerId: enforcerId ?? "",
			decision,
		};
		return await verifyOutcome(outcome, content.artifact, about);
	} catch (error) {
		if (!(error instanceof Problem)) throw error;
		return "forged";
	}
}

/**
 * An outcome of a set has the decided requests of the set, each with its decision. This device knows
 * one of them: that one must be in it, and the set must be the rule's.
 * @param {string} envelope
 * @param {Artifact} artifact
 * @param {{ tenantId: string, enforcerId: string, decision: string }} about
 * @returns {Promise<Exclude<DecisionOutcome, 'forged'>>}
 */
export async function verifyOutcome(
	envelope,
	artifact,
	{ tenantId, enforcerId, decision },
) {
	const { payload, signature } = readEnvelope(parse(WHAT, envelope));
	const message = `DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${utf8(payload).length} ${payload}`;
	const isSigned =
		artifact.outcomeKey !== null &&
		(await verifies({ signingKey: artifact.outcomeKey }, message, signature));
	if (!isSigned) throw Problem.of("outcomeSignature", {});
	const set = setOf(artifact);
	const { subjects, claims, decisions, outcome } = readStatement(
		parseCanonical(WHAT, utf8(payload)),
		set !== null,
	);
	const digest = await digestOf(parse("decision", decision));
	const place = subjects.findIndex(({ name }) => name === artifact.requestId);
	const isSame =
		subjects[place]?.hash === artifact.hash &&
		claims.tenantId === tenantId &&
		claims.enforcerId === enforcerId &&
		claims.set === set &&
		(set === null ? decisions.includes(digest) : decisions[place] === digest);
	if (!isSame) throw Problem.of("outcomeSignature", {});
	return outcome;
}

/** @param {Artifact} artifact */
function setOf({ rule }) {
	if (rule === "unknown") throw Problem.of("version", { what: "rule" });
	return rule === null ? null : rule.set;
}

/**
 * Of the text that is signed, and of the signature, however the two are spelled.
 * @param {Node} decision
 */
async function digestOf(decision) {
	const signature = new Reader("decision", decision)
		.string("signature")
		.replace(/=+$/, "");
	return toHex(
		await sha256(
			concat(
				utf8(canonicalNode(decision, "signature")),
				fromBase64url("signature", signature),
			),
		),
	);
}

/** @param {Node} node */
function readEnvelope(node) {
	const reader = new Reader(WHAT, node);
	reader.oneOf("payloadType", [PAYLOAD_TYPE]);
	const payload = fromUtf8(fromBase64(reader.string("payload")));
	if (payload === null) throw reader.invalid("payload", "UTF-8");
	const signatures = reader.array("signatures");
	reader.finish();
	if (signatures.length !== 1) throw reader.invalid("signatures", "1");
	const inner = new Reader(WHAT, signatures[0], "/signatures/0");
	const signature = fromBase64(inner.string("sig"));
	inner.finish();
	return { payload, signature };
}

/**
 * Standard base64, in its only spelling.
 * @param {string} text
 */
function fromBase64(text) {
	const bare = text.replace(/=+$/, "");
	if (
		text.length % 4 !== 0 ||
		bare.length < text.length - 2 ||
		/[-_]/.test(text)
	)
		throw Problem.of("base64", { what: WHAT });
	return fromBase64url(WHAT, bare.replace(/\+/g, "-").replace(/\//g, "_"));
}

/**
 * @param {Node} node
 * @param {boolean} isOfSet
 */
function readStatement(node, isOfSet) {
	const reader = new Reader(WHAT, node);
	const predicate = new Reader(WHAT, reader.object("predicate"), "/predicate");
	predicate.version();
	reader.oneOf("_type", [STATEMENT_TYPE]);
	reader.oneOf("predicateType", [PREDICATE_TYPE]);
	const subjects = readSubjects(reader, isOfSet ? MAX_SUBJECTS : 1);
	const claims = {
		tenantId: predicate.id("tenantId"),
		enforcerId: predicate.id("enforcerId"),
		set: isOfSet ? predicate.string("set") : null,
	};
	const isAllowed =
		predicate.oneOf("outcome", /** @type {const} */ (["allowed", "denied"])) ===
		"allowed";
	const cause = predicate.oneOf(
		"cause",
		/** @type {const} */ (["", ...CAUSES]),
	);
	if (isAllowed !== (cause === ""))
		throw predicate.invalid("cause", CAUSES.join(" | "));
	const decisions = predicate.array("decisions").map(({ value }) => value);
	const areHashes = decisions.every(
		(value) => typeof value === "string" && HASH.test(value),
	);
	if (!areHashes || decisions.length < 1 || decisions.length > MAX_DECISIONS)
		throw predicate.invalid("decisions", "SHA-256[]");
	if (isOfSet && decisions.length !== subjects.length)
		throw predicate.invalid("decisions", "one for each subject");
	predicate.time("at");
	for (const each of [reader, predicate]) each.finish();
	return {
		subjects,
		claims,
		decisions,
		outcome: cause === "" ? /** @type {const} */ ("allowed") : cause,
	};
}

/**
 * The requests that an outcome is about.
 * @param {Reader} statement
 * @param {number} most
 */
function readSubjects(statement, most) {
	const nodes = statement.array("subject");
	const subjects = nodes.map((node, at) => {
		const pointer = `/subject/${at}`;
		const subject = new Reader(WHAT, node, pointer);
		const digest = new Reader(
			WHAT,
			subject.object("digest"),
			`${pointer}/digest`,
		);
		const read = { name: subject.id("name"), hash: digest.hash("sha256") };
		for (const each of [subject, digest]) each.finish();
		return read;
	});
	if (subjects.length < 1 || subjects.length > most)
		throw statement.invalid("subject", `1..${most}`);
	if (new Set(subjects.map(({ name }) => name)).size !== subjects.length)
		throw statement.invalid("subject", "no request twice");
	return subjects;
}
