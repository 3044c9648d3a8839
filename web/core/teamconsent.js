// Joining a team: the link of an invitation, and the consent of the invited person, which proves that
// it had the whole link.

import { fromBase64urlOf, toBase64url } from "./bytes.js";
import { canonical, canonicalNode, Reader } from "./canonical.js";
import { readDeviceId, sign, verifies } from "./keys.js";
import { proofOf } from "./pairing.js";
import { Problem } from "./problem.js";
import { readSignature } from "./statements.js";
import { readBundles } from "./team.js";

/** @typedef {import('./json.js').Node} Node */
/** @typedef {import('./keys.js').DeviceBundle} DeviceBundle */
/** @typedef {import('./keys.js').DeviceKeys} DeviceKeys */

const WHAT = "team";
const CONSENT = "team.consent";
const MARK = "#/team/";

/**
 * The parts of an invitation's link.
 * @typedef {{ teamId: string, inviteId: string, secret: Bytes }} TeamLink
 */

/**
 * Reads a link, or the part of it from `#` on.
 * @param {string} text
 * @returns {TeamLink}
 */
export function parseTeamLink(text) {
	const at = text.lastIndexOf(MARK);
	const parts =
		at < 0
			? []
			: text
					.slice(at + MARK.length)
					.trim()
					.split("/");
	const [teamId = "", inviteId = "", secret = ""] = parts;
	try {
		if (parts.length !== 3) throw Problem.of("teamLink", {});
		for (const id of [teamId, inviteId]) fromBase64urlOf(WHAT, id, 16);
		return { teamId, inviteId, secret: fromBase64urlOf("key", secret, 16) };
	} catch (error) {
		throw Problem.of("teamLink", {}, error);
	}
}

/**
 * @param {string} page
 * @param {TeamLink} link
 */
export function spellTeamLink(page, { teamId, inviteId, secret }) {
	return `${page.replace(/\/+$/, "")}/${MARK}${teamId}/${inviteId}/${toBase64url(secret)}`;
}

/**
 * The invited person's yes, with the proof that it had the whole link.
 * @param {TeamLink} link
 * @param {import('./statements.js').Subject} subject
 * @param {DeviceBundle[]} devices for the seat, this one among them
 * @param {string} at
 * @param {DeviceKeys} keys
 */
export async function spellConsent(
	{ teamId, inviteId, secret },
	subject,
	devices,
	at,
	keys,
) {
	const text = canonical({
		v: 1,
		statement: CONSENT,
		...subject,
		teamId,
		inviteId,
		devices: devices.map((device) => device.text),
		at,
		by: keys.bundle.deviceId,
	});
	const proof = await proofOfConsent(secret, text);
	return `{"proof":"${proof}","signature":"${await sign(keys, text)}","statement":${text}}`;
}

/**
 * @param {Bytes} secret
 * @param {string} text
 */
async function proofOfConsent(secret, text) {
	const message = `countersign team invitation v1${text}`;
	return toBase64url(await proofOf(secret, message));
}

/**
 * A well-formed consent. Nobody has verified its signature or its proof yet.
 * @param {Node} node
 */
export async function parseConsent(node) {
	const outer = new Reader(WHAT, node);
	const inner = outer.object("statement");
	const signature = readSignature(outer.string("signature"));
	const proof = outer.string("proof");
	outer.finish();
	const reader = new Reader(WHAT, inner, "/statement");
	reader.version();
	reader.oneOf("statement", [CONSENT]);
	reader.time("at");
	const consent = {
		tenantId: reader.id("tenantId"),
		approverId: reader.id("approverId"),
		teamId: reader.string("teamId"),
		inviteId: reader.string("inviteId"),
		devices: await readBundles(reader),
		by: readDeviceId(reader.string("by")),
		text: canonicalNode(inner),
		proof,
		signature,
	};
	reader.finish();
	return consent;
}

/**
 * On the device that invited: the devices of the invited person, who had the whole link.
 * @param {TeamLink} link
 * @param {import('./statements.js').Subject} invited
 * @param {Node} node
 */
export async function receiveConsent(link, invited, node) {
	const consent = await parseConsent(node);
	const { approverId, devices, by, text, proof, signature } = consent;
	const isOurs =
		consent.teamId === link.teamId &&
		consent.inviteId === link.inviteId &&
		consent.tenantId === invited.tenantId &&
		approverId === invited.approverId;
	if (!isOurs) throw Problem.of("otherApprover", {});
	// A caller that measures the time of this comparison learns only about its own proof.
	if (proof !== (await proofOfConsent(link.secret, text)))
		throw Problem.of("deviceProof", {});
	const signer = devices.find(({ deviceId }) => deviceId === by);
	if (signer === undefined || !(await verifies(signer, text, signature)))
		throw Problem.of("statementSignature", {});
	return { approverId, devices };
}
