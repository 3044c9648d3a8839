// Attacks on a call that several people must approve.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseArtifact } from "../dist/core/artifact.js";
import { randomBytes, sha256, toHex, utf8 } from "../dist/core/bytes.js";
import { canonical } from "../dist/core/canonical.js";
import { importEncryptionKey, OutcomeKey } from "../dist/keys.js";
import { openPending, recordOf } from "../dist/pending.js";
import { CALL, People } from "./people.mjs";
import { thrown } from "./support.mjs";

const PAIR = ["alice", "bob"];
const denied = (people, decide, options) =>
	thrown(() => people.ask(decide, options));

/** An approval of any artifact, by the device of one person. */
async function signed(people, name, artifact) {
	const request = people.request(name);
	await request.approve();
	const approval = people.decisionOf(name);
	const changed = {
		requestId: artifact.requestId,
		artifactHash: artifact.hash,
		repoRef: artifact.repoRef,
	};
	return people.of[name].device.resign(approval, changed);
}

async function lowered({ text }) {
	const { artifactHash: _, ...members } = JSON.parse(text);
	members.extensions["countersign.rule"].asks[0].approvals = 1;
	const artifactHash = toHex(await sha256(utf8(canonical(members))));
	return parseArtifact(utf8(canonical({ ...members, artifactHash })));
}

/** A gateway that changes calls on their way. */
function meddle(people, change) {
	const { gateway } = people;
	const transport = gateway.transport.bind(gateway);
	gateway.transport = () => {
		const honest = transport();
		return {
			...honest,
			send: (request) => change(request, () => honest.send(request)),
		};
	};
	return people.nobody.newClient().then((client) => {
		people.client = client;
	});
}

