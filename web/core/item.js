// One request as the gateway shows it, opened with the key of the enforcer that this device has
// pinned. An item that does not open, or does not agree with its plain members, can only be
// rejected.

import { openArtifact } from "./artifact.js";
import { Reader, readTime } from "./canonical.js";
import { loaded, path } from "./gateway.js";
import { asProblem, Problem } from "./problem.js";
import { ruleProblem, teamsOf } from "./rule.js";

/** @typedef {import('./json.js').Node} Node */
/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./types.js').Content} Content */
/** @typedef {import('./types.js').Item} Item */

const PAGE = 50;

/**
 * A pushed message: its id, its request, and its body. The other members of the Envelope are only
 * the gateway's word.
 * @param {Node} node
 */
export function readMessage(node) {
	const reader = new Reader("answer", node);
	return {
		msgId: reader.string("msgId"),
		msgType: reader.string("msgType"),
		requestId: reader.id("requestId"),
		createdAt: reader.optionalString("createdAt"),
		body: reader.object("body"),
	};
}

/**
 * The pages of the inbox, oldest first.
 * @param {Session} session
 * @param {number} patienceMs
 */
export async function* inboxPages({ client, identity }, patienceMs) {
	const base = path("v1", "approvers", identity.approverId, "inbox");
	let cursor = "";
	for (let isLast = false; !isLast; ) {
		const from = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
		const page = readMessage(
			await client.json({
				path: `${base}?limit=${PAGE}${from}`,
				patienceMs,
				expect: [200],
			}),
		);
		const reader = new Reader("answer", page.body);
		const nodes = reader.array("items");
		const next = reader.optional("nextCursor")?.value;
		isLast = typeof next !== "string" || next === cursor || nodes.length === 0;
		cursor = String(next);
		yield { nodes, isLast };
	}
}

/**
 * The members of an `approval.request`, read and nothing more.
 * @param {Node} body
 */
function readClaims(body) {
	const outer = new Reader("answer", body);
	const enforcerId = outer.id("enforcerId");
	const open = outer.optionalObject("artifact");
	const artifact = new Reader("answer", open ?? body);
	return {
		enforcerId,
		artifactType: artifact.string("artifactType"),
		artifactHash: artifact.hash("artifactHash"),
		expiresAt: artifact.string("expiresAt"),
		ciphertext: open === undefined ? outer.object("ciphertext") : null,
		repoRef: open === undefined ? "" : artifact.string("repoRef"),
	};
}

/**
 * Whether a message asks about the same artifact of the same enforcer as an item does.
 * @param {Node} envelope
 * @param {Item} item
 */
export function isAboutSame(envelope, { enforcerId, artifactHash }) {
	try {
		const claims = readClaims(readMessage(envelope).body);
		return (
			claims.enforcerId === enforcerId && claims.artifactHash === artifactHash
		);
	} catch (error) {
		if (error instanceof Problem) return false;
		throw error;
	}
}

/**
 * Whether a decision about what was shown is one about this item.
 * @param {Item} item
 * @param {Item} shown
 */
export function isShown(item, shown) {
	const textOf = (/** @type {Item} */ { content }) =>
		content.opened ? content.artifact.text : null;
	return (
		item.enforcerId === shown.enforcerId &&
		item.artifactHash === shown.artifactHash &&
		textOf(item) === textOf(shown)
	);
}

/**
 * Whether reading it again has changed nothing: neither opens, for the same reason.
 * @param {Item} before
 * @param {Item} item
 */
export function isStillUnopened(before, item) {
	const problemOf = (/** @type {Item} */ { content }) =>
		content.opened
			? null
			: JSON.stringify([content.problem.code, content.problem.values]);
	return (
		problemOf(before) !== null &&
		problemOf(before) === problemOf(item) &&
		isShown(before, item) &&
		before.isPaired === item.isPaired
	);
}

/**
 * @param {Session} session
 * @param {Node} envelope
 * @returns {Promise<Item>}
 */
export async function readItem(session, envelope) {
	const { msgId, requestId, createdAt, body } = readMessage(envelope);
	/** @type {Item} */
	const item = {
		requestId,
		msgId,
		state: "pending",
		enforcerId: null,
		label: labelOf(body),
		isPaired: false,
		artifactType: null,
		artifactHash: null,
		repoRef: "",
		expiresAt: null,
		receivedAt: createdAt,
		decision: null,
		withdrawalReason: null,
		content: { opened: false, problem: Problem.of("notPaired", {}) },
		strangers: [],
		approvalProblem: null,
	};
	try {
		const claims = readClaims(body);
		const { enforcerId, artifactType, artifactHash, expiresAt, repoRef } =
			claims;
		const record = session.enforcers.get(enforcerId);
		const known = {
			enforcerId,
			artifactType,
			artifactHash,
			repoRef,
			expiresAt: readTime(expiresAt) === null ? null : expiresAt,
			isPaired: record !== undefined,
			label: record === undefined ? item.label : record.label,
		};
		const content = await openItem(session, requestId, claims);
		return {
			...item,
			...known,
			content,
			strangers: await strangersOf(session, content),
			...(await judgeContent(session, enforcerId, content)),
		};
	} catch (error) {
		if (error instanceof Problem)
			return { ...item, content: { opened: false, problem: error } };
		throw error;
	}
}

