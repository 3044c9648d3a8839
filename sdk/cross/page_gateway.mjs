// A gateway in this process, with the approvers' page's own code as the device behind it.

import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateKeyPairs, openKeys } from "../../web/core/keys.js";
import { FakeGateway } from "../typescript/dist/testing/fake_gateway.js";

export const TENANT = "acme";
export const ENFORCER = "build-bot";
export const APPROVER = "alice";

async function bodyOf(request) {
	const parts = [];
	for await (const part of request) parts.push(part);
	return Buffer.concat(parts).toString();
}

export class PageGateway {
	gateway = new FakeGateway();
	/** Statements for each answer about devices. */
	statements = async () => [];

	static async start() {
		const started = new PageGateway();
		started.device = await openKeys(await generateKeyPairs(), "phone");
		const { privateKey } = generateKeyPairSync("x25519");
		const { d, x } = privateKey.export({ format: "jwk" });
		const encryptionKey = Uint8Array.from(Buffer.from(x, "base64url"));
		started.enforcer = { enforcerId: ENFORCER, encryptionKey };
		started.server = createServer((request, response) =>
			started.#answer(request, response),
		);
		await new Promise((resolve) =>
			started.server.listen(0, "127.0.0.1", resolve),
		);
		const { port } = started.server.address();
		started.profiles = await mkdtemp(join(tmpdir(), "countersign-cross-"));
		const profile = `[enforcer]
id = "${ENFORCER}"
key = "${d}"

[enforcer.gateway]
urls = ["http://127.0.0.1:${port}"]
tenant = "${TENANT}"
api_key = "csk_secret"

[[enforcer.approvers]]
id = "${APPROVER}"
paired_at = "2026-02-21T12:00:00Z"
routing_token = "token"
checked_at = ""
devices = [${JSON.stringify(started.device.bundle.text)}]
`;
		const file = join(started.profiles, "default.toml");
		await writeFile(file, profile, { mode: 0o600 });
		return started;
	}

	async stop() {
		this.server.closeAllConnections();
		await new Promise((resolve) => this.server.close(resolve));
		await rm(this.profiles, { recursive: true, force: true });
	}

	async #answer(request, response) {
		const text = await bodyOf(request);
		if (/^\/v1\/approvers\/[^/]+\/devices$/.test(request.url))
			this.gateway.statements = await this.statements();
		const closed = new AbortController();
		response.on("close", () => closed.abort());
		try {
			const answer = await this.gateway.transport().send({
				method: request.method,
				path: request.url,
				body: text === "" ? undefined : text,
				signal: closed.signal,
			});
			response.writeHead(answer.status, {
				...Object.fromEntries(answer.headers),
				...(answer.body.length > 0 && { "content-type": "application/json" }),
			});
			response.end(answer.body);
		} catch {
			response.destroy();
		}
	}
}
