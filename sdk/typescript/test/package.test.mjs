// The package as others install it: its files, its size, its types.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
	cp,
	mkdir,
	readdir,
	readFile,
	stat,
	writeFile,
} from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { directory } from "./support.mjs";

const run = promisify(execFile);
const here = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const tools = resolve(here, "../../target/sdk-typescript/node_modules");
const { default: typescript } = await import(
	join(tools, "typescript/lib/typescript.js")
);

test("it is small, and has no dependencies", async () => {
	const names = await readdir(join(here, "dist"), { recursive: true });
	let size = 0;
	for (const name of names) {
		const found = await stat(join(here, "dist", name));
		if (found.isFile()) size += found.size;
	}
	assert.ok(size < 300_000, `${size} bytes`);
	const manifest = JSON.parse(
		await readFile(join(here, "package.json"), "utf8"),
	);
	assert.equal(manifest.dependencies, undefined);
});

test("it loads nothing but its own modules and a few of Node.js", async () => {
	const script = `
		import { registerHooks } from "node:module";
		const load = (url, context, next) => (console.log(url), next(url, context));
		registerHooks({ load });
		await import("@countersign/client");`;
	const words = ["--input-type=module", "--eval", script];
	const { stdout } = await run(process.execPath, words, { cwd: here });
	const urls = stdout.trim().split("\n");
	const own = urls.filter((url) => url.startsWith("file:"));
	const dist = `${pathToFileURL(join(here, "dist"))}/`;
	assert.ok(own.includes(`${dist}index.js`));
	assert.ok(own.length <= 50, `${own.length} modules`);
	for (const url of own) {
		assert.ok(url.startsWith(dist), url);
		assert.doesNotMatch(url, /testing|ai-sdk|openai-agents/);
	}
	const allowed = [
		...["crypto", "fs", "fs/promises", "http", "https"],
		...["net", "os", "path", "tls", "util"],
	];
	const others = urls.filter((url) => !url.startsWith("file:"));
	for (const url of others)
		assert.ok(allowed.includes(url.replace("node:", "")), url);
});

test("no source file has more than 400 lines", async () => {
	for (const folder of ["src", "src/testing", "test", "test/adapters"])
		for (const name of await readdir(join(here, folder))) {
			if (!/\.(ts|mjs)$/.test(name)) continue;
			const text = await readFile(join(here, folder, name), "utf8");
			assert.ok(text.split("\n").length <= 401, `${folder}/${name}`);
		}
});

test("an adapter has at most 120 lines", async () => {
	const { exports } = JSON.parse(
		await readFile(join(here, "package.json"), "utf8"),
	);
	const adapters = Object.keys(exports).filter(
		(name) => ![".", "./testing"].includes(name),
	);
	assert.deepEqual(adapters, ["./ai-sdk", "./openai-agents"]);
	for (const name of adapters) {
		const text = await readFile(join(here, "src", `${name}.ts`), "utf8");
		assert.ok(text.split("\n").length <= 121, name);
	}
});

const HOST = {
	getCanonicalFileName: (name) => name,
	getCurrentDirectory: () => here,
	getNewLine: () => "\n",
};
const PROGRAM = `
import { Action, Approved, Client, Denied, StillWaiting } from "@countersign/client";
import { FakeApprover } from "@countersign/client/testing";

interface Transfer { iban: string; amount: number }

export async function check(client: Client, signal: AbortSignal): Promise<string> {
	const transfer = client.approvalRequired(
		"transfer",
		{ timeout: "10m", show: ["amount", "iban"] },
		async ({ iban, amount }: Transfer) => \`\${amount} to \${iban}\`,
	);
	const text: string = await transfer({ iban: "DE02", amount: 500 }, { signal });
	const approval = await client.ask({
		type: "plan.review",
		payload: { kind: "plan", text },
		actions: [Action.approve("staging", "To staging")],
		signal,
	});
	const pending = await client.submit({ call: { name: "x", args: {} }, timeout: "24h", key: "k" });
	const outcome = await client.pending(pending.toJson()).outcome({ wait: "0s" });
	if (outcome instanceof StillWaiting) return outcome.requestId;
	if (outcome instanceof Denied) return outcome.forModel();
	const approved: Approved = outcome;
	return approved.use({ name: "x", args: {} }, () => approval.approver);
}

export async function wrong(client: Client): Promise<void> {
	// @ts-expect-error there is no way to wait for ever
	await client.ask({ type: "plan.review", payload: {}, timeout: "none" });
	// @ts-expect-error a type of the protocol
	await client.ask({ type: "other", payload: {} });
	// @ts-expect-error the state is not optional
	await Client.fromProfileText("", {});
	const transfer = client.approvalRequired("transfer", {}, ({ iban }: Transfer) => iban);
	// @ts-expect-error the arguments have types
	await transfer({ iban: 1 });
	const approver = await FakeApprover.create();
	approver.when({ tool: "transfer" }).reject("not on Friday");
	approver.gateway.down();
}
`;

test("types for a strict program, without the page's", async (t) => {
	const place = await directory(t);
	const installed = join(place, "node_modules/@countersign/client");
	await mkdir(installed, { recursive: true });
	await cp(join(here, "dist"), join(installed, "dist"), { recursive: true });
	await cp(join(here, "package.json"), join(installed, "package.json"));
	await writeFile(join(place, "program.mts"), PROGRAM);
	const { options } = typescript.convertCompilerOptionsFromJson(
		{
			strict: true,
			noEmit: true,
			exactOptionalPropertyTypes: true,
			target: "es2022",
			lib: ["lib.es2022.d.ts"],
			module: "nodenext",
			types: ["node"],
			typeRoots: [join(tools, "@types")],
		},
		place,
	);
	const files = [join(place, "program.mts")];
	const program = typescript.createProgram(files, options);
	// The program and all of the package's types. Those of Node.js are not this test's.
	const checked = program
		.getSourceFiles()
		.filter(({ fileName }) => fileName.startsWith(place));
	assert.ok(checked.length > 5, `${checked.length} files`);
	const problems = [
		...program.getOptionsDiagnostics(),
		...program.getGlobalDiagnostics(),
		...checked.flatMap((file) => [
			...program.getSyntacticDiagnostics(file),
			...program.getSemanticDiagnostics(file),
		]),
	];
	assert.equal(typescript.formatDiagnostics(problems, HOST), "");
	const inside = await readdir(join(here, "dist/core"));
	assert.deepEqual(
		inside.filter((name) => name.endsWith(".d.ts")),
		[],
	);
});
