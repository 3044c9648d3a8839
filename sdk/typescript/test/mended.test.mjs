// What an attacker tries with records, journals, files and a gateway of his own.

import assert from "node:assert/strict";
import { chmod, mkdir, readFile, utimes } from "node:fs/promises";
import https from "node:https";
import { join } from "node:path";
import { test } from "node:test";
import {
	Action,
	AlreadyUsed,
	Approved,
	Changed,
	Ended,
	KeyReused,
	NotAskable,
	ProfileError,
	Rejected,
} from "@countersign/client";
import { FakeApprover } from "@countersign/client/testing";
import { HttpTransport } from "../dist/http.js";
import { parseProfile } from "../dist/profile.js";
import { DirectoryState } from "../dist/state.js";
import { sealArtifact } from "../dist/submission.js";
import { merged, TrustStore } from "../dist/trust.js";
import { directory, thrown, until } from "./support.mjs";

const CALL = { name: "transfer", args: { amount: 500, iban: "DE02" } };
const KEY = "JfVxTC4_qfj6DFk8rS-Kc2_HtRWFXGxFrnYsvyuAUU8";

/** What the enforcer signed about a request: `allowed`, or why it denied. */
function effectOf(approver, requestId) {
	const outcome = approver.gateway.outcomeOf(requestId);
	if (outcome === undefined) return undefined;
	const payload = Buffer.from(JSON.parse(outcome).payload, "base64");
	const { predicate } = JSON.parse(payload.toString());
	return predicate.cause || predicate.outcome;
}

async function waiting(options) {
	const approver = await FakeApprover.create(options);
	approver.when({}).wait();
	return approver;
}

test("a record that is made of a decision's record does not open", async () => {
	const approver = await FakeApprover.create();
	approver.when({}).approve();
	const approval = await approver.client.ask({ call: CALL });
	const { tenantId, enforcerId, artifact } = JSON.parse(
		approval.record().text(),
	);
	const record = { v: 1, tenantId, enforcerId, artifact, outcomeKey: KEY };
	const outcome = await approver.client.pending(record).outcome({ wait: "0s" });
	assert.ok(outcome instanceof Changed, `${outcome}`);
});

test("an approval that was asked for is taken before it is returned", async () => {
	const taken = [];
	const journal = {
		take: async (id) => !taken.includes(id) && taken.push(id) > 0,
	};
	const approver = await FakeApprover.create({ journal });
	approver.when({}).approve();
	const approval = await approver.client.ask({ call: CALL });
	assert.deepEqual(taken, [approval.requestId]);
	assert.equal(await approval.use(CALL, ({ amount }) => amount), 500);
	const again = await thrown(() => approval.use(CALL, () => assert.fail()));
	assert.ok(again instanceof AlreadyUsed, `${again}`);
});

test("a revocation outlives another pairing", () => {
	const record = {
		id: "alice",
		devices: ["one"],
		revoked: ["x"],
		addedBy: new Map(),
		checkedAt: "2026-02-21T12:00:00Z",
		routingToken: "new",
	};
	const old = {
		...record,
		devices: ["lost"],
		revoked: ["y"],
		addedBy: new Map([["one", "lost"]]),
		checkedAt: "2026-02-21T12:01:00Z",
		routingToken: "old",
	};
	const both = merged(record, old);
	assert.deepEqual(both, { ...record, revoked: ["x", "y"] });
});
