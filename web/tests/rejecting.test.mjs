// Every request of an agent is rejected, and the agent is paused: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../core/problem.js";
import { rejectAll } from "../core/rejecting.js";

const UNTIL = "2026-02-21T13:01:00Z";

/** An approver that notes what is asked of it. */
function recorder({ refuses = [], pauseProblem = null } = {}) {
	const done = [];
	const pauses = {};
	return {
		done,
		decide: async ({ requestId }, choice) => {
			done.push([requestId, choice]);
			if (refuses.includes(requestId)) throw Problem.of("noLongerPending", {});
		},
		orders: (act) =>
			act(
				{
					pauseAgent: async (_, enforcerId) => {
						done.push(["pause", enforcerId]);
						if (pauseProblem) throw pauseProblem;
						pauses[enforcerId] = UNTIL;
					},
					readPauses: async () => pauses,
				},
				{},
			),
	};
}

const items = ["one", "two", "three"].map((requestId) => ({
	requestId,
	isPaired: requestId !== "two",
}));
const rejected = (reason) => ({ verdict: "reject", reason });

test("the agent is paused first, then each request is rejected", async () => {
	const approver = recorder();
	const steps = [];
	const options = { reason: "Stop.", pausedId: "bot" };
	const ended = await rejectAll(approver, items, options, (at) =>
		steps.push(at),
	);
	assert.deepEqual(ended, { failed: [], pausedUntil: UNTIL });
	assert.deepEqual(steps, [1, 2, 3]);
	assert.deepEqual(approver.done, [
		["pause", "bot"],
		["one", rejected("Stop.")],
		["two", rejected(undefined)],
		["three", rejected("Stop.")],
	]);
});

test("an agent that should not be paused is not", async () => {
	const approver = recorder();
	const options = { reason: "", pausedId: null };
	const ended = await rejectAll(approver, items, options, () => {});
	assert.equal(ended.pausedUntil, null);
	assert.deepEqual(
		approver.done,
		["one", "two", "three"].map((id) => [id, rejected(undefined)]),
	);
});

test("a request that has ended does not keep the others from being rejected", async () => {
	const approver = recorder({ refuses: ["one"] });
	const options = { reason: "", pausedId: null };
	const { failed } = await rejectAll(approver, items, options, () => {});
	assert.equal(approver.done.length, 3);
	const [{ item, thrown }, ...others] = failed;
	assert.deepEqual([item, thrown.code], [items[0], "noLongerPending"]);
	assert.deepEqual(others, []);
});

test("nothing is rejected if the agent cannot be paused", async () => {
	const pauseProblem = Problem.of("unreachable", {});
	const approver = recorder({ pauseProblem });
	const options = { reason: "", pausedId: "bot" };
	await assert.rejects(
		rejectAll(approver, items, options, () => {}),
		pauseProblem,
	);
	assert.deepEqual(approver.done, [["pause", "bot"]]);
});
