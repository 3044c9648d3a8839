// Known answers: those of RFC 9180, and the project's own, which the Rust clients are tested
// against too. Any bit changed is refused.

import { openArtifact, parseArtifact } from "../core/artifact.js";
import { fromBase64url, toBase64url, toHex, utf8 } from "../core/bytes.js";
import {
	canonical,
	canonicalNode,
	hashWithout,
	parse,
	parseCanonical,
} from "../core/canonical.js";
import {
	decideOpened,
	readDecision,
	rejectUnopened,
	verifyDecision,
} from "../core/decision.js";
import { checkGrant, grantableWords } from "../core/grants.js";
import { aesGcm, decapsulate, encapsulate, keySchedule } from "../core/hpke.js";
import {
	generateKeyPairs,
	parseDeviceBundle,
	parseEnforcerBundle,
	verifies,
} from "../core/keys.js";
import { verifyOutcome } from "../core/outcome.js";
import { Problem } from "../core/problem.js";
import { sealPrompt } from "../core/prompts.js";
import { open, parseCiphertext, RANDOM, seal } from "../core/seal.js";
import { DeviceTrust } from "../core/statements.js";
import {
	assert,
	assertEqual,
	assertRefused,
	deviceOf,
	enforcerOf,
	fromHex,
	importPair,
	scripted,
	withOneBitChanged,
} from "./support.js";