describe("attacks on several people", { concurrency: true }, () => {
	test("one approval is not counted twice", async () => {
		const people = await People.create(PAIR);
		const denial = await denied(people, async () => {
			await people.approve("alice");
			people.deliver("bob", people.decisionOf("alice"));
		});
		assert.equal(denial.cause, "untrusted");
		assert.match(denial.message, /bob: the decision is not trusted/);
		assert.equal(await people.effect("alice"), "untrusted");
	});

	test("the decision of one person does not count for another", async () => {
		const people = await People.create(PAIR);
		const denial = await denied(people, async () => {
			const { artifact } = people.request("bob");
			people.deliver("bob", await signed(people, "alice", artifact));
		});
		assert.equal(denial.cause, "untrusted");
		assert.match(denial.message, /bob: .* check 2: unknownDevice/);
	});

	test("the gateway cannot lower the number", async () => {
		const people = await People.create(PAIR);
		const denial = await denied(people, async () => {
			const own = await lowered(people.request("bob").artifact);
			const enforcer = { enforcerId: "fake-enforcer" };
			const choice = { verdict: "approve" };
			const { device } = people.of.bob;
			people.deliver("bob", await device.decide(own, enforcer, choice));
		});
		assert.equal(denial.cause, "untrusted");
		assert.match(denial.message, /bob: .* check 4/);
		// One approval of the true rule is too few as well.
		const late = { timeout: "3s" };
		const ending = await denied(people, () => people.approve("alice"), late);
		assert.equal(ending.cause, "timed_out");
	});

	test("a device that was revoked since does not count", async () => {
		const people = await People.create(PAIR);
		await people.of.alice.addDevice("laptop");
		const denial = await denied(people, async () => {
			await people.approve("alice");
			await people.of.alice.revokeDevice();
			await people.approve("bob");
		});
		assert.equal(denial.cause, "untrusted");
		assert.match(denial.message, /alice: .* revokedDevice/);
		assert.equal(await people.effect("bob"), "untrusted");
	});

	test("a device counts on one seat", async () => {
		const people = await People.create(["alice"]);
		const { device } = people.of.alice;
		people.of.bob = people.of.alice.addApproverWith("bob", device);
		people.of.bob.when({}).wait();
		people.names = PAIR;
		const denial = await denied(people, async () => {
			// Both open both parts.
			for (const asked of people.of.alice.asked) await asked.approve();
			for (const asked of people.of.bob.asked) await asked.approve();
		});
		assert.equal(denial.cause, "untrusted");
		assert.match(denial.message, /bob: .* deviceOfAnotherSeat/);
	});

	test("a rejection that is found at the end denies", async () => {
		const people = await People.create();
		await meddle(people, (request, pass) => {
			if (request.path.endsWith("/withdraw")) people.gateway.up();
			return pass();
		});
		const denial = await denied(people, async () => {
			people.gateway.withhold(people.request("carol").requestId);
			await people.request("carol").reject("never");
			await people.approve("alice", "bob");
		});
		assert.equal(denial.cause, "rejected");
		assert.equal(denial.approver, "carol");
		for (const name of people.names)
			assert.equal(await people.effect(name), "rejected");
	});

	test("a decision that stays withheld denies", async () => {
		const people = await People.create();
		const denial = await denied(people, async () => {
			people.gateway.withhold(people.request("carol").requestId);
			await people.request("carol").reject();
			await people.approve("alice", "bob");
		});
		assert.equal(denial.cause, "timed_out");
		assert.equal(await people.effect("alice"), "interrupted");
	});

	for (const status of [404, 409, 500])
		test(`a withdrawal that fails with ${status} denies`, async () => {
			const people = await People.create();
			await meddle(people, async (request, pass) =>
				request.path.endsWith("/withdraw")
					? { status, headers: new Map(), body: utf8("{}") }
					: pass(),
			);
			const denial = await denied(people, () => people.approve("alice", "bob"));
			assert.equal(denial.cause, "unavailable");
			assert.equal(await people.effect("alice"), "interrupted");
		});

	test("device lists that cannot be read at the end deny", async () => {
		const people = await People.create(PAIR);
		let isDecided = false;
		await meddle(people, async (request, pass) =>
			isDecided && request.path.endsWith("/devices")
				? { status: 503, headers: new Map(), body: utf8("{}") }
				: pass(),
		);
		const denial = await denied(people, async () => {
			isDecided = true;
			await people.approve(...PAIR);
		});
		assert.equal(denial.cause, "unavailable");
		assert.equal(await people.effect("alice"), "interrupted");
	});

	for (const lie of ["forge", "swapArtifact"])
		test(`a gateway that lies (${lie}) is denied`, async () => {
			const people = await People.create(PAIR);
			people.gateway[lie]();
			const denial = await denied(people, () => people.approve(...PAIR));
			assert.equal(denial.cause, "untrusted");
		});

	test("one part is no stored request", async () => {
		const people = await People.create(PAIR);
		await people.ask(() => people.approve(...PAIR));
		const { artifact } = people.request("bob");
		const enforcer = {
			tenantId: "fake-tenant",
			enforcerId: "fake-enforcer",
			keys: await importEncryptionKey(randomBytes(32)),
		};
		const outcomeKey = OutcomeKey.generate();
		const record = recordOf(enforcer, { artifact, outcomeKey });
		const denial = await thrown(() => openPending(record, enforcer));
		assert.equal(denial.cause, "changed");
		assert.match(denial.message, /several people/);
	});

	test("a caller cannot give a request a rule", async () => {
		const people = await People.create(["alice"]);
		people.of.alice.when({}).approve();
		const rule = { v: 1, asks: [{ approvals: 2, from: PAIR }] };
		const extensions = { "countersign.rule": rule };
		const metadata = { ...extensions, extensions };
		const question = { call: CALL, approver: "alice", metadata };
		await assert.rejects(people.client.ask({ ...question, extensions }), {
			message: "ask: there is no option extensions",
		});
		await people.client.ask(question);
		assert.equal(people.request("alice").rule, null);
		const { text } = people.request("alice").artifact;
		assert.equal(JSON.parse(text).extensions["countersign.rule"], undefined);
	});
});
