// All refusals with all adapters, in one process.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ADAPTERS, covered } from "./scenario.mjs";
import "./refusals.mjs";
import "./durable.mjs";

const REFUSALS = 19;

test("all refusals are covered, and the gaps are those that are known", () => {
	const numbers = Array.from({ length: REFUSALS }, (_, index) => index + 1);
	assert.deepEqual(
		[...covered].sort((one, other) => one - other),
		numbers,
	);
	const gaps = ADAPTERS.map(({ name, gaps }) => [name, Object.keys(gaps)]);
	assert.deepEqual(gaps, [
		["ai-sdk", []],
		["openai-agents", ["16"]],
	]);
});
