// A signature covers exactly the content that was shown, even if the gateway changes it meanwhile:
// `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.WebSocket ??= { OPEN: 1 };

const { REQUEST, newDevice, request, scene } = await import("./hostile.mjs");

const refused = (code) => (error) => error.code === code;
const commandOf = (item) =>
	item.content.opened
		? item.content.artifact.payload.command
		: item.content.problem.code;

test("another artifact under the same id is neither signed nor shown as approvable", async () => {
	const { model, sent, device, enforcers, shows } = await scene();
	const shown = await shows(await request(enforcers.bot, device));
	assert.equal(commandOf(shown), "ls");
	const evil = await request(enforcers.prod, device, {
		msgId: "m2",
		payload: { kind: "command", command: "destroy" },
	});
	const disputed = await shows(evil);
	assert.equal(commandOf(disputed), "replaced");
	await assert.rejects(
		model.decide(shown, { verdict: "approve" }),
		refused("replaced"),
	);
	await assert.rejects(
		model.decide(disputed, { verdict: "approve" }),
		refused("notApprovable"),
	);
	// It does not become approvable again by showing the first one again.
	assert.equal(
		commandOf(await shows(await request(enforcers.bot, device))),
		"replaced",
	);
	assert.deepEqual(sent, []);
	await model.decide(disputed, { verdict: "reject" });
	assert.equal(JSON.parse(sent[0]).decision, "reject");
});

test("another artifact of the same enforcer, or the same one of another, is a replacement too", async () => {
	const { device, enforcers, shows } = await scene();
	await shows(await request(enforcers.bot, device));
	assert.equal(
		commandOf(
			await shows(
				await request(enforcers.bot, device, {
					payload: { kind: "command", command: "rm" },
				}),
			),
		),
		"replaced",
	);
	const other = await scene();
	await other.shows(await request(other.enforcers.bot, other.device));
	assert.equal(
		commandOf(
			await other.shows(await request(other.enforcers.prod, other.device)),
		),
		"replaced",
	);
});

test("a decision is about what was shown, also if the list has changed unseen", async () => {
	const { model, sent, device, enforcers, shows } = await scene();
	const shown = await shows(await request(enforcers.bot, device));
	const other = await scene();
	const evil = await other.shows(
		await request(other.enforcers.prod, other.device, {
			payload: { kind: "command", command: "destroy" },
		}),
	);
	model.items.set(REQUEST, evil);
	await assert.rejects(
		model.decide(shown, { verdict: "approve" }),
		refused("replaced"),
	);
	assert.deepEqual(sent, []);
});

test("the same request in another message stays the item that is shown", async () => {
	const { model, sent, device, enforcers, shows } = await scene();
	const first = await request(enforcers.bot, device);
	const shown = await shows(first);
	assert.equal(await shows({ ...first, msgId: "m2" }), shown);
	await model.decide(shown, { verdict: "approve" });
	assert.equal(JSON.parse(sent[0]).artifactHash, shown.artifactHash);
	assert.equal(model.find(REQUEST).state, "decided");
});

test("devices that the enforcer obeys and this one does not know are named", async () => {
	const { session, device, enforcers, shows } = await scene();
	const [other, gone] = [await newDevice("other"), await newDevice("gone")].map(
		({ bundle }) => bundle.deviceId,
	);
	const known = await session.trust();
	known.revoked.add(gone);
	session.trust = async () => known;
	const alice = [device.bundle.deviceId, other, gone];
	const named = { alice, bob: [other] };
	const shown = await shows(
		await request(enforcers.bot, device, {
			further: { extensions: { "countersign.devices": named } },
		}),
	);
	assert.deepEqual(shown.strangers, [
		{ deviceId: other, isRevoked: false },
		{ deviceId: gone, isRevoked: true },
	]);
	assert.deepEqual(shown.content.artifact.rest, {});
	for (const [requestId, list] of [
		["a", "x"],
		["b", [1]],
		["c", ["short"]],
	]) {
		const malformed = {
			extensions: { "countersign.devices": { alice: list } },
		};
		const { device: own, enforcers: theirs, shows: showing } = await scene();
		const item = await showing(
			await request(theirs.bot, own, { further: malformed }),
		);
		assert.equal(item.content.opened, false, requestId);
	}
});

test("after logging out nothing is signed", async () => {
	const { Approver } = await import("../core/approver.js");
	const { model, session, sent, device, enforcers, shows } = await scene();
	const shown = await shows(await request(enforcers.bot, device));
	session.tabs = { postMessage() {}, close() {} };
	session.store.close = () => {};
	const approver = new Approver(session);
	approver.model = model;
	approver.end();
	await assert.rejects(
		approver.decide(shown, { verdict: "approve" }),
		refused("loggedOut"),
	);
	assert.deepEqual(sent, []);
});

test("a request that still does not open stays the item that is shown", async () => {
	const { model, enforcers, device, shows } = await scene();
	const stranger = { ...enforcers.bot, enforcerId: "stranger" };
	const unknown = await request(stranger, device);
	const shown = await shows(unknown);
	assert.equal(commandOf(shown), "notPaired");
	assert.equal(await shows({ ...unknown, msgId: "m2" }), shown);
	const other = await shows(
		await request(stranger, device, {
			payload: { kind: "command", command: "rm" },
		}),
	);
	assert.notEqual(other, shown);
	await assert.rejects(
		model.decide(shown, { verdict: "reject" }),
		refused("replaced"),
	);
});
