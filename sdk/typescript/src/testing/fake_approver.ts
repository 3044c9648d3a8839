// An approver for tests, paired with a client. Requests without a rule are rejected.

import { isDeepStrictEqual } from "node:util";
import { type Client, openClient } from "../client.js";
import type { ArtifactContext } from "../core/artifact.js";
import { randomBytes, toHex } from "../core/bytes.js";
import { spellTime } from "../core/canonical.js";
import type { Node } from "../core/json.js";
import { parseCiphertext } from "../core/seal.js";
import type { Artifact, Choice } from "../core/types.js";
import { CountersignError } from "../errors.js";
import { importEncryptionKey } from "../keys.js";
import type { ClientOptions } from "../options.js";
import type { ApproverRecord, Profile } from "../profile.js";
import type { State } from "../state.js";
import { AskedRequest } from "./asked_request.js";
import { FakeDevice, type FakeEnforcer, readNode } from "./fake_device.js";
import { FakeGateway, type SealedSubmission } from "./fake_gateway.js";

const TENANT = "fake-tenant";
const ENFORCER = "fake-enforcer";
const APPROVER = "fake-approver";
const NO_RULE: Choice = {
	verdict: "reject",
	reason: "the test has no rule for this call",
};

type Matcher =
	| { tool?: string; args?: object; type?: string }
	| ((asked: AskedRequest) => boolean);

/** The approver's answer to requests that match. The last rule that matches counts. */
export interface FakeRule {
	approve(options?: { reason?: string; actionId?: string }): FakeApprover;
	reject(reason?: string, options?: { actionId?: string }): FakeApprover;
	/** Decides nothing: the request waits until a test decides, or its time is over. */
	wait(): FakeApprover;
}

/** A state in memory, for tests only: it forgets. */
class MemoryState implements State {
	readonly #entries = new Map<string, string>();

	async load(name: string): Promise<string | null> {
		return this.#entries.get(name) ?? null;
	}

	async store(name: string, text: string): Promise<void> {
		this.#entries.set(name, text);
	}

	async create(name: string, text: string): Promise<boolean> {
		if (this.#entries.has(name)) return false;
		this.#entries.set(name, text);
		return true;
	}
}

export class FakeApprover {
	/** The gateway between the two, which can be made to fail and to lie. */
	readonly gateway: FakeGateway;
	/** Every request so far, in order. */
	readonly asked: AskedRequest[] = [];
	readonly #rules: { matcher: Matcher; choice: Choice | null }[] = [];
	readonly #profile: Profile;
	readonly #enforcer: FakeEnforcer;
	/** The device that was paired, and those that it added. */
	readonly #devices: FakeDevice[];
	/** Everyone who is paired with the client. */
	readonly #paired: FakeApprover[];
	readonly name: string;
	readonly #state: State;
	#client: Client | undefined;
	#lastDecision: string | undefined;

	private constructor(
		profile: Profile,
		enforcer: FakeEnforcer,
		device: FakeDevice,
		state: State,
		name: string,
		beside?: FakeApprover,
	) {
		this.#profile = profile;
		this.#enforcer = enforcer;
		this.#devices = [device];
		this.#state = state;
		this.name = name;
		this.gateway = beside?.gateway ?? new FakeGateway();
		this.#client = beside?.client;
		this.#paired = beside === undefined ? [] : beside.#paired;
		this.#paired.push(this);
		if (beside !== undefined) return;
		this.gateway.onSubmit = (submission) => this.#deliver(submission);
		this.gateway.tamper = (requestId, decision) =>
			this.#tamper(requestId, decision);
	}

	/** An approver, and a client that is paired with it. */
	static async create(
		options: ClientOptions & { state?: State } = {},
	): Promise<FakeApprover> {
		const subject = { tenantId: TENANT, approverId: APPROVER };
		const device = await FakeDevice.create(subject, "fake device");
		const privateKey = randomBytes(32);
		const { publicKey } = await importEncryptionKey(privateKey);
		const profile: Profile = {
			enforcerId: ENFORCER,
			tenantId: TENANT,
			privateKey,
			gateway: { urls: [], ca: undefined, allowHttp: false, apiKey: "" },
			approvers: [recordOf(APPROVER, device)],
		};
		const enforcer = { enforcerId: ENFORCER, encryptionKey: publicKey };
		const state = options.state ?? new MemoryState();
		const fake = new FakeApprover(profile, enforcer, device, state, APPROVER);
		fake.#client = await fake.newClient(options);
		return fake;
	}

	/** Another approver who is paired with the same client. */
	async addApprover(name: string): Promise<FakeApprover> {
		const subject = { tenantId: TENANT, approverId: name };
		const device = await FakeDevice.create(subject, "fake device");
		return this.addApproverWith(name, device);
	}

	/** @internal One that may have the same device as somebody else. */
	addApproverWith(name: string, device: FakeDevice): FakeApprover {
		this.#profile.approvers.push(recordOf(name, device));
		return new FakeApprover(
			this.#profile,
			this.#enforcer,
			device,
			this.#state,
			name,
			this,
		);
	}

	/** The client that is paired with this approver. */
	get client(): Client {
		return this.#client as Client;
	}

