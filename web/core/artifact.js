// Artifacts, opened on this device. Plain members about one are believed only if its content
// agrees.

import { fromBase64urlOf, sha256, toHex, utf8 } from "./bytes.js";
import {
	hashWithout,
	isId,
	isUuidOrUlid,
	isWithin,
	parseCanonical,
	Reader,
} from "./canonical.js";
import { readDeviceId } from "./keys.js";
import { isSigningKey } from "./points.js";
import { Problem } from "./problem.js";
import { RULE, readRule } from "./rule.js";
import { open, parseCiphertext } from "./seal.js";
import { MAX_DEVICES } from "./statements.js";

/** @typedef {import('./json.js').Node} Node */
/** @typedef {import('./keys.js').DeviceKeys} DeviceKeys */
/** @typedef {import('./types.js').Artifact} Artifact */
/** @typedef {import('./types.js').JsonObject} JsonObject */
/** @typedef {import('./types.js').RequestedAction} RequestedAction */

const WHAT = "artifact";
const TYPES = /** @type {const} */ ([
	"plan.review",
	"task.review",
	"patch.review",
	"command.review",
	"checkpoint.review",
]);
const MAX_WORD_CHARS = 1_024;
/** Captions are shown whole, on buttons: more than a few, or long ones, could hide the others. */
const MAX_ACTIONS = 8;
const MAX_CAPTION_CHARS = 80;
const DEVICES = "countersign.devices";
const LOG = "countersign.log";
const OUTCOME = "countersign.outcome";
const REPOSITORY = "countersign.repository";
const SALT = "countersign.salt";
const SALT_CHARS = 22;
/** 16 bytes in base64url: what else stands there is shown. */
const SALT_TEXT = /^[\w-]{22}$/;

/**
 * An enforcer whose key this device has authenticated.
 * @typedef {object} PinnedEnforcer
 * @property {string} enforcerId
 * @property {Bytes} encryptionKey
 */

/**
 * The plain members of an `approval.request` about a sealed artifact.
 * @typedef {object} ArtifactContext
 * @property {string} requestId
 * @property {string} artifactType
 * @property {string} artifactHash
 * @property {string} expiresAt as spelled
 * @property {string} enforcerId
 */

/**
 * @param {DeviceKeys} keys
 * @param {PinnedEnforcer} enforcer
 * @param {ArtifactContext} context
 * @param {Node} ciphertext
 * @returns {Promise<Artifact>}
 */
export async function openArtifact(keys, enforcer, context, ciphertext) {
	agree(context.enforcerId === enforcer.enforcerId, "enforcerId");
	const own = {
		privateKey: keys.decryption,
		publicKey: keys.bundle.encryptionKey,
	};
	const parsed = parseCiphertext("artifact", ciphertext);
	const known = { v: 1, ...context };
	const content = await open(
		parsed,
		keys.bundle.deviceId,
		own,
		enforcer.encryptionKey,
		known,
	);
	const artifact = await parseArtifact(content);
	if (artifact.hash !== context.artifactHash)
		throw Problem.of("contentHash", {});
	agree(artifact.requestId === context.requestId, "requestId");
	agree(artifact.artifactType === context.artifactType, "artifactType");
	agree(artifact.expiresAt === context.expiresAt, "expiresAt");
	return artifact;
}

/**
 * @param {boolean} same
 * @param {string} member
 */
function agree(same, member) {
	if (!same) throw Problem.of("mismatch", { member });
}

/**
 * A complete artifact in canonical form, whose hash is right.
 * @param {Bytes} bytes
 * @returns {Promise<Artifact>}
 */
export async function parseArtifact(bytes) {
	const node = parseCanonical(WHAT, bytes);
	const artifact = {
		...readArtifact(node),
		repository: await readRepository(node),
	};
	if ((await hashWithout(node, "artifactHash")) !== artifact.hash)
		throw Problem.of("contentHash", {});
	return artifact;
}

/**
 * @param {Node} node
 * @returns {Omit<Artifact, 'repository'>}
 */
function readArtifact(node) {
	const reader = new Reader(WHAT, node);
	const requestId = reader.id("requestId");
	const sessionId = reader.optionalString("sessionId");
	if (!isUuidOrUlid(requestId))
		throw reader.invalid("requestId", "UUID | ULID");
	if (sessionId !== null && !isUuidOrUlid(sessionId))
		throw reader.invalid("sessionId", "UUID | ULID");
	const repoRef = reader.string("repoRef");
	if (!isWithin(repoRef, MAX_WORD_CHARS))
		throw reader.invalid("repoRef", `<= ${MAX_WORD_CHARS}`);
	reader.oneOf("artifactHashAlg", ["SHA-256"]);
	reader.optionalObject("metadata");
	const extensions = reader.optionalObject("extensions");
	const actions = extensions === undefined ? [] : readActions(extensions);
	const rule = readRule(extensions);
	const artifact = {
		text: node.raw,
		requestId,
		artifactType: reader.oneOf("artifactType", TYPES),
		hash: reader.hash("artifactHash"),
		repoRef,
		createdAt: reader.time("createdAt"),
		expiresAt: reader.time("expiresAt"),
		sessionId,
		baseRevision: reader.optionalString("baseRevision"),
		devices: readDevices(extensions),
		outcomeKey: readOutcomeKey(extensions),
		rule,
		payload: toObject(reader.object("payload")),
		rest: readRest(node, rule !== "unknown"),
		actions: actions ?? [],
		hasOddActions: actions === null,
	};
	reader.finish();
	return artifact;
}

