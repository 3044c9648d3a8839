// A request that one library submits and the other one resumes, with a real gateway and the program
// as the approver.

import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { LiveGateway } from "../typescript/test/live/gateway.mjs";
import { LIBRARIES, work } from "./libraries.mjs";

let gateway;

before(async () => {
	gateway = await LiveGateway.start();
});

after(() => gateway?.stop());

for (const first of LIBRARIES) {
	const [second] = LIBRARIES.filter((library) => library !== first);

	test(`submitted by ${first}, resumed by ${second}`, async () => {
		const { profiles } = gateway.ready;
		const file = join(gateway.home, `${first}.json`);
		const id = await work(first, profiles, "submit", file);
		const other = join(gateway.home, `${first}-again.json`);
		// The key is known to both, and so is the record.
		assert.equal(await work(second, profiles, "submit", other), id);
		const record = JSON.parse(await readFile(file, "utf8"));
		assert.deepEqual(JSON.parse(await readFile(other, "utf8")), record);
		assert.equal(await work(second, profiles, "resume", file), "waiting");
		await gateway.approve(id, "--wait", "1s");
		const { artifact } = record;
		const edited = artifact.replace('"amount":7', '"amount":8');
		assert.notEqual(edited, artifact);
		await writeFile(other, JSON.stringify({ ...record, artifact: edited }));
		assert.equal(await work(second, profiles, "resume", other), "changed");
		assert.equal(await work(second, profiles, "resume", file), "ran 7");
		// The journal is shared.
		for (const library of LIBRARIES)
			assert.equal(
				await work(library, profiles, "resume", file),
				"already_used",
			);
		await rm(join(profiles, "default.requests"), { recursive: true });
	});

	test(`submitted by ${first}, rejected, and final for ${second}`, async () => {
		const { profiles } = gateway.ready;
		const file = join(gateway.home, `${first}-rejected.json`);
		const id = await work(first, profiles, "submit", file);
		await gateway.reject(id, "--wait", "1s");
		for (const library of [second, first])
			assert.equal(await work(library, profiles, "resume", file), "rejected");
		await rm(join(profiles, "default.requests"), { recursive: true });
	});
}