	/** Another client with the same profile and state, as after a restart. */
	newClient(options: ClientOptions = {}): Promise<Client> {
		return openClient(
			{
				profile: async () => this.#profile,
				state: this.#state,
				transport: () => this.gateway.transport(),
			},
			options,
		);
	}

	/** A rule for requests: `when({ tool: "refund" }).reject("not on Friday")`. */
	when(matcher: Matcher): FakeRule {
		const rule = (choice: Choice | null) => {
			this.#rules.push({ matcher, choice });
			return this;
		};
		return {
			approve: (options = {}) => rule({ verdict: "approve", ...options }),
			reject: (reason, options = {}) =>
				rule({
					verdict: "reject",
					...(reason === undefined ? {} : { reason }),
					...options,
				}),
			wait: () => rule(null),
		};
	}

	/** Adds a device, which decides from now on. */
	async addDevice(name = "another fake device"): Promise<void> {
		const subject = { tenantId: TENANT, approverId: this.name };
		const added = await FakeDevice.create(subject, name);
		this.gateway.statements.push(await this.#device.add(added));
		this.#devices.push(added);
	}

	/** Publishes a revocation of the device that decides. It goes on signing, as a thief would. */
	async revokeDevice(): Promise<void> {
		const signer = this.#devices[0] as FakeDevice;
		this.gateway.statements.push(await signer.revoke(this.#device.deviceId));
	}

	/** @internal The device that decides. */
	get device(): FakeDevice {
		return this.#device;
	}

	get #device(): FakeDevice {
		return this.#devices[this.#devices.length - 1] as FakeDevice;
	}

	/** Hands a request to everyone who can open it. A single approver must be able to. */
	async #deliver({ requestId, body }: SealedSubmission): Promise<void> {
		const { value } = readNode(body);
		const members = value as Map<string, { value: unknown; raw: string }>;
		const ciphertext = readNode(String(members.get("ciphertext")?.raw));
		for (const approver of this.#paired) {
			const isFor = approver.#devices.some(({ deviceId }) =>
				isRecipient(ciphertext, deviceId),
			);
			if (this.#paired.length === 1 || isFor)
				await approver.#receive(requestId, members, ciphertext);
		}
	}

	async #receive(
		requestId: string,
		members: Map<string, { value: unknown }>,
		ciphertext: Node,
	): Promise<void> {
		const text = (name: string) => String(members.get(name)?.value);
		const context = {
			requestId,
			artifactType: text("artifactType"),
			artifactHash: text("artifactHash"),
			expiresAt: text("expiresAt"),
			enforcerId: ENFORCER,
		};
		const artifact = await this.#open(context, ciphertext);
		const asked = new AskedRequest(artifact, (choice) =>
			this.#decide(artifact, choice),
		);
		this.asked.push(asked);
		const choice = this.#choiceFor(asked);
		if (choice !== null) await this.#decide(artifact, choice);
	}

	/** On the newest device that can: one that was revoked gets no more requests. */
	async #open(context: ArtifactContext, ciphertext: Node): Promise<Artifact> {
		for (const device of [...this.#devices].reverse()) {
			if (isRecipient(ciphertext, device.deviceId))
				return device.open(this.#enforcer, context, ciphertext);
		}
		throw new CountersignError("the request is encrypted to no device");
	}

	async #decide(artifact: Artifact, choice: Choice): Promise<void> {
		const device = this.#device;
		const decision = await device.decide(artifact, this.#enforcer, choice);
		this.gateway.decide(artifact.requestId, decision);
	}

	#choiceFor(asked: AskedRequest): Choice | null {
		const matches = ({ matcher }: { matcher: Matcher }) =>
			typeof matcher === "function"
				? matcher(asked) === true
				: (matcher.tool === undefined || matcher.tool === asked.tool) &&
					(matcher.type === undefined || matcher.type === asked.type) &&
					(matcher.args === undefined ||
						isDeepStrictEqual(matcher.args, asked.args));
		const rule = this.#rules.filter(matches).pop();
		return rule === undefined ? NO_RULE : rule.choice;
	}

	async #tamper(requestId: string, decision: string): Promise<string> {
		const device = this.#device;
		const approval = { decision: "approve" };
		const { lie } = this.gateway;
		if (lie === "forge") {
			const subject = { tenantId: TENANT, approverId: APPROVER };
			const forger = await FakeDevice.create(subject, "forger");
			return device.resign(decision, approval, forger);
		}
		if (lie === "swapArtifact") {
			const artifactHash = toHex(randomBytes(32));
			return device.resign(decision, { ...approval, artifactHash });
		}
		if (lie === "replay") {
			const other = requestId.replace(/.$/, (end) => (end === "0" ? "1" : "0"));
			const made = { ...approval, requestId: other };
			return this.#lastDecision ?? device.resign(decision, made);
		}
		if (JSON.parse(decision).decision === "approve")
			this.#lastDecision = decision;
		return decision;
	}
}

function recordOf(id: string, device: FakeDevice): ApproverRecord {
	return {
		id,
		devices: [device.bundle],
		revoked: [],
		addedBy: new Map(),
		checkedAt: spellTime(0),
		routingToken: toHex(randomBytes(16)),
	};
}

function isRecipient(ciphertext: Node, deviceId: string): boolean {
	const { recipients } = parseCiphertext("artifact", ciphertext);
	return recipients.some(({ name }) => name === deviceId);
}
