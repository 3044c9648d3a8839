// The first example of the README, as it stands there.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { LiveGateway } from "./gateway.mjs";

const here = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
let gateway;

before(async () => {
	gateway = await LiveGateway.start();
	const installed = join(gateway.home, "node_modules/@countersign");
	await mkdir(installed, { recursive: true });
	await symlink(here, join(installed, "client"));
	const readme = await readFile(join(here, "README.md"), "utf8");
	const [, block] = /```js\n([\s\S]*?)\n *```/.exec(readme);
	const example = block.replace(/^ {3}/gm, "");
	await writeFile(join(gateway.home, "transfer.mjs"), example);
});

after(() => gateway?.stop());

function runExample() {
	const { home, env } = gateway;
	const child = spawn(process.execPath, ["transfer.mjs"], { cwd: home, env });
	let told = "";
	for (const stream of [child.stdout, child.stderr])
		stream.on("data", (chunk) => {
			told += chunk;
		});
	return new Promise((end) => child.on("exit", () => end(told)));
}

test("approved: it goes on", async () => {
	const running = runExample();
	await gateway.approve(await gateway.onlyRequest());
	assert.equal(await running, "sent 500 to DE02 1203 0000 0000 2020 51\n");
});

test("rejected: it prints a paragraph for the model", async () => {
	const running = runExample();
	await gateway.reject(await gateway.onlyRequest(), "--reason", "too much");
	const told = await running;
	assert.match(
		told,
		/^This call was denied: me rejected it, with the reason "too much"\./,
	);
	assert.match(told, /Nothing was executed\./);
});
