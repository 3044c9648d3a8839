// A gateway of its own, and enforcers that ask through it. Everything is in a temporary directory.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "./wait.mjs";

/** The approver that `countersign dev` invites. */
const APPROVER = "me";

export class Gateway {
	/** @type {import('node:child_process').ChildProcess[]} */
	#children = [];

	static async start(binary) {
		const gateway = new Gateway();
		gateway.binary = binary;
		gateway.home = await mkdtemp(join(tmpdir(), "page-check-"));
		gateway.environment = {
			...process.env,
			HOME: gateway.home,
			XDG_CONFIG_HOME: gateway.home,
			NO_COLOR: "1",
			// Patches of 2 MiB are measured; encrypted and as base64 they take more.
			COUNTERSIGN_LIMITS__ARTIFACT_BYTES: String(4 << 20),
		};
		const ready = join(gateway.home, "ready.json");
		const dev = gateway.#spawn([
			"dev",
			"--ephemeral",
			"--listen",
			process.env.PAGE_LISTEN ?? "127.0.0.1:0",
			"--ready-file",
			ready,
		]);
		gateway.ready = await until(
			"the gateway",
			async () => {
				if (dev.child.exitCode !== null)
					throw new Error(`the gateway ended: ${dev.output()}`);
				return JSON.parse(await readFile(ready, "utf8"));
			},
			120_000,
		);
		gateway.node = gateway.ready.nodes[0];
		gateway.page = process.env.PAGE_URL ?? gateway.node;
		gateway.profile = gateway.ready.profile ?? "default";
		gateway.environment.COUNTERSIGN_PROFILES = gateway.ready.profiles;
		gateway.dev = dev.child;
		return gateway;
	}

	#spawn(args, input) {
		const child = spawn(this.binary, args, {
			env: this.environment,
			cwd: this.home,
			stdio: ["pipe", "pipe", "pipe"],
		});
		this.#children.push(child);
		let output = "";
		const collect = (data) => {
			output += data;
		};
		child.stdout.on("data", collect);
		child.stderr.on("data", collect);
		child.stdin.on("error", () => {});
		child.stdin.end(input ?? "");
		const ended = new Promise((resolve) =>
			child.on("exit", (code) => resolve(code)),
		);
		return { child, ended, output: () => output };
	}

	/** Calls the gateway itself. */
	async call(role, path, body) {
		const answer = await fetch(`${this.node}${path}`, {
			method: "POST",
			headers: {
				authorization: `Bearer ${this.ready[role].apiKey}`,
				"content-type": "application/json",
			},
			body: JSON.stringify(body),
		});
		if (!answer.ok)
			throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
		return answer.json();
	}

	/** A link as the page has it. */
	link(text) {
		return `${this.page}/${text.slice(text.indexOf("#"))}`;
	}

	/** An invitation for the approver that has joined already: it adds a device. */
	async invite() {
		const { link } = await this.call("admin", "/platform/v1/invitations", {
			role: "approver",
			boundId: APPROVER,
		});
		return this.link(link);
	}

	/** Begins a pairing: its link and its code. The process waits until the page has answered. */
	async pair(label = "build-bot") {
		const process = this.#spawn([
			"pair",
			"--profile",
			this.profile,
			"--label",
			label,
			"--page",
			this.page,
		]);
		const found = await until("a pairing", () => {
			if (process.child.exitCode !== null)
				throw new Error(`pairing ended: ${process.output()}`);
			const link = /(https?:\/\/\S+#\/pair\/[^\s']+)/.exec(process.output());
			const code = /\b([0-9A-Z]{4}-[0-9A-Z]{4})\b/.exec(process.output());
			return link && code && { link: this.link(link[1]), code: code[1] };
		});
		return { ...found, ended: process.ended, output: process.output };
	}

	/** Asks, and goes on asking until it is decided or `stop` is called. */
	async ask(type, content, options = []) {
		const file = join(
			this.home,
			`${this.#children.length}.${typeof content === "string" ? "txt" : "json"}`,
		);
		await writeFile(
			file,
			typeof content === "string" ? content : JSON.stringify(content),
		);
		return this.#running([
			"ask",
			"--profile",
			this.profile,
			...(type ? ["--type", type] : []),
			"--timeout",
			"50m",
			...options,
			file,
		]);
	}

	run(...command) {
		return this.#running([
			"run",
			"--profile",
			this.profile,
			"--always-ask",
			"--timeout",
			"50m",
			"--",
			...command,
		]);
	}

	/** A request that no paired agent has made: the page must not show it as one. */
	async askUnsealed() {
		const requestId = randomUUID();
		await this.call("enforcer", "/v1/artifacts", {
			msgType: "artifact.submit",
			requestId,
			createdAt: new Date().toISOString(),
			sender: { enforcerId: "stranger" },
			recipient: { approverId: APPROVER },
			body: {
				artifactType: "command.review",
				artifactHash: "0".repeat(64),
				ciphertext: { alg: "A256GCM", data: "c2VhbGVk" },
				expiresAt: new Date(Date.now() + 3_000_000).toISOString(),
			},
		});
	}

	#running(args) {
		const process = this.#spawn(args);
		return {
			ended: process.ended,
			output: process.output,
			stop: () => process.child.kill("SIGINT"),
		};
	}

	async stop() {
		for (const child of this.#children)
			if (child !== this.dev && child.exitCode === null) child.kill("SIGKILL");
		const ended = new Promise((resolve) => this.dev.on("exit", resolve));
		if (this.dev.exitCode === null) {
			this.dev.kill("SIGTERM");
			await ended;
		}
		await rm(this.home, { recursive: true, force: true });
	}
}