/**
 * Why the rule of what opened does not let this person approve, and what its teams are called.
 * @param {Session} session
 * @param {string | null} enforcerId
 * @param {Content} content
 * @returns {Promise<Pick<Item, 'approvalProblem' | 'teamNames'>>}
 */
export async function judgeContent(session, enforcerId, content) {
	const rule = content.opened ? content.artifact.rule : null;
	const { problem, teams } = await judgeRule(session, enforcerId, rule);
	const names = [...teams].map(([id, { newest }]) => [id, newest.name]);
	return { approvalProblem: problem, teamNames: Object.fromEntries(names) };
}

/**
 * The same about a rule, with the teams of it that this device takes part in.
 * @param {Session} session
 * @param {string | null} enforcerId
 * @param {import('./rule.js').ReadRule} rule
 * @returns {Promise<{ problem: Problem | null, teams: Map<string, import('./team.js').TeamChain> }>}
 */
export async function judgeRule(session, enforcerId, rule) {
	const about = {
		approverId: session.identity.approverId,
		enforcerId: enforcerId ?? "",
		operators: session.enforcers.get(enforcerId ?? "")?.operators,
	};
	const teams = new Map();
	if (rule === null || rule === "unknown" || teamsOf(rule).length === 0)
		return { problem: ruleProblem(rule, about), teams };
	try {
		const { judgeTeamRule } = await loaded(import("./teamrule.js"));
		return await judgeTeamRule(session, rule, about);
	} catch (error) {
		return { problem: asProblem(error), teams };
	}
}

/**
 * Devices that the enforcer obeys as this person's, and that this device does not know to be in
 * force.
 * @param {Session} session
 * @param {Content} content
 */
export async function strangersOf(session, content) {
	const named = content.opened
		? content.artifact.devices.get(session.identity.approverId)
		: undefined;
	if (named === undefined) return [];
	const trust = await session.trust();
	const isKnown = (/** @type {string} */ id) =>
		trust.inForce.some(({ deviceId }) => deviceId === id);
	return named
		.filter((id) => !isKnown(id))
		.map((deviceId) => ({ deviceId, isRevoked: trust.revoked.has(deviceId) }));
}

/** @param {Node} body */
function labelOf(body) {
	const label =
		body.value instanceof Map ? body.value.get("enforcerLabel")?.value : null;
	return typeof label === "string" ? label : null;
}

/**
 * @param {Session} session
 * @param {string} requestId
 * @param {ReturnType<typeof readClaims>} claims
 * @returns {Promise<Content>}
 */
async function openItem(
	session,
	requestId,
	{ enforcerId, artifactType, artifactHash, expiresAt, ciphertext },
) {
	const refused = session.refused.get(enforcerId);
	try {
		if (ciphertext === null) throw Problem.of("notEncrypted", {});
		const enforcer = session.pinned(enforcerId);
		if (enforcer === null) throw Problem.of(refused ?? "notPaired", {});
		const context = {
			requestId,
			artifactType,
			artifactHash,
			expiresAt,
			enforcerId,
		};
		return {
			opened: true,
			artifact: await openArtifact(session.keys, enforcer, context, ciphertext),
		};
	} catch (error) {
		if (!(error instanceof Problem)) throw error;
		const isOtherKey = error.code === "keyNotOpened" && refused !== undefined;
		return {
			opened: false,
			problem: isOtherKey ? Problem.of(refused, {}) : error,
		};
	}
}

/**
 * It is not encrypted for this device.
 * @param {Item} item
 */
export function isForOthers({ content }) {
	return !content.opened && content.problem.code === "notARecipient";
}

/**
 * Whether what other devices have signed since could change what is known of it.
 * @param {Item} item
 */
export function wantsIntroduction({ content, strangers, approvalProblem }) {
	if (strangers.length > 0) return true;
	if (content.opened)
		return approvalProblem ? teamsOf(content.artifact.rule).length > 0 : false;
	const codes = [
		"notPaired",
		"endedHere",
		"disagreement",
		"otherKey",
		"keyNotOpened",
		// Its enforcer may encrypt it again.
		"notARecipient",
	];
	return codes.includes(content.problem.code);
}
