// The known answers of the repository, as far as they concern an enforcer.

import assert from "node:assert/strict";
import { test } from "node:test";
import { verifyOutcome } from "../../../web/core/outcome.js";
import { accept, DecisionRefused } from "../dist/accept.js";
import { openArtifact, parseArtifact } from "../dist/core/artifact.js";
import { fromBase64url, fromUtf8, toHex, utf8 } from "../dist/core/bytes.js";
import {
	canonical,
	canonicalNode,
	hashWithout,
	parse,
	readTime,
} from "../dist/core/canonical.js";
import { aesGcm, encapsulate, keySchedule } from "../dist/core/hpke.js";
import { JsonError, parseJson } from "../dist/core/json.js";
import { parseDeviceBundle, verifies } from "../dist/core/keys.js";
import { isEncryptionKey, isSigningKey } from "../dist/core/points.js";
import { seal } from "../dist/core/seal.js";
import { DeviceTrust } from "../dist/core/statements.js";
import { Changed } from "../dist/errors.js";
import { importEncryptionKey, OutcomeKey } from "../dist/keys.js";
import { decisionDigest, signOutcome } from "../dist/outcome.js";
import { openPending, parsePending } from "../dist/pending.js";
import { deviceOf, fromHex, importPair, vectors } from "./support.mjs";

const encryption = await vectors("encryption");

async function enforcerKeys() {
	return importEncryptionKey(fromHex(encryption.keys.enforcer.x25519Private));
}

async function trustOf(bundles, revoked = []) {
	const subject = { tenantId: encryption.tenantId, approverId: "alice" };
	const devices = await Promise.all(bundles.map(parseDeviceBundle));
	const trust = new DeviceTrust(subject, devices);
	trust.revoked = new Set(revoked);
	return trust;
}

async function ownRequest(text) {
	const artifact = await parseArtifact(utf8(text));
	const { requestId, hash, repoRef, expiresAt } = artifact;
	const { enforcerId } = encryption.keys.enforcer;
	return { requestId, artifactHash: hash, repoRef, expiresAt, enforcerId };
}

test("HPKE of RFC 9180, as the sender", async () => {
	const rfc = await vectors("rfc9180");
	const pair = async (name) => {
		const [secret, known] = [rfc[`sk${name}m`], rfc[`pk${name}m`]];
		const { privateKey } = await importPair("X25519", secret, known);
		return { privateKey, publicKey: fromHex(known) };
	};
	const [recipient, sender] = [await pair("R"), await pair("S")];
	const shared = await encapsulate(
		await pair("E"),
		recipient.publicKey,
		sender,
	);
	assert.equal(toHex(shared), rfc.shared_secret);
	const { key, nonce } = await keySchedule(shared, fromHex(rfc.info));
	assert.equal(toHex(key), rfc.key);
	const [{ aad, ct, pt }] = rfc.encryptions;
	const sealed = await aesGcm("encrypt", key, nonce, fromHex(pt), fromHex(aad));
	assert.equal(toHex(sealed), ct);
});

test("the enforcer's key", async () => {
	const { publicKey } = await enforcerKeys();
	assert.equal(toHex(publicKey), encryption.keys.enforcer.x25519Public);
});

test("bundles of devices", async () => {
	for (const which of ["phone", "laptop"]) {
		const { bundle, deviceId } = encryption.keys[which];
		assert.equal((await parseDeviceBundle(bundle)).deviceId, deviceId);
	}
	for (const { name, deviceBundle } of encryption.refusals)
		await assert.rejects(parseDeviceBundle(deviceBundle), undefined, name);
});