/**
 * Where the agent works. Decisions repeat `repoRef` in plain, so that is a salted hash, and the
 * text stands within.
 * @param {Node} node
 */
async function readRepository(node) {
	const outer = new Reader(WHAT, node);
	const repoRef = outer.string("repoRef");
	const extensions = outer.optionalObject("extensions");
	const hidden =
		extensions && new Reader(WHAT, extensions).optionalObject(REPOSITORY);
	if (hidden === undefined) return repoRef;
	const reader = new Reader(WHAT, hidden);
	const [salt, text] = [reader.string("salt"), reader.string("text")];
	reader.finish();
	if ([...salt].length !== SALT_CHARS || !isWithin(text, MAX_WORD_CHARS))
		throw outer.invalid("extensions", REPOSITORY);
	const hash = toHex(
		await sha256(utf8(`countersign repository v1\n${salt}\n${text}`)),
	);
	if (repoRef !== `sha256:${hash}`) throw outer.invalid("repoRef", REPOSITORY);
	return text;
}

/**
 * The devices that the enforcer obeys, by approver.
 * @param {Node | undefined} extensions
 */
function readDevices(extensions) {
	const named =
		extensions && new Reader(WHAT, extensions).optionalObject(DEVICES);
	/** @type {Map<string, string[]>} */
	const devices = new Map();
	if (named === undefined) return devices;
	for (const [approverId, list] of Object.entries(toObject(named))) {
		const isSound =
			isId(approverId) &&
			Array.isArray(list) &&
			list.length <= MAX_DEVICES &&
			new Set(list).size === list.length;
		if (!isSound || !list.every((id) => typeof id === "string"))
			throw new Reader(WHAT, named).invalid(approverId, "deviceId[]");
		devices.set(approverId, list.map(readDeviceId));
	}
	return devices;
}

/**
 * The key that the enforcer made for the outcome of this request. Null for a version that this page
 * does not know.
 * @param {Node | undefined} extensions
 */
function readOutcomeKey(extensions) {
	const named =
		extensions && new Reader(WHAT, extensions).optionalObject(OUTCOME);
	if (named === undefined) return null;
	const reader = new Reader(WHAT, named);
	if (reader.required("v", "1").value !== 1) return null;
	const key = fromBase64urlOf("key", reader.string("key"), 32);
	reader.finish();
	if (!isSigningKey(key)) throw Problem.of("weakKey", { what: "key" });
	return key;
}

/** @param {Node} node */
function toObject(node) {
	return /** @type {JsonObject} */ (JSON.parse(node.raw));
}

/**
 * The members without a place of their own.
 * @param {Node} node
 * @param {boolean} isRuleKnown
 * @returns {JsonObject}
 */
function readRest(node, isRuleKnown) {
	const { metadata, extensions } = toObject(node);
	/** @type {JsonObject} */
	const rest = metadata === undefined ? {} : { metadata };
	const isSalt = (/** @type {string} */ name, /** @type {unknown} */ value) =>
		name === SALT && typeof value === "string" && SALT_TEXT.test(value);
	// The repository and the rule have places of their own, the devices are compared with those
	// that are known, and the key and the checkpoint of the log say nothing to people.
	const isRead = (/** @type {string} */ name, /** @type {any} */ value) =>
		name === DEVICES ||
		name === REPOSITORY ||
		(name === RULE && isRuleKnown) ||
		((name === OUTCOME || name === LOG) && value.v === 1);
	const others = Object.entries(extensions ?? {}).filter(
		([name, value]) => !isRead(name, value) && !isSalt(name, value),
	);
	return others.length === 0
		? rest
		: { ...rest, extensions: Object.fromEntries(others) };
}

/**
 * The actions that an artifact offers. Null: it offers some that are not understood, or too many or
 * too long to be shown.
 * @param {Node} extensions
 * @returns {RequestedAction[] | null}
 */
function readActions(extensions) {
	// The name of the protocol is configured at the gateway, and stands between the two.
	const isWanted = (/** @type {string} */ name) =>
		name.startsWith("org.") && name.endsWith(".requestedActions");
	const [first, ...others] = Object.entries(toObject(extensions)).filter(
		([name]) => isWanted(name),
	);
	if (first === undefined) return [];
	const list = /** @type {JsonObject | null} */ (first[1])?.actions;
	if (others.length > 0 || !Array.isArray(list) || list.length > MAX_ACTIONS)
		return null;
	const actions = list.map(readAction);
	const ids = new Set(actions.map((action) => action?.id.toLowerCase()));
	return ids.size === actions.length && !actions.includes(null)
		? /** @type {RequestedAction[]} */ (actions)
		: null;
}

/**
 * @param {any} action
 * @returns {RequestedAction | null}
 */
function readAction(action) {
	const { id, caption, decision: verdict } = action ?? {};
	if (
		typeof id !== "string" ||
		typeof caption !== "string" ||
		caption.trim() === "" ||
		!isWithin(caption, MAX_CAPTION_CHARS)
	)
		return null;
	if (verdict !== "approve" && verdict !== "reject") return null;
	return { id, caption, verdict };
}
