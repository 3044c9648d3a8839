// A device of the fake approver: opens requests and signs decisions as a real one does.

import { type ArtifactContext, openArtifact } from "../core/artifact.js";
import { canonical, parse, spellTime } from "../core/canonical.js";
import { decideOpened } from "../core/decision.js";
import type { Node } from "../core/json.js";
import {
	type DeviceKeys,
	generateKeyPairs,
	openKeys,
	sign,
} from "../core/keys.js";
import { RANDOM } from "../core/seal.js";
import {
	type Subject,
	signStatement,
	spellSigned,
	spellStatement,
} from "../core/statements.js";
import type { Artifact, Choice } from "../core/types.js";

export interface FakeEnforcer {
	enforcerId: string;
	encryptionKey: Bytes;
}

export class FakeDevice {
	readonly #keys: DeviceKeys;
	readonly #subject: Subject;

	private constructor(keys: DeviceKeys, subject: Subject) {
		this.#keys = keys;
		this.#subject = subject;
	}

	static async create(subject: Subject, name: string): Promise<FakeDevice> {
		return new FakeDevice(
			await openKeys(await generateKeyPairs(), name),
			subject,
		);
	}

	get deviceId(): string {
		return this.#keys.bundle.deviceId;
	}

	get bundle(): string {
		return this.#keys.bundle.text;
	}

	open(
		enforcer: FakeEnforcer,
		context: ArtifactContext,
		ciphertext: Node,
	): Promise<Artifact> {
		return openArtifact(this.#keys, enforcer, context, ciphertext);
	}

	decide(
		artifact: Artifact,
		enforcer: FakeEnforcer,
		choice: Choice,
	): Promise<string> {
		const signing = { keys: this.#keys, random: RANDOM, now: Date.now() };
		return decideOpened(artifact, enforcer, choice, signing);
	}

	/** The decision with other members, signed anew. */
	async resign(
		decision: string,
		changed: object,
		signer: FakeDevice = this,
	): Promise<string> {
		const { signature: _, ...members } = JSON.parse(decision);
		const other = { ...members, ...changed };
		const signature = await sign(signer.#keys, canonical(other));
		return canonical({ ...other, signature });
	}

	/** A signed statement that adds another device. */
	async add(other: FakeDevice): Promise<string> {
		const at = spellTime(Date.now());
		const change = { add: other.#keys.bundle };
		const text = spellStatement(this.#subject, change, at, this.deviceId);
		return spellSigned(
			text,
			await sign(this.#keys, text),
			await sign(other.#keys, text),
		);
	}

	/** A signed statement that revokes a device. */
	revoke(deviceId: string): Promise<string> {
		const at = spellTime(Date.now());
		return signStatement(this.#keys, this.#subject, { revoke: deviceId }, at);
	}
}

export function readNode(text: string): Node {
	return parse("answer", text);
}
