// A process that submits or resumes a durable request: node worker.mjs submit|resume FILE.

import { readFile, writeFile } from "node:fs/promises";
import { Approved, Client, Denied } from "@countersign/client";

const [, , action, file] = process.argv;
const client = await Client.fromProfile();
const call = { name: "pay", args: { amount: 7 } };
if (action === "submit") {
	const pending = await client.submit({ call, timeout: "10m", key: "run 1" });
	await writeFile(file, pending.toJson(), { mode: 0o600 });
	console.log(pending.requestId);
} else {
	const pending = client.pending(await readFile(file, "utf8"));
	const outcome = await pending.outcome({ wait: "0s" });
	if (outcome instanceof Denied) console.log(outcome.cause);
	else if (outcome instanceof Approved)
		await outcome
			.use(call, ({ amount }) => console.log(`ran ${amount}`))
			.catch((error) => console.log(error.cause ?? String(error)));
	else console.log("waiting");
}
client.close();
