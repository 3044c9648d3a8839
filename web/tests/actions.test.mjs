// The choices that an enforcer offers: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.WebSocket ??= { OPEN: 1 };

const { request, scene } = await import("./hostile.mjs");

const approve = { id: "yes", caption: "Go on", decision: "approve" };
const reject = {
	id: "no",
	caption: "Stop",
	decision: "reject",
	style: "danger",
};

/** The actions that an artifact with these extensions offers. */
async function offered(actions, further = {}) {
	const { device, enforcers, shows } = await scene();
	const extensions = {
		"org.proto.requestedActions": { version: 1, actions },
		...further,
	};
	const { content } = await shows(
		await request(enforcers.bot, device, { further: { extensions } }),
	);
	assert.ok(content.opened);
	return {
		ids: content.artifact.actions.map(({ id }) => id),
		isOdd: content.artifact.hasOddActions,
	};
}

test("actions are offered with their verdict", async () => {
	assert.deepEqual(await offered([approve, reject]), {
		ids: ["yes", "no"],
		isOdd: false,
	});
	const longest = { ...approve, caption: "x".repeat(80) };
	assert.deepEqual(await offered([longest]), { ids: ["yes"], isOdd: false });
});

test("actions that cannot be shown, or told apart, are not offered, and the page can say so", async () => {
	const many = Array.from({ length: 9 }, (_, at) => ({
		...approve,
		id: `a${at}`,
	}));
	const odd = [
		many,
		[{ ...approve, caption: "x".repeat(81) }],
		[{ ...approve, caption: " " }],
		[approve, { ...reject, id: "YES" }],
		[{ ...approve, decision: "maybe" }],
		"x",
		[null],
	];
	for (const actions of odd)
		assert.deepEqual(
			await offered(actions),
			{ ids: [], isOdd: true },
			JSON.stringify(actions),
		);
	assert.deepEqual(
		await offered([approve], {
			"org.other.requestedActions": { actions: [reject] },
		}),
		{ ids: [], isOdd: true },
	);
});

test("what stands in place of the salt is shown, unless it can be nothing but the salt", async () => {
	for (const [salt, isShown] of [
		["wLPkmY7lafdqFzrTejNF8g", false],
		["and now something else", true],
		["wLPkmY7lafdqFzrTejNF8g0", true],
		[{ a: 1 }, true],
	]) {
		const { device, enforcers, shows } = await scene();
		const { content } = await shows(
			await request(enforcers.bot, device, {
				further: { extensions: { "countersign.salt": salt } },
			}),
		);
		assert.deepEqual(
			content.artifact.rest,
			isShown ? { extensions: { "countersign.salt": salt } } : {},
			JSON.stringify(salt),
		);
	}
});
