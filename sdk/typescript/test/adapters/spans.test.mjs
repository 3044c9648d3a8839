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
		"countersign.outcome": "approved",
	});
	approver.when({}).reject("because");
	const [rejected] = await spansOf(() =>
		thrown(() => approver.client.ask({ call })),
	);
	assert.deepEqual(rejected, {
		name: "countersign.ask",
		"countersign.tool": "pay",
		"countersign.request_id": approver.asked[1].requestId,
		"countersign.outcome": "rejected",
	});
});

test("a durable request", async () => {
	const approver = await FakeApprover.create();
	approver.when({}).wait();
	const spans = await spansOf(async () => {
		const pending = await approver.client.submit({ call, key: "run 1" });
		await pending.outcome({ wait: "0s" });
		await approver.asked[0].approve();
		await pending.outcome({ wait: "5s" });
	});
	const about = {
		"countersign.tool": "pay",
		"countersign.request_id": approver.asked[0].requestId,
	};
	const waiting = { ...about, "countersign.outcome": "waiting" };
	assert.deepEqual(spans, [
		{ name: "countersign.submit", ...waiting },
		{ name: "countersign.outcome", ...waiting },
		{
			name: "countersign.outcome",
			...about,
			"countersign.approver": "fake-approver",
			"countersign.outcome": "approved",
		},
	]);
});

test("an error of the library, and a tool's name, show no content", async () => {
	const journal = { take: () => Promise.reject(new Error("hush")) };
	const approver = await FakeApprover.create({ journal });
	approver.when({}).reject();
	const [failed] = await spansOf(() =>
		thrown(() => approver.client.ask({ call })),
	);
	assert.equal(failed["countersign.outcome"], "error");
	const named = { name: "pay\u202e", args: {} };
	const [shown] = await spansOf(() =>
		thrown(() => approver.client.ask({ call: named })),
	);
	assert.doesNotMatch(shown["countersign.tool"], /\u202e/);
});
