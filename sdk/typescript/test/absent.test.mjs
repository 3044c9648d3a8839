// The package where neither a framework nor OpenTelemetry is installed.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { directory } from "./support.mjs";

const run = promisify(execFile);
const here = resolve(dirname(fileURLToPath(import.meta.url)), "..");

const PROGRAM = `
import { registerHooks } from "node:module";
const loaded = new Set();
registerHooks({
	load(url, context, next) {
		loaded.add(url);
		return next(url, context);
	},
});
const { gate } = await import("@countersign/client/ai-sdk");
await import("@countersign/client/openai-agents");
const { FakeApprover } = await import("@countersign/client/testing");
const approver = await FakeApprover.create();
approver.when({}).approve();
const { pay } = gate({ pay: { execute: ({ amount }) => amount } }, approver.client);
const paid = await pay.execute({ amount: 5 }, { toolCallId: "1" });
const others = [...loaded].filter(
	(url) => !url.startsWith("node:") && !url.includes("/@countersign/client/dist/"),
);
console.log(JSON.stringify({ paid, count: loaded.size, others }));
`;

test("it works, and loads nothing but itself", async (t) => {
	const place = await directory(t);
	const installed = join(place, "node_modules/@countersign/client");
	await mkdir(installed, { recursive: true });
	await cp(join(here, "dist"), join(installed, "dist"), { recursive: true });
	await cp(join(here, "package.json"), join(installed, "package.json"));
	await writeFile(join(place, "program.mjs"), PROGRAM);
	const { stdout } = await run(process.execPath, ["program.mjs"], {
		cwd: place,
	});
	const { paid, count, others } = JSON.parse(stdout);
	assert.equal(paid, 5);
	assert.ok(count > 10, `${count} modules`);
	assert.deepEqual(others, []);
});