/** @type {import('./support.js').Tests} */
export const tests = {
	async "keys of a device cannot be exported"() {
		const { signing, decryption } = await generateKeyPairs();
		for (const { privateKey } of [signing, decryption]) {
			assert(!privateKey.extractable, "the private key is not extractable");
			for (const format of /** @type {const} */ (["pkcs8", "jwk", "raw"])) {
				const exported = await crypto.subtle
					.exportKey(/** @type {any} */ (format), privateKey)
					.then(
						() => true,
						() => false,
					);
				assert(!exported, `${format} of a private key`);
			}
		}
	},

	async "the vectors of RFC 9180"({ rfc9180 }) {
		const pair = async (/** @type {string} */ name) => {
			const [secret, known] = [rfc9180[`sk${name}m`], rfc9180[`pk${name}m`]];
			const { privateKey } = await importPair("X25519", secret, known);
			return { privateKey, publicKey: fromHex(known) };
		};
		const [recipient, sender, ephemeral] = [
			await pair("R"),
			await pair("S"),
			await pair("E"),
		];
		const sent = await encapsulate(ephemeral, recipient.publicKey, sender);
		assertEqual(toHex(sent), rfc9180.shared_secret, "the shared secret, sent");
		const received = await decapsulate(
			fromHex(rfc9180.enc),
			recipient,
			sender.publicKey,
		);
		assertEqual(
			toHex(received),
			rfc9180.shared_secret,
			"the shared secret, received",
		);
		const { key, nonce } = await keySchedule(received, fromHex(rfc9180.info));
		assertEqual(toHex(key), rfc9180.key, "the key");
		assertEqual(toHex(nonce), rfc9180.base_nonce, "the nonce");
		const [{ aad, ct, pt }] = rfc9180.encryptions;
		assertEqual(
			toHex(await aesGcm("encrypt", key, nonce, fromHex(pt), fromHex(aad))),
			ct,
			"the first encryption",
		);
		assertEqual(
			toHex(await aesGcm("decrypt", key, nonce, fromHex(ct), fromHex(aad))),
			pt,
			"the first decryption",
		);
	},

	async "bundles and device ids"({ encryption }) {
		for (const which of /** @type {const} */ (["phone", "laptop"])) {
			const known = encryption.keys[which];
			const { bundle } = await deviceOf(encryption, which);
			assertEqual(bundle.text, known.bundle, "the bundle");
			assertEqual(bundle.deviceId, known.deviceId, "the id");
			const read = await parseDeviceBundle(known.bundle);
			assertEqual(
				[read.deviceId, read.name, toHex(read.signingKey)],
				[known.deviceId, which, known.ed25519Public],
			);
		}
		const offer = parseEnforcerBundle(encryption.pairing.enforcerBundle);
		assertEqual(
			toHex(offer.encryptionKey),
			encryption.keys.enforcer.x25519Public,
		);
	},

	async "bundles that must be refused"({ encryption }) {
		for (const { deviceBundle } of encryption.refusals)
			await assertRefused(() => parseDeviceBundle(deviceBundle));
	},

	async "a sealed artifact opens on each device"({ encryption }) {
		const { artifact } = encryption;
		const { pinned } = await enforcerOf(encryption);
		for (const which of /** @type {const} */ (["phone", "laptop"])) {
			const opened = await openArtifact(
				await deviceOf(encryption, which),
				pinned,
				contextOf(artifact),
				nodeOf(artifact.ciphertext),
			);
			assertEqual(opened.text, artifact.plaintext);
			assertEqual(opened.payload, {
				argv: ["rm", "-rf", "build"],
				directory: "/work",
			});
			assertEqual(opened.rest, {}, "the salt is for programs");
		}
	},

	async "a sealed artifact with any bit changed is refused"({ encryption }) {
		const { artifact } = encryption;
		const [keys, { pinned }] = [
			await deviceOf(encryption, "phone"),
			await enforcerOf(encryption),
		];
		const refused = (/** @type {object} */ change) =>
			assertRefused(() =>
				openArtifact(
					keys,
					pinned,
					contextOf(artifact),
					nodeOf({ ...artifact.ciphertext, ...change }),
				),
			);
		for (const member of ["nonce", "data"]) {
			const changes = withOneBitChanged(
				fromBase64url("ciphertext", artifact.ciphertext[member]),
			);
			await Promise.all(
				[...changes].map((changed) => refused({ [member]: changed })),
			);
		}
		for (const [place, recipient] of artifact.ciphertext.recipients.entries()) {
			for (const member of ["deviceId", "encapsulated", "key"]) {
				const changes = [
					...withOneBitChanged(fromBase64url("ciphertext", recipient[member])),
				];
				await Promise.all(
					changes.map((changed) => {
						const recipients = [...artifact.ciphertext.recipients];
						recipients[place] = { ...recipient, [member]: changed };
						return refused({ recipients });
					}),
				);
			}
		}
		const { recipients } = artifact.ciphertext;
		for (const list of [
			[...recipients].reverse(),
			recipients.slice(0, 1),
			[...recipients, recipients[0]],
			[],
		]) {
			await refused({ recipients: list });
		}
	},

	async "a sealed artifact in another context, or from another sender, is refused"({
		encryption,
	}) {
		const { artifact } = encryption;
		const [keys, { pinned }] = [
			await deviceOf(encryption, "phone"),
			await enforcerOf(encryption),
		];
		const context = contextOf(artifact);
		for (const name of /** @type {(keyof typeof context)[]} */ (
			Object.keys(context)
		)) {
			const other = {
				...context,
				[name]: name === "artifactHash" ? "0".repeat(64) : `${context[name]}x`,
			};
			await assertRefused(
				() => openArtifact(keys, pinned, other, nodeOf(artifact.ciphertext)),
				"keyNotOpened",
				"mismatch",
			);
		}
		const stranger = {
			...pinned,
			encryptionKey: (await deviceOf(encryption, "laptop")).bundle
				.encryptionKey,
		};
		await assertRefused(
			() => openArtifact(keys, stranger, context, nodeOf(artifact.ciphertext)),
			"keyNotOpened",
		);
		const later = {
			...artifact.ciphertext,
			recipients: artifact.ciphertext.recipients.slice(1),
		};
		await assertRefused(
			() => openArtifact(keys, pinned, context, nodeOf(later)),
			"notARecipient",
		);
	},

	async "content that disagrees with its hash or its form is refused"({
		encryption,
	}) {
		const text = encryption.artifact.plaintext;
		await parseArtifact(utf8(text));
		await assertRefused(
			() => parseArtifact(utf8(text.replace("build", "built"))),
			"contentHash",
		);
		await assertRefused(
			() => parseArtifact(utf8(text.replace("{", "{ "))),
			"notCanonical",
		);
		await assertRefused(
			() => parseArtifact(utf8(text.replace('"repoRef"', '"repoReg"'))),
			"member",
		);
		await assertRefused(
			() => parseArtifact(Uint8Array.of(0xff, ...utf8(text))),
			"json",
		);
		const twice = text.replace(
			'"directory":"/work"',
			'"directory":"/work","directory":"/work"',
		);
		await assertRefused(() => parseArtifact(utf8(twice)), "json");
	},

	async "what an enforcer did, as it signed it"({ outcome }) {
		const artifact = await parseArtifact(utf8(outcome.artifact));
		assertEqual(artifact.rest, {}, "the key is not shown");
		for (const { envelope, outcome: expected } of outcome.accepted) {
			assertEqual(
				await verifyOutcome(envelope, artifact, outcome),
				expected,
				"the outcome",
			);
		}
		for (const { name, envelope } of outcome.refused) {
			const isRefused = await verifyOutcome(envelope, artifact, outcome).then(
				() => false,
				(error) => error instanceof Problem,
			);
			assert(isRefused, name);
		}
		const [{ envelope }] = outcome.accepted;
		await assertRefused(
			() => verifyOutcome(envelope, { ...artifact, outcomeKey: null }, outcome),
			"outcomeSignature",
		);
	},

	async "the repository behind its hash"({ encryption, repository }) {
		const { artifactHash: _, ...members } = JSON.parse(
			encryption.artifact.plaintext,
		);
		const read = async (
			/** @type {string} */ repoRef,
			/** @type {unknown} */ hidden,
		) => {
			const extensions = {
				...members.extensions,
				"countersign.repository": hidden,
			};
			const text = canonical({ ...members, repoRef, extensions });
			const artifactHash = await hashWithout(
				parse("artifact", text),
				"artifactHash",
			);
			return parseArtifact(
				utf8(canonical({ ...members, repoRef, extensions, artifactHash })),
			);
		};
		for (const { salt, text, repoRef } of repository.repositories) {
			const artifact = await read(repoRef, { salt, text });
			assertEqual(
				[artifact.repository, artifact.repoRef, artifact.rest],
				[text, repoRef, {}],
				"what it hides",
			);
			const others = [
				{ salt, text: `${text}x` },
				{ salt: salt.slice(1), text },
				{ salt, text, more: 1 },
				{ salt },
				text,
				null,
			];
			for (const other of others)
				await assertRefused(() => read(repoRef, other), "member");
			await assertRefused(() => read(text, { salt, text }), "member");
		}
	},

	async "what every implementation refuses"({ encryption, refused }) {
		const [keys, { pinned }] = [
			await deviceOf(encryption, "phone"),
			await enforcerOf(encryption),
		];
		for (const { name, ciphertext, context } of refused.ciphertexts) {
			const problem = await openArtifact(
				keys,
				pinned,
				context,
				nodeOf(ciphertext),
			).then(
				() => null,
				(error) => error,
			);
			assert(problem instanceof Problem, `${name}: ${problem}`);
		}
		const artifact = await parseArtifact(utf8(encryption.artifact.plaintext));
		for (const { name, body } of refused.decisions) {
			const verifying = async () =>
				verifyDecision(readDecision(nodeOf(body)), artifact, keys.bundle);
			const problem = await verifying().then(
				() => null,
				(error) => error,
			);
			// A reader of past decisions accepts those that have ended.
			assert(
				name === "past its end" ? problem === null : problem instanceof Problem,
				`${name}: ${problem}`,
			);
		}
		for (const { name, list, inForce, revoked } of refused.statements) {
			const trust = new DeviceTrust(
				{ tenantId: encryption.tenantId, approverId: "alice" },
				[keys.bundle],
			);
			await trust.followAll(list.map(nodeOf));
			assertEqual(
				[
					trust.inForce.map(({ deviceId }) => deviceId),
					[...trust.revoked].sort(),
				],
				[inForce, [...revoked].sort()],
				name,
			);
		}
	},

	async "decisions, byte for byte"({ encryption }) {
		const [keys, { pinned }] = [
			await deviceOf(encryption, "phone"),
			await enforcerOf(encryption),
		];
		const artifact = await parseArtifact(utf8(encryption.artifact.plaintext));
		const [rejection, approval, answered] = encryption.decisions;
		const rejecting = {
			keys,
			now: 0,
			random: scripted(
				[toHex(fromBase64url("key", rejection.body.nonce))],
				null,
			),
		};
		const rejected = await decideOpened(
			artifact,
			pinned,
			{ verdict: "reject" },
			rejecting,
		);
		assertEqual(rejected, canonical(rejection.body));
		const { sealedHints, body } = approval;
		const [recipient] = sealedHints.ciphertext.recipients;
		const draws = [
			toHex(fromBase64url("key", body.nonce)),
			sealedHints.contentKey,
			toHex(fromBase64url("key", sealedHints.ciphertext.nonce)),
		];
		const ephemeral = {
			skE: sealedHints.ephemeral[0].skE,
			encapsulated: fromBase64url("key", recipient.encapsulated),
		};
		const approving = {
			keys,
			now: Date.parse(body.expiresAt) - 3_600_000,
			random: scripted(draws, ephemeral),
		};
		/** @type {import('../core/types.js').Choice} */
		const choice = {
			verdict: "approve",
			scope: "timebox",
			lastsSeconds: 3_600,
			reason: "fine",
			grant: { match: "prefix", argv: ["git", "commit"] },
		};
		assertEqual(
			await decideOpened(artifact, pinned, choice, approving),
			canonical(body),
		);
		const hints = answered.sealedHints;
		const answering = {
			keys,
			now: 0,
			random: scripted(
				[
					toHex(fromBase64url("key", answered.body.nonce)),
					hints.contentKey,
					toHex(fromBase64url("key", hints.ciphertext.nonce)),
				],
				{
					skE: hints.ephemeral[0].skE,
					encapsulated: fromBase64url(
						"key",
						hints.ciphertext.recipients[0].encapsulated,
					),
				},
			),
		};
		const { answers } = JSON.parse(hints.plaintext);
		assertEqual(
			await decideOpened(
				artifact,
				pinned,
				{ verdict: "approve", answers },
				answering,
			),
			canonical(answered.body),
		);
		for (const text of [canonical(rejection.body), canonical(body)]) {
			await verifyDecision(
				readDecision(parse("decision", text)),
				artifact,
				keys.bundle,
			);
			const other = readDecision(
				parse(
					"decision",
					text.replace('"once"', '"session"').replace('"timebox"', '"session"'),
				),
			);
			await assertRefused(
				() => verifyDecision(other, artifact, keys.bundle),
				"decisionSignature",
			);
		}
		for (const changed of withOneBitChanged(
			fromBase64url("signature", rejection.body.signature),
		)) {
			const decision = readDecision(
				nodeOf({ ...rejection.body, signature: changed }),
			);
			await assertRefused(
				() => verifyDecision(decision, artifact, keys.bundle),
				"decisionSignature",
			);
		}
	},

	async "choices that make no sense are refused"({ encryption }) {
		const [keys, { pinned }] = [
			await deviceOf(encryption, "phone"),
			await enforcerOf(encryption),
		];
		const artifact = await parseArtifact(utf8(encryption.artifact.plaintext));
		const signing = {
			keys,
			now: Date.now(),
			random: scripted(Array(7).fill("00".repeat(16)), null),
		};
		/** @type {[import('../core/types.js').Choice, string][]} */
		const refused = [
			[{ verdict: "approve", lastsSeconds: 60 }, "onceHasNoTime"],
			[{ verdict: "approve", answers: [] }, "oddAnswers"],
			[{ verdict: "approve", answers: [[]] }, "oddAnswers"],
			[{ verdict: "approve", answers: [["yes"], [""]] }, "oddAnswers"],
			[{ verdict: "approve", answers: [["x".repeat(4_001)]] }, "oddAnswers"],
			[{ verdict: "approve", answers: Array(17).fill(["x"]) }, "oddAnswers"],
			[{ verdict: "approve", answers: [Array(65).fill("x")] }, "oddAnswers"],
			[
				{ verdict: "approve", scope: "timebox", lastsSeconds: 60 },
				"grantIncomplete",
			],
			[
				{ verdict: "approve", scope: "session", grant: { match: "same" } },
				"grantIncomplete",
			],
			[
				{
					verdict: "approve",
					scope: "timebox",
					lastsSeconds: 86_401,
					grant: { match: "same" },
				},
				"grantTooLong",
			],
			[{ verdict: "approve", actionId: "staging" }, "actionUnknown"],
		];
		for (const [choice, code] of refused)
			await assertRefused(
				() => decideOpened(artifact, pinned, choice, signing),
				code,
			);
		const long = { ...signing, random: scripted(["00".repeat(16)], null) };
		await assertRefused(
			() =>
				decideOpened(
					artifact,
					pinned,
					{ verdict: "reject", reason: "x".repeat(4_001) },
					long,
				),
			"longReason",
		);
		const subject = {
			requestId: artifact.requestId,
			artifactHash: artifact.hash,
			repoRef: "",
			enforcer: null,
		};
		const unpaired = { ...signing, random: scripted(["00".repeat(16)], null) };
		await assertRefused(
			() => rejectUnopened(subject, "because", unpaired),
			"hintsForNobody",
		);
		const body = await rejectUnopened(subject, undefined, {
			...signing,
			random: scripted(["00".repeat(16)], null),
		});
		await verifyDecision(
			readDecision(parse("decision", body)),
			artifact,
			keys.bundle,
		);
	},

	async "permissions fit the request that they are given with"({ encryption }) {
		const artifact = await parseArtifact(utf8(encryption.artifact.plaintext));
		/** @type {(payload: any, argv: string[]) => void} */
		const check = (payload, argv) =>
			checkGrant({ match: "prefix", argv }, { ...artifact, payload });
		check({ argv: ["git", "commit", "-m", "a b"] }, ["git", "commit"]);
		check({ command: "git  commit -a" }, ["git", "commit"]);
		checkGrant({ match: "same" }, artifact);
		/** @type {[any, string[], string][]} */
		const refused = [
			[{ argv: ["git"] }, [], "grantWords"],
			[{ argv: ["git"] }, ["git", ""], "grantWords"],
			[{ argv: ["git"] }, ["a\nb"], "grantWords"],
			[{ argv: ["git"] }, ["git", "commit"], "grantOther"],
			[{ argv: ["git"] }, ["gi"], "grantOther"],
			[{ command: "git commit; rm -rf /" }, ["git"], "grantNotPlain"],
			[{ command: "git $(x)" }, ["git"], "grantNotPlain"],
			[{ patch: "+x" }, ["git"], "grantNotPlain"],
			[{ argv: ["git", 1] }, ["git"], "grantNotPlain"],
			[
				{ argv: ["/bin/bash-5.2", "-c"] },
				["/bin/bash-5.2"],
				"grantRunsAnother",
			],
			[{ argv: ["A=1", "x"] }, ["A=1"], "grantRunsAnother"],
		];
		for (const [payload, argv, code] of refused)
			await assertRefused(() => check(payload, argv), code);
		assertEqual(
			grantableWords({ ...artifact, payload: { argv: ["sudo", "ls"] } }),
			null,
		);
		assertEqual(grantableWords(artifact), ["rm", "-rf", "build"]);
	},

	async "a prompt as it is sent opens at its enforcer"({ encryption }) {
		const [keys, { pinned, pair }] = [
			await deviceOf(encryption, "phone"),
			await enforcerOf(encryption),
		];
		const prompt = {
			requestId: "01J2V9K3M2W1J5R6S7T8U9V0W1",
			createdAt: "2026-02-21T12:01:00Z",
			text: "a\u0000b 😀",
			sessionId: "s",
		};
		const { ciphertext, promptHash, ...plain } = await sealPrompt(
			keys,
			"alice",
			pinned,
			prompt,
			RANDOM,
		);
		assert(!("text" in plain), "the text is not in plain");
		const { requestId, artifactType } = plain;
		const context = /** @type {any} */ ({
			v: 1,
			requestId,
			artifactType,
			promptHash,
			approverId: "alice",
			enforcerId: pinned.enforcerId,
			deviceId: keys.bundle.deviceId,
		});
		const parsed = parseCiphertext("prompt", nodeOf(ciphertext));
		const content = parseCanonical(
			"answer",
			await open(
				parsed,
				pinned.enforcerId,
				pair,
				keys.bundle.encryptionKey,
				context,
			),
		);
		assertEqual(await hashWithout(content, "promptHash"), promptHash);
		const { text, sessionId, extensions } = JSON.parse(content.raw);
		assertEqual(
			[text, sessionId, extensions["countersign.salt"].length],
			["a\ufffdb 😀", "s", 22],
		);
		await assertRefused(
			() =>
				sealPrompt(keys, "alice", pinned, { ...prompt, text: " \n" }, RANDOM),
			"emptyPrompt",
		);
		await assertRefused(
			() =>
				sealPrompt(
					keys,
					"alice",
					pinned,
					{ ...prompt, text: "x".repeat(200_000) },
					RANDOM,
				),
			"longPrompt",
		);
	},

	async "a prompt, byte for byte"({ encryption }) {
		const { prompt } = encryption;
		const [keys, { pinned, pair }] = [
			await deviceOf(encryption, "phone"),
			await enforcerOf(encryption),
		];
		const [recipient] = prompt.ciphertext.recipients;
		const ephemeral = {
			skE: prompt.ephemeral[0].skE,
			encapsulated: fromBase64url("key", recipient.encapsulated),
		};
		const random = scripted(
			[prompt.contentKey, toHex(fromBase64url("key", prompt.ciphertext.nonce))],
			ephemeral,
		);
		const sender = {
			privateKey: keys.decryption,
			publicKey: keys.bundle.encryptionKey,
		};
		const context = JSON.parse(prompt.keyAssociatedData);
		const to = { name: pinned.enforcerId, key: pinned.encryptionKey };
		const sealed = await seal(
			"prompt",
			sender,
			[to],
			context,
			utf8(prompt.plaintext),
			random,
		);
		assertEqual(
			canonical({ ...sealed, sender: keys.bundle.deviceId }),
			canonical(prompt.ciphertext),
		);
		const parsed = parseCiphertext("prompt", nodeOf(prompt.ciphertext));
		const opened = await open(
			parsed,
			pinned.enforcerId,
			pair,
			keys.bundle.encryptionKey,
			context,
		);
		assertEqual(toBase64url(opened), toBase64url(utf8(prompt.plaintext)));
		const { sender: _, ...hints } = prompt.ciphertext;
		const asHints = parseCiphertext("hints", nodeOf(hints));
		await assertRefused(
			() =>
				open(
					asHints,
					pinned.enforcerId,
					pair,
					keys.bundle.encryptionKey,
					context,
				),
			"keyNotOpened",
		);
	},

	async "signatures with a key or a first half of small order are refused"({
		encryption,
	}) {
		const { bundle } = await deviceOf(encryption, "phone");
		const identity = fromHex(`01${"00".repeat(31)}`);
		const forged = new Uint8Array(64);
		forged.set(identity);
		assert(
			!(await verifies(
				{ ...bundle, signingKey: identity },
				"anything",
				forged,
			)),
			"a key of small order",
		);
		assert(
			!(await verifies(bundle, "anything", forged)),
			"a signature of small order",
		);
	},

	async "known answers of Ed25519 and of hashes"({
		ed25519,
		encryption,
		hashes,
	}) {
		const { bundle } = await deviceOf(encryption, "phone");
		const device = {
			...bundle,
			signingKey: fromBase64url("key", ed25519.publicKey),
		};
		for (const { message, valid } of ed25519.rows) {
			assertEqual(
				await verifies(
					device,
					message,
					fromBase64url("signature", ed25519.signature),
				),
				valid,
				message,
			);
		}
		for (const {
			object,
			canonical: text,
			sha256,
			hashField,
		} of hashes.hashes) {
			assertEqual(canonicalNode(nodeOf(object), hashField), text);
			assertEqual(await hashWithout(nodeOf(object), hashField), sha256);
		}
	},
};

/** @param {any} value */
function nodeOf(value) {
	return parse("answer", JSON.stringify(value));
}

/** @param {any} artifact */
function contextOf(artifact) {
	const { v, ...context } = JSON.parse(artifact.keyAssociatedData);
	assertEqual(v, 1);
	return context;
}
