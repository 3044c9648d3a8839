// Spans in OpenTelemetry's own exporter: which request, never its content.

import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeApprover } from "@countersign/client/testing";
import { trace } from "@opentelemetry/api";
import {
	BasicTracerProvider,
	InMemorySpanExporter,
	SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { thrown } from "../support.mjs";

const exporter = new InMemorySpanExporter();
const spanProcessors = [new SimpleSpanProcessor(exporter)];
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors }));

const SECRETS = /hush|iban|because|run 1/;
const call = { name: "pay", args: { note: "hush", iban: 1 } };

async function spansOf(act) {
	exporter.reset();
	await act();
	const spans = exporter.getFinishedSpans();
	for (const { name, attributes, events, status, links } of spans) {
		const shown = { name, attributes, events, status, links };
		assert.doesNotMatch(JSON.stringify(shown), SECRETS);
		assert.deepEqual(events, []);
	}
	return spans.map(({ name, attributes }) => ({ name, ...attributes }));
}

test("a question that is approved, and one that is rejected", async () => {
	const approver = await FakeApprover.create();
	approver.when({}).approve({ reason: "because" });
	const [asked] = await spansOf(() => approver.client.ask({ call }));
	assert.deepEqual(asked, {
		name: "countersign.ask",
		"countersign.tool": "pay",
		"countersign.request_id": approver.asked[0].requestId,
		"countersign.approver": "fake-approver",
		"countersign.end": "ok",
	});
	approver.when({}).reject("because");
	const [rejected] = await spansOf(() =>
		thrown(() => approver.client.ask({ call })),
	);
	assert.deepEqual(rejected, {
		name: "countersign.ask",
		"countersign.tool": "pay",
		"countersign.request_id": approver.asked[1].requestId,
		"countersign.end": "rejected",
	});
});

test("a durable request", async () => {
	const approver = await FakeApprover.create();
	approver.when({}).wait();
	const spans = await spansOf(async () => {
		const pending = await approver.client.submit({ call, key: "run 1" });
		await pending.outcome({ wait: "0s" });
		await approver.asked[0].approve();
		const outcome = await pending.outcome({ wait: "5s" });
		const other = { name: "pay", args: { note: "hush" } };
		await thrown(() => outcome.use(other, () => {}));
		await outcome.use(call, () => {});
		await pending.withdraw("because");
	});
	const about = {
		"countersign.tool": "pay",
		"countersign.request_id": approver.asked[0].requestId,
		"countersign.end": "ok",
	};
	assert.deepEqual(spans, [
		{ name: "countersign.submit", ...about },
		{ name: "countersign.outcome", ...about },
		{
			name: "countersign.outcome",
			...about,
			"countersign.approver": "fake-approver",
		},
		{ name: "countersign.use", ...about, "countersign.end": "changed" },
		{ name: "countersign.use", ...about },
		{ name: "countersign.withdraw", ...about },
	]);
});

test("an error of the library, an abort and a tool's name show no content", async () => {
	const journal = { take: () => Promise.reject(new RangeError("hush")) };
	const approver = await FakeApprover.create({ journal });
	approver.when({}).reject();
	const ask = (asked, more) =>
		spansOf(() => thrown(() => approver.client.ask({ call: asked, ...more })));
	const [failed] = await ask(call);
	assert.equal(failed["countersign.end"], "RangeError");
	const [aborted] = await ask(call, { signal: AbortSignal.abort("hush") });
	assert.equal(aborted["countersign.end"], "cancelled");
	const [shown] = await ask({ name: `pay\u202e${"x".repeat(500)}`, args: {} });
	assert.doesNotMatch(shown["countersign.tool"], /\u202e/);
	assert.equal(shown["countersign.tool"].length, 200);
});
