// Encryption to several recipients: the content under a fresh key, and that key under HPKE for each
// recipient. Nothing is used or shown before every check has passed.

import {
	fromBase64url,
	fromBase64urlOf,
	randomBytes,
	toBase64url,
	utf8,
} from "./bytes.js";
import { canonical, Reader } from "./canonical.js";
import { aesGcm, hpkeOpen, hpkeSeal } from "./hpke.js";
import { Problem } from "./problem.js";

/** @typedef {import('./json.js').Node} Node */
/** @typedef {import('./hpke.js').KeyPair} KeyPair */
/** @typedef {import('./types.js').JsonObject} JsonObject */

const ALGORITHM = "HPKE-X25519-SHA256-A256GCM";
const CONTENT_ALGORITHM = "A256GCM";
const MAX_RECIPIENTS = 256;
const WHAT = "ciphertext";

/**
 * The purpose and direction of an encryption: `info` of HPKE, and the member that names a
 * recipient. A ciphertext of one purpose never opens as one of another.
 */
export const PURPOSES = {
	artifact: { info: utf8("countersign seal v1"), recipient: "deviceId" },
	prompt: { info: utf8("countersign prompt v1"), recipient: "enforcerId" },
	hints: { info: utf8("countersign hints v1"), recipient: "enforcerId" },
};

/** @typedef {keyof typeof PURPOSES} Purpose */

/**
 * @typedef {object} WrappedKey
 * @property {string} name
 * @property {Bytes} encapsulated
 * @property {Bytes} key
 */

/**
 * A well-formed ciphertext. Only opening tells whether it is authentic.
 * @typedef {object} Ciphertext
 * @property {Purpose} purpose
 * @property {Bytes} nonce
 * @property {Bytes} data
 * @property {WrappedKey[]} recipients
 */

/**
 * Where randomness comes from; the tests have their own.
 * @typedef {object} Random
 * @property {(length: number) => Bytes} bytes
 * @property {() => Promise<KeyPair>} ephemeral
 */

/** @type {Random} */
export const RANDOM = {
	bytes: randomBytes,
	async ephemeral() {
		const generated = await crypto.subtle.generateKey(
			{ name: "X25519" },
			false,
			["deriveBits"],
		);
		const pair = /** @type {CryptoKeyPair} */ (
			/** @type {unknown} */ (generated)
		);
		const publicKey = new Uint8Array(
			await crypto.subtle.exportKey("raw", pair.publicKey),
		);
		return { privateKey: pair.privateKey, publicKey };
	},
};

/**
 * @param {Purpose} purpose
 * @param {Node} node
 * @returns {Ciphertext}
 */
export function parseCiphertext(purpose, node) {
	const reader = new Reader(WHAT, node);
	reader.oneOf("alg", [ALGORITHM]);
	reader.oneOf("enc", [CONTENT_ALGORITHM]);
	if (purpose === "prompt")
		fromBase64urlOf("deviceId", reader.string("sender"), 16);
	const nonce = fromBase64urlOf(WHAT, reader.string("nonce"), 12);
	const data = fromBase64url(WHAT, reader.string("data"));
	const list = reader.array("recipients");
	reader.finish();
	if (list.length === 0) throw Problem.of("notARecipient", {});
	if (list.length > MAX_RECIPIENTS)
		throw Problem.of("tooManyRecipients", { limit: MAX_RECIPIENTS });
	const recipients = list.map((recipient) =>
		parseWrappedKey(purpose, recipient),
	);
	if (new Set(recipients.map(({ name }) => name)).size < list.length)
		throw Problem.of("repeatedRecipient", {});
	return { purpose, nonce, data, recipients };
}

/**
 * @param {Purpose} purpose
 * @param {Node} node
 * @returns {WrappedKey}
 */
function parseWrappedKey(purpose, node) {
	const reader = new Reader(WHAT, node, "/recipients");
	const wrapped = {
		name: reader.string(PURPOSES[purpose].recipient),
		encapsulated: fromBase64urlOf(WHAT, reader.string("encapsulated"), 32),
		key: fromBase64urlOf(WHAT, reader.string("key"), 48),
	};
	reader.finish();
	return wrapped;
}

