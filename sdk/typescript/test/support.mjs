// Shared by the tests.

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeApprover } from "@countersign/client/testing";
import { openKeys } from "../dist/core/keys.js";

const PKCS8 = {
	Ed25519: "302e020100300506032b657004220420",
	X25519: "302e020100300506032b656e04220420",
};

export async function vectors(name) {
	const path = new URL(`../../../tests/vectors/${name}.json`, import.meta.url);
	return JSON.parse(await readFile(path, "utf8"));
}

export function fromHex(text) {
	return Uint8Array.from(Buffer.from(text, "hex"));
}

export async function importPair(name, privateKey, publicKey) {
	const isSigning = name === "Ed25519";
	const subtle = crypto.subtle;
	return {
		privateKey: await subtle.importKey(
			"pkcs8",
			fromHex(PKCS8[name] + privateKey),
			{ name },
			false,
			isSigning ? ["sign"] : ["deriveBits"],
		),
		publicKey: await subtle.importKey(
			"raw",
			fromHex(publicKey),
			{ name },
			true,
			isSigning ? ["verify"] : [],
		),
	};
}

/** A device of the vectors, by its name. */
export async function deviceOf({ keys }, which) {
	const known = keys[which];
	const { ed25519Seed, ed25519Public, x25519Private, x25519Public } = known;
	const pairs = {
		signing: await importPair("Ed25519", ed25519Seed, ed25519Public),
		decryption: await importPair("X25519", x25519Private, x25519Public),
	};
	return openKeys(pairs, which);
}

/** A directory that is removed after the test. */
export async function directory(t) {
	const made = await mkdtemp(join(tmpdir(), "countersign-test-"));
	t.after(() => rm(made, { recursive: true, force: true }));
	return made;
}

/** An approver that says yes to everything, and a gated tool that counts its runs. */
export async function gatedTool(options = {}, { timeout = "5s" } = {}) {
	const approver = await FakeApprover.create(options);
	approver.when({}).approve();
	const ran = [];
	const pay = approver.client.approvalRequired("pay", { timeout }, (args) => {
		ran.push(args);
		return { paid: args.amount };
	});
	return { approver, pay, ran };
}

/** Waits until something holds. */
export async function until(holds, milliseconds = 10_000) {
	for (const end = Date.now() + milliseconds; Date.now() < end; ) {
		const found = await holds();
		if (found) return found;
		await new Promise((resolve) => setTimeout(resolve, 20));
	}
	throw new Error("it did not happen in time");
}

/** The error that something throws. */
export async function thrown(action) {
	try {
		await action();
	} catch (error) {
		return error;
	}
	throw new Error("nothing was thrown");
}
