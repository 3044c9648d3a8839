// Both libraries and the program learn of devices at the same time, beside one profile, and nothing
// is forgotten. Each answer about devices shows a revocation that no other answer shows.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { FakeDevice } from "../typescript/dist/testing/fake_device.js";
import { program } from "../typescript/test/live/gateway.mjs";
import { LIBRARIES, work } from "./libraries.mjs";
import { APPROVER, PageGateway, TENANT } from "./page_gateway.mjs";

const run = promisify(execFile);
const LIBRARY_ROUNDS = 150;
const PROGRAM_ROUNDS = 10;
const SUBJECT = { tenantId: TENANT, approverId: APPROVER };

/** Asks with the program. Nobody decides. */
async function askWithProgram(profiles) {
	const env = { ...process.env, COUNTERSIGN_PROFILES: profiles };
	const words = ["ask", "--timeout", "1s"];
	const running = run(program, words, { env });
	running.child.stdin.end("a plan");
	await running.catch(() => undefined);
}

test("what the program and both libraries learn at the same time", async (t) => {
	const page = await PageGateway.start();
	t.after(() => page.stop());
	const { profiles } = page;
	const signer = new FakeDevice(page.device, SUBJECT);
	const shown = [];
	page.statements = async () => {
		const added = await FakeDevice.create(SUBJECT, "lost");
		shown.push(added.deviceId);
		return [await signer.add(added), await signer.revoke(added.deviceId)];
	};
	const learning = LIBRARIES.map((library) =>
		work(library, profiles, "learn", String(LIBRARY_ROUNDS)),
	);
	const asking = async () => {
		for (let count = 0; count < PROGRAM_ROUNDS; count += 1)
			await askWithProgram(profiles);
	};
	const [said] = await Promise.all([Promise.all(learning), asking()]);
	assert.deepEqual(said, ["learned", "learned"]);
	const learned = JSON.parse(
		await readFile(join(profiles, "default.trust.json"), "utf8"),
	);
	const profile = await readFile(join(profiles, "default.toml"), "utf8");
	const known = new Set(learned.approvers[0].revoked);
	const byProgram = shown.filter((id) => profile.includes(id));
	assert.ok(byProgram.length > 0, "the program has learned nothing");
	assert.ok(known.size >= 2 * LIBRARY_ROUNDS, `${known.size} revocations`);
	const lost = shown.filter((id) => !known.has(id) && !profile.includes(id));
	assert.deepEqual(lost, []);
	// Both libraries can still read it all.
	for (const library of LIBRARIES)
		assert.equal(await work(library, profiles, "learn", "1"), "learned");
});