/**
 * @param {Purpose} purpose
 * @param {WrappedKey[]} recipients
 */
function recipientMembers(purpose, recipients) {
	return recipients.map(({ name, encapsulated, key }) => ({
		[PURPOSES[purpose].recipient]: name,
		encapsulated: toBase64url(encapsulated),
		key: toBase64url(key),
	}));
}

/**
 * The associated data of the content: the context and all recipients, so that the whole ciphertext
 * is one unit.
 * @param {Purpose} purpose
 * @param {JsonObject} context
 * @param {WrappedKey[]} recipients
 */
function contentData(purpose, context, recipients) {
	return utf8(
		canonical({
			...context,
			recipients: recipientMembers(purpose, recipients),
		}),
	);
}

/**
 * Encrypts to recipients of different names. `context` is an object that all sides know from
 * elsewhere.
 * @param {Purpose} purpose
 * @param {KeyPair} sender
 * @param {{ name: string, key: Bytes }[]} recipients
 * @param {JsonObject} context
 * @param {Bytes} content
 * @param {Random} random
 * @returns {Promise<JsonObject>} the members of the ciphertext
 */
export async function seal(
	purpose,
	sender,
	recipients,
	context,
	content,
	random,
) {
	const contentKey = random.bytes(32);
	const nonce = random.bytes(12);
	const { info } = PURPOSES[purpose];
	const message = {
		info,
		text: contentKey,
		associated: utf8(canonical(context)),
	};
	/** @type {WrappedKey[]} */
	const wrapped = [];
	for (const recipient of recipients) {
		const ephemeral = await random.ephemeral();
		const key = await hpkeSeal(ephemeral, recipient.key, sender, message);
		const encapsulated = ephemeral.publicKey;
		wrapped.push({ name: recipient.name, encapsulated, key });
	}
	const associated = contentData(purpose, context, wrapped);
	const data = await aesGcm("encrypt", contentKey, nonce, content, associated);
	return {
		alg: ALGORITHM,
		enc: CONTENT_ALGORITHM,
		nonce: toBase64url(nonce),
		data: toBase64url(data),
		recipients: recipientMembers(purpose, wrapped),
	};
}

/**
 * Decrypts what `sender` encrypted in the same context. The caller still has to compare an artifact
 * or a prompt with its hash: another recipient knows the content key too, and could have passed off
 * other content.
 * @param {Ciphertext} ciphertext
 * @param {string} ownName
 * @param {KeyPair} own
 * @param {Bytes} sender
 * @param {JsonObject} context
 * @returns {Promise<Bytes>}
 */
export async function open(ciphertext, ownName, own, sender, context) {
	const { purpose, nonce, data, recipients } = ciphertext;
	const wrapped = recipients.find(({ name }) => name === ownName);
	if (wrapped === undefined) throw Problem.of("notARecipient", {});
	const message = {
		info: PURPOSES[purpose].info,
		text: wrapped.key,
		associated: utf8(canonical(context)),
	};
	const contentKey = await hpkeOpen(
		wrapped.encapsulated,
		own,
		sender,
		message,
	).catch((error) => {
		throw Problem.of("keyNotOpened", {}, error);
	});
	const associated = contentData(purpose, context, recipients);
	return aesGcm("decrypt", contentKey, nonce, data, associated).catch(
		(error) => {
			throw Problem.of("contentNotOpened", {}, error);
		},
	);
}

/**
 * The members of an artifact or a prompt with fresh randomness among its extensions. Its hash
 * travels in plain: without this, anyone who sees the hash could try short texts until one has it.
 * @param {JsonObject} members
 * @param {Random} random
 * @returns {JsonObject}
 */
export function salted(members, random) {
	const extensions = /** @type {JsonObject} */ (members.extensions ?? {});
	return {
		...members,
		extensions: {
			...extensions,
			"countersign.salt": toBase64url(random.bytes(16)),
		},
	};
}
