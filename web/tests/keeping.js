// The browser's storage. Only a browser has IndexedDB; in node there is nothing to test.

import { parse } from "../core/canonical.js";
import { readItem } from "../core/item.js";
import { generateKeyPairs, openKeys, sign, verifies } from "../core/keys.js";
import { readSignature } from "../core/statements.js";
import { Store } from "../core/store.js";
import {
	assert,
	assertEqual,
	assertRefused,
	deviceOf,
	enforcerOf,
} from "./support.js";

const hasStorage = typeof indexedDB !== "undefined";

/** @type {import('./support.js').Tests} */
export const tests = {
	async "keys are kept, cannot be exported, and go with the database"() {
		if (!hasStorage) return;
		await Store.remove();
		const store = await Store.open();
		const keys = await generateKeyPairs();
		const profile = {
			tenantId: "t",
			approverId: "a",
			deviceName: "n",
			joinedAt: "now",
			credential: "secret",
			keys,
		};
		await store.keepProfile(profile);
		await assertRefused(() => store.keepProfile(profile), "storage");
		const other = await Store.open();
		const kept = (await other.profile())?.keys;
		assert(
			kept !== undefined &&
				!kept.signing.privateKey.extractable &&
				!kept.decryption.privateKey.extractable,
			"not extractable",
		);
		if (kept === undefined) return;
		const [before, after] = [
			await openKeys(keys, "n"),
			await openKeys(kept, "n"),
		];
		assertEqual(after.bundle.text, before.bundle.text);
		assert(
			await verifies(
				before.bundle,
				"message",
				readSignature(await sign(after, "message")),
			),
			"the kept key signs",
		);
		for (const key of [kept.signing.privateKey, kept.decryption.privateKey]) {
			assert(
				!(await crypto.subtle.exportKey("jwk", key).then(
					() => true,
					() => false,
				)),
				"no export",
			);
		}
		// Another tab still has it open.
		store.close();
		await Store.remove();
		const empty = await Store.open();
		assertEqual(await empty.profile(), null);
		empty.close();
		await Store.remove();
	},

	async "decisions are read in pages, newest first"() {
		if (!hasStorage) return;
		await Store.remove();
		const store = await Store.open();
		for (let at = 0; at < 5; at += 1) {
			await store.keepDecision(
				/** @type {any} */ ({
					requestId: `r${at}`,
					decidedAt: `2026-01-01T00:00:0${at}.000Z`,
				}),
			);
		}
		const ids = (/** @type {{ requestId: string }[]} */ list) =>
			list.map(({ requestId }) => requestId);
		assertEqual(ids(await store.decisions(null, 2)), ["r4", "r3"]);
		assertEqual(ids(await store.decisions("2026-01-01T00:00:03.000Z", 9)), [
			"r2",
			"r1",
			"r0",
		]);
		store.close();
		await assertRefused(() => store.decisions(null, 1), "storage");
		await Store.remove();
	},

	async "an item opens, or says why it can only be rejected"({ encryption }) {
		const { artifact } = encryption;
		const [keys, { pinned }] = [
			await deviceOf(encryption, "phone"),
			await enforcerOf(encryption),
		];
		const {
			v: _,
			enforcerId,
			...claims
		} = JSON.parse(artifact.keyAssociatedData);
		const { requestId } = claims;
		const session = (/** @type {boolean} */ isPaired, refused = new Map()) =>
			/** @type {any} */ ({
				keys,
				refused,
				identity: { approverId: "alice" },
				enforcers: new Map(isPaired ? [[enforcerId, { label: "ours" }]] : []),
				pinned: () => (isPaired ? pinned : null),
			});
		const body = {
			...claims,
			enforcerId,
			enforcerLabel: "theirs",
			ciphertext: artifact.ciphertext,
		};
		const read = (
			/** @type {object} */ change,
			isPaired = true,
			refused = new Map(),
		) =>
			readItem(
				session(isPaired, refused),
				parse(
					"answer",
					JSON.stringify({
						msgId: "m",
						msgType: "approval.request",
						requestId,
						createdAt: "x",
						body: { ...body, ...change },
					}),
				),
			);
		const opened = await read({});
		assertEqual(
			[opened.content.opened, opened.label, opened.isPaired, opened.enforcerId],
			[true, "ours", true, enforcerId],
		);
		const codeOf = (
			/** @type {import('../core/types.js').Item} */ { content },
		) => (content.opened ? "opened" : content.problem.code);
		const unpaired = await read({}, false);
		assertEqual(
			[codeOf(unpaired), unpaired.label, unpaired.isPaired],
			["notPaired", "theirs", false],
		);
		assertEqual(
			codeOf(await read({}, false, new Map([[enforcerId, "disagreement"]]))),
			"disagreement",
		);
		assertEqual(
			codeOf(
				await read(
					{ artifactHash: "0".repeat(64) },
					true,
					new Map([[enforcerId, "otherKey"]]),
				),
			),
			"otherKey",
		);
		assertEqual(
			codeOf(await read({ expiresAt: "2027-02-21T12:10:00Z" })),
			"keyNotOpened",
		);
		assertEqual(codeOf(await read({ artifactHash: "x" })), "member");
		assertEqual((await read({ artifactHash: "x" })).artifactHash, null);
		assertEqual(codeOf(await read({ ciphertext: "x" })), "member");
		assertEqual(codeOf(await read({ enforcerId: "" })), "member");
		const plain = JSON.parse(artifact.plaintext);
		const open = await read({ artifact: plain });
		assertEqual(
			[codeOf(open), open.repoRef, open.artifactHash],
			["notEncrypted", plain.repoRef, plain.artifactHash],
		);
	},
};