test("an artifact sealed to two devices, with the given randomness", async () => {
	const { artifact, keys } = encryption;
	const draws = [artifact.contentKey, toHexOf(artifact.ciphertext.nonce)];
	const ephemeral = await Promise.all(
		artifact.ephemeral.map(async ({ skE }) => {
			const pair = await importEncryptionKey(fromHex(skE));
			return { privateKey: pair.privateKey, publicKey: pair.publicKey };
		}),
	);
	const random = {
		bytes: () => fromHex(draws.shift()),
		ephemeral: async () => ephemeral.shift(),
	};
	const recipients = artifact.ciphertext.recipients.map(({ deviceId }) => {
		const which = deviceId === keys.phone.deviceId ? "phone" : "laptop";
		return { name: deviceId, key: fromHex(keys[which].x25519Public) };
	});
	const context = JSON.parse(artifact.keyAssociatedData);
	const sealed = await seal(
		"artifact",
		await enforcerKeys(),
		recipients,
		context,
		utf8(artifact.plaintext),
		random,
	);
	assert.equal(canonical(sealed), canonical(artifact.ciphertext));
	const { v: _, ...beside } = context;
	const enforcer = {
		enforcerId: keys.enforcer.enforcerId,
		encryptionKey: fromHex(keys.enforcer.x25519Public),
	};
	for (const which of ["phone", "laptop"]) {
		const opened = await openArtifact(
			await deviceOf(encryption, which),
			enforcer,
			beside,
			parse("ciphertext", JSON.stringify(sealed)),
		);
		assert.equal(opened.text, artifact.plaintext);
	}
});

function toHexOf(text) {
	return toHex(fromBase64url("ciphertext", text));
}

test("hashes", async () => {
	const { hashes } = await vectors("hashes");
	for (const { object, hashField, canonical: text, sha256 } of hashes) {
		const node = parse("artifact", JSON.stringify(object));
		assert.equal(canonicalNode(node, hashField), text);
		assert.equal(await hashWithout(node, hashField), sha256);
	}
});

test("repositories are hidden behind salted hashes", async () => {
	const { repositories } = await vectors("repository");
	for (const { salt, text, repoRef } of repositories) {
		const members = {
			...JSON.parse(encryption.artifact.plaintext),
			repoRef,
			extensions: { "countersign.repository": { salt, text } },
		};
		delete members.artifactHash;
		const node = parse("artifact", JSON.stringify(members));
		members.artifactHash = await hashWithout(node, "artifactHash");
		const artifact = await parseArtifact(utf8(canonical(members)));
		assert.equal(artifact.repository, text);
	}
});

test("Ed25519 of the drafts", async () => {
	const { publicKey, signature, rows } = await vectors("ed25519");
	const key = { signingKey: fromBase64url("key", publicKey) };
	const bytes = fromBase64url("signature", signature);
	for (const { message, valid } of rows)
		assert.equal(await verifies(key, message, bytes), valid);
});

test("decisions of the vectors are accepted, and their hints opened", async () => {
	const keys = await enforcerKeys();
	const { phone, laptop } = encryption.keys;
	const trust = await trustOf([phone.bundle, laptop.bundle]);
	const own = await ownRequest(encryption.artifact.plaintext);
	const now = readTime("2026-02-21T12:01:00Z");
	for (const { body, name } of encryption.decisions) {
		const node = parse("decision", JSON.stringify(body));
		const judged = await accept(node, own, keys, [trust], now);
		assert.equal(judged.isApproval, body.decision === "approve", name);
		assert.equal(judged.approver, "alice");
		assert.equal(
			Object.keys(judged.hints).length > 0,
			body.policyHints !== undefined,
			name,
		);
	}
});

test("decisions that must be refused", async () => {
	const refused = await vectors("refused");
	const keys = await enforcerKeys();
	const { phone, laptop } = encryption.keys;
	const trust = await trustOf([phone.bundle, laptop.bundle]);
	const own = await ownRequest(encryption.artifact.plaintext);
	for (const { name, body } of refused.decisions) {
		const node = parse("decision", JSON.stringify(body));
		const judging = accept(node, own, keys, [trust], readTime(refused.at));
		await assert.rejects(judging, DecisionRefused, name);
	}
});

test("statements are followed to the devices that the vectors name", async () => {
	const { statements } = await vectors("refused");
	for (const { name, list, inForce, revoked } of statements) {
		const trust = await trustOf([encryption.keys.phone.bundle]);
		await trust.followAll(
			list.map((item) => parse("statement", JSON.stringify(item))),
		);
		const found = trust.inForce.map(({ deviceId }) => deviceId).sort();
		assert.deepEqual(found, [...inForce].sort(), name);
		assert.deepEqual([...trust.revoked].sort(), [...revoked].sort(), name);
	}
});

