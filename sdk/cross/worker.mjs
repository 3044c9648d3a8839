// A program with the TypeScript library: node worker.mjs submit|resume|ask|learn [FILE|COUNT].
// worker.py does the same with the Python library.

import { readFile, writeFile } from "node:fs/promises";
import { Approved, Client, Denied } from "../typescript/dist/index.js";

const [, , action, word] = process.argv;
const client = await Client.fromProfile();
const args = { amount: 7, note: 'é\u{1f600}\n"</script>', deep: [null, 0.1] };
const call = { name: "pay", args };
const actions = {
	async submit() {
		const pending = await client.submit({ call, timeout: "10m", key: "cross" });
		await writeFile(word, pending.toJson(), { mode: 0o600 });
		return pending.requestId;
	},
	async resume() {
		const pending = client.pending(await readFile(word, "utf8"));
		const outcome = await pending.outcome({ wait: "0s" });
		if (outcome instanceof Denied) return outcome.cause;
		if (!(outcome instanceof Approved)) return "waiting";
		return outcome.use(call, ({ amount }) => `ran ${amount}`);
	},
	async ask() {
		const approval = await client.ask({ call, timeout: "30s" });
		return `approved: ${approval.reason}`;
	},
	/** Learns of devices with each request. */
	async learn() {
		for (let count = Number(word); count > 0; count -= 1)
			await client.submit({ call, timeout: "10m" });
		return "learned";
	},
};
try {
	console.log(await actions[action]());
} catch (error) {
	if (!(error instanceof Denied)) throw error;
	console.log(error.cause);
}
client.close();
