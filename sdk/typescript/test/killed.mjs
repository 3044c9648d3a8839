// A program that is killed while it uses an approval: node killed.mjs STATE EFFECTS STEP. It says on
// standard output how far it has come, and stops there if that is STEP.

import {
	appendFileSync,
	existsSync,
	readFileSync,
	writeFileSync,
	writeSync,
} from "node:fs";
import { join } from "node:path";
import { Denied, FileJournal } from "@countersign/client";
import { FakeApprover } from "@countersign/client/testing";

const [, , place, effects, killAt] = process.argv;
const call = { name: "transfer", args: { amount: 500 } };

async function reach(step) {
	writeSync(1, `${step}\n`);
	if (step === killAt)
		await new Promise((resolve) => setTimeout(resolve, 60_000));
}

const files = new FileJournal(place);
// The approver is new in each process, so the request of the first one is taken again by its id.
const kept = join(place, "request");
const journal = {
	async take(requestId) {
		if (!existsSync(kept)) writeFileSync(kept, requestId);
		await reach("compared");
		const isFirst = await files.take(readFileSync(kept, "utf8"));
		if (isFirst) await reach("taken");
		return isFirst;
	},
};
const approver = await FakeApprover.create({ journal });
approver.when({}).approve();
const pending = await approver.client.submit({ call });
const outcome = await pending.outcome({ wait: "5s" });
try {
	await outcome.use(call, async () => {
		appendFileSync(effects, "ran\n");
		await reach("started");
	});
	await reach("finished");
} catch (error) {
	if (!(error instanceof Denied)) throw error;
	writeSync(1, `${error.cause}\n`);
}