test("stored requests belong to the enforcer that stored them", async () => {
	const { privateKey, accepted, refused } = await vectors("stored_request");
	const keys = await importEncryptionKey(fromBase64url("key", privateKey));
	const open = (text) => {
		const record = parsePending(text);
		const { tenantId, enforcerId } = record;
		return openPending(record, { tenantId, enforcerId, keys });
	};
	const own = await open(accepted);
	assert.equal(own.own.artifact.text, JSON.parse(accepted).artifact);
	for (const { name, record } of refused)
		await assert.rejects(() => open(record), Changed, name);
});

test("accept: each check, by its number", async () => {
	const cases = await vectors("accept");
	const keys = await importEncryptionKey(fromHex(cases.enforcerPrivate));
	const trust = await trustOf(cases.devices, cases.revoked);
	const own = await ownRequest(cases.artifact);
	const judge = async ({ decision, at }) => {
		const node = parse("decision", decision);
		return accept(node, own, keys, [trust], readTime(at ?? cases.at));
	};
	for (const each of cases.accepted) {
		const judged = await judge(each).catch((error) => {
			throw new Error(`${each.name}: ${error.message}`);
		});
		const { decision } = JSON.parse(each.decision);
		assert.equal(judged.isApproval, decision === "approve", each.name);
	}
	for (const each of cases.refused) {
		const error = await judge(each).then(
			() => assert.fail(`accepted: ${each.name}`),
			(refusal) => refusal,
		);
		const found = error instanceof DecisionRefused ? error.check : error.code;
		// A text that is no strict JSON fails before there is a decision to check.
		assert.equal(found === "json" ? 1 : found, each.check, each.name);
	}
});

test("strict JSON", async () => {
	const { accepted, refused } = await vectors("strict_json");
	const textOf = ({ text, parts, base64url }) => {
		if (parts !== undefined)
			return parts.map(([part, count]) => part.repeat(count)).join("");
		if (text !== undefined) return text;
		return fromUtf8(fromBase64url("answer", base64url));
	};
	for (const each of accepted) {
		const text = textOf(each);
		const expected = each.canonicalParts === "same" ? text : each.canonical;
		assert.equal(canonicalNode(parseJson(text)), expected, each.name);
	}
	const malformed = ["utf8", "syntax", "end", "trailing", "depth", "values"];
	for (const each of refused) {
		const text = textOf(each);
		let code = "MALFORMED_JSON";
		if (text !== null) {
			try {
				parseJson(text);
				assert.fail(`accepted: ${each.name}`);
			} catch (error) {
				assert.ok(error instanceof JsonError, `${each.name}: ${error}`);
				if (!malformed.includes(error.reason)) code = "CANONICALIZATION";
			}
		}
		assert.equal(code, each.code, each.name);
	}
});

test("keys of small order, and signatures under them", async () => {
	const cases = await vectors("small_order");
	const message = fromUtf8(fromHex(cases.message));
	for (const { name, key, usable } of cases.ed25519)
		assert.equal(isSigningKey(fromHex(key)), usable === true, name);
	for (const { name, key, usable } of cases.x25519)
		assert.equal(isEncryptionKey(fromHex(key)), usable === true, name);
	for (const { name, key, signature, valid } of cases.signatures) {
		const bundle = { signingKey: fromHex(key) };
		const found = await verifies(bundle, message, fromHex(signature));
		assert.equal(found, valid, name);
	}
});

test("an outcome as a device verifies it", async () => {
	const key = OutcomeKey.generate();
	const { tenantId } = encryption;
	const { enforcerId } = encryption.keys.enforcer;
	const artifact = {
		requestId: "01J2V8V3K6B2Z9X6G1V7Y2QK8H",
		hash: "9089a98b2d44a011b4df54f574c3cff488d2ac4bb7f265a7c850ce8d63b1e9d1",
		outcomeKey: fromBase64url("key", key.publicKey()),
		rule: null,
	};
	const decision = JSON.stringify(encryption.decisions[0].body);
	for (const effect of ["allowed", "rejected", "untrusted"]) {
		const { requestId, hash: artifactHash } = artifact;
		const digest = await decisionDigest(parse("decision", decision));
		const envelope = signOutcome(key, {
			subjects: [{ requestId, artifactHash, decision: digest }],
			tenantId,
			enforcerId,
			effect,
			at: "2026-02-21T12:01:00Z",
		});
		const about = { tenantId, enforcerId, decision };
		assert.equal(await verifyOutcome(envelope, artifact, about), effect);
	}
});
