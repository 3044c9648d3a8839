// A request as the fake approver got it: decrypted and verified.

import type { JsonObject } from "../call.js";
import type { Artifact, Choice } from "../core/types.js";

/** @internal */
export type Decide = (choice: Choice) => Promise<void>;

export class AskedRequest {
	readonly requestId: string;
	/** Such as `command.review`. */
	readonly type: string;
	readonly payload: JsonObject;
	/** The name of the tool, if the request is about a call. */
	readonly tool: string | undefined;
	/** The arguments of the call; empty if the request is about something else. */
	readonly args: JsonObject;
	/** As the person is shown it. */
	readonly repository: string;
	readonly metadata: JsonObject;
	readonly expiresAt: string;
	/** The actions that it offers. */
	readonly actions: { id: string; caption: string }[];
	/** @internal How many of which people are asked, if there are several. */
	readonly rule: Artifact["rule"];
	/** @internal */
	readonly artifact: Artifact;
	readonly #decide: Decide;

	/** @internal */
	constructor(artifact: Artifact, decide: Decide) {
		const payload = artifact.payload as JsonObject;
		const isCall = payload.kind === "tool";
		this.requestId = artifact.requestId;
		this.type = artifact.artifactType;
		this.payload = payload;
		this.tool = isCall ? String(payload.tool) : undefined;
		this.args = isCall ? (payload.input as JsonObject) : {};
		this.repository = artifact.repository;
		this.metadata = (artifact.rest.metadata ?? {}) as JsonObject;
		this.expiresAt = artifact.expiresAt;
		this.actions = artifact.actions.map(({ id, caption }) => ({ id, caption }));
		this.rule = artifact.rule;
		this.artifact = artifact;
		this.#decide = decide;
	}

	/** Signs an approval, if nobody has decided yet. */
	approve(options: { reason?: string; actionId?: string } = {}): Promise<void> {
		return this.#decide({ verdict: "approve", ...options });
	}

	/** Signs a rejection, if nobody has decided yet. */
	reject(reason?: string, options: { actionId?: string } = {}): Promise<void> {
		const given = reason === undefined ? {} : { reason };
		return this.#decide({ verdict: "reject", ...given, ...options });
	}
}
