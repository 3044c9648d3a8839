// A real gateway for tests, with the program as the approver.

import { execFile, spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { until } from "../support.mjs";

const run = promisify(execFile);
const built = new URL("../../../../target/debug/countersign", import.meta.url);
export const program = process.env.COUNTERSIGN_PROGRAM || fileURLToPath(built);

export class LiveGateway {
	/** Started, with the approver `me`, who is paired with the profile `default`. */
	static async start(...options) {
		const gateway = new LiveGateway();
		gateway.home = await mkdtemp(join(tmpdir(), "countersign-live-"));
		const ready = join(gateway.home, "ready.json");
		const env = { ...process.env, HOME: gateway.home };
		delete env.COUNTERSIGN_PROFILE;
		delete env.COUNTERSIGN_PROFILES;
		gateway.process = spawn(
			program,
			[
				"dev",
				"--ephemeral",
				"--listen",
				"127.0.0.1:0",
				"--ready-file",
				ready,
				...options,
			],
			{ env, stdio: "ignore" },
		);
		gateway.ready = await until(
			async () => JSON.parse(await readFile(ready, "utf8").catch(() => "null")),
			60_000,
		);
		gateway.env = { ...env, COUNTERSIGN_PROFILES: gateway.ready.profiles };
		process.env.COUNTERSIGN_PROFILES = gateway.ready.profiles;
		await gateway.cli("join", "--profile", "me", gateway.ready.invitation);
		await gateway.pair();
		return gateway;
	}

	async pair() {
		const pairing = spawn(program, ["pair"], { env: this.env });
		let told = "";
		for (const stream of [pairing.stdout, pairing.stderr])
			stream.on("data", (chunk) => {
				told += chunk;
			});
		const ended = new Promise((resolve) => pairing.on("exit", resolve));
		const [link] = await until(() =>
			/http\S*#\/pair\/[\w-]+\/[\w-]+\/[\w-]+/.exec(told),
		);
		await this.cli("pair", "--profile", "me", link);
		await ended;
	}

	/** Runs the program. It never asks: it has no terminal. */
	async cli(...words) {
		const { stdout, stderr } = await run(program, words, { env: this.env });
		return stdout + stderr;
	}

	/** The requests that wait for the approver. */
	async inbox() {
		const text = await this.cli("inbox", "--profile", "me", "--json");
		const found = text.matchAll(/"requestId":\s*"([^"]+)"/g);
		return [...new Set(Array.from(found, ([, id]) => id))];
	}

	/** The only request that waits, once there is one. */
	async onlyRequest() {
		return until(async () => {
			const [first] = await this.inbox();
			return first;
		});
	}

	approve(id, ...options) {
		return this.cli("approve", "--profile", "me", id, ...options);
	}

	reject(id, ...options) {
		return this.cli("reject", "--profile", "me", id, ...options);
	}

	async stop() {
		const ended = new Promise((resolve) => this.process.on("exit", resolve));
		this.process.kill("SIGINT");
		await ended;
		await rm(this.home, { recursive: true, force: true });
	}
}
