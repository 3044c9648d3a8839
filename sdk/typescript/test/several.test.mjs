// Calls that several people must approve.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Action } from "@countersign/client";
import { ToolGate } from "../dist/adapter.js";
import { CALL, People } from "./people.mjs";
import { thrown, until } from "./support.mjs";

const THREE = ["alice", "bob", "carol"];
const approvers = ({ approvals }) => approvals.map(({ approver }) => approver);

describe("several people", { concurrency: true }, () => {
	test("two of three approve", async () => {
		const people = await People.create();
		const approved = await people.ask(() => people.approve("carol", "alice"));
		assert.deepEqual(approvers(approved), ["alice", "carol"]);
		assert.equal(people.stateOf("bob"), "withdrawn");
		assert.equal(await people.effect("alice"), "allowed");
		assert.equal(await people.effect("carol"), "allowed");
		const [, other] = approved.approvals;
		const { artifact } = JSON.parse(other.record().text());
		assert.equal(artifact, people.request("carol").artifact.text);
	});

	test("the parts differ in their person and their id", async () => {
		const people = await People.create();
		await people.ask(() => people.approve("alice", "bob"), {
			rejections: 2,
			comment: "reject",
		});
		const ids = new Set();
		const rest = new Set();
		for (const name of THREE) {
			const { artifact, rule } = people.request(name);
			assert.equal(rule.seat, name);
			assert.deepEqual(rule.asks[0].from, THREE);
			const members = JSON.parse(artifact.text);
			ids.add(members.requestId);
			delete members.requestId;
			delete members.artifactHash;
			delete members.extensions["countersign.rule"].seat;
			rest.add(JSON.stringify(members));
			// Nobody gets the part of somebody else.
			assert.equal(people.of[name].asked.length, 1);
		}
		assert.equal(ids.size, 3);
		assert.equal(rest.size, 1);
	});

	test("nobody is told before all are decided", async () => {
		const people = await People.create(["alice", "bob"]);
		const asking = people.ask(() => people.approve("alice"));
		await until(() => people.request("alice") && people.decisionOf("alice"));
		await new Promise((resolve) => setTimeout(resolve, 100));
		assert.equal(people.stateOf("alice"), "decided");
		await people.approve("bob");
		assert.equal((await asking).approvals.length, 2);
		assert.equal(await people.effect("alice"), "allowed");
	});

	test("one rejection denies", async () => {
		const people = await People.create();
		const denial = await thrown(() =>
			people.ask(async () => {
				await people.approve("alice");
				await people.request("bob").reject("too much");
			}),
		);
		assert.equal(denial.cause, "rejected");
		assert.equal(denial.approver, "bob");
		assert.match(denial.forModel(), /too much/);
		assert.equal(await people.effect("bob"), "rejected");
		assert.equal(people.stateOf("carol"), "withdrawn");
	});

	test("two rejections where two are needed", async () => {
		const people = await People.create();
		const approved = await people.ask(
			async () => {
				await people.request("bob").reject();
				await people.approve("alice", "carol");
			},
			{ rejections: 2 },
		);
		assert.deepEqual(approvers(approved), ["alice", "carol"]);
		assert.equal(await people.effect("bob"), "allowed");
	});

	test("only those who are named are asked, and too few are told at once", async () => {
		const people = await People.create();
		const from = ["alice", "bob"];
		await people.ask(() => people.approve(...from), { from });
		assert.equal(people.of.carol.asked.length, 0);
		for (const [options, words] of [
			[{ approvals: 4, from: THREE }, /needs 4 approvals and lacks 4/],
			[{ approvals: 2, from: ["alice", "dave"] }, /dave: not paired/],
		]) {
			const ask = () => people.client.ask({ call: CALL, ...options });
			const denial = await thrown(ask);
			assert.equal(denial.cause, "too_few");
			assert.match(denial.message, words);
			assert.doesNotMatch(denial.forModel(), /alice/);
		}
		assert.equal(people.of.carol.asked.length, 0);
	});

	test("an approval without the comment does not count", async () => {
		const people = await People.create(["alice", "bob"]);
		const denial = await thrown(() =>
			people.ask(
				async () => {
					await people.request("alice").approve({ reason: "reviewed" });
					await people.request("bob").approve();
				},
				{ comment: "approve" },
			),
		);
		assert.match(denial.message, /bob: approved it without the comment/);
		assert.equal(await people.effect("alice"), "missing");
	});

	test("approvals of different choices are not added up", async () => {
		const people = await People.create();
		const actions = [
			Action.approve("staging", "Staging"),
			Action.approve("live", "Live"),
		];
		const choose = (name, actionId) =>
			people.request(name).approve({ actionId });
		const approved = await people.ask(
			async () => {
				await choose("alice", "staging");
				await choose("bob", "live");
				await new Promise((resolve) => setTimeout(resolve, 100));
				assert.equal(people.stateOf("carol"), "pendingApproval");
				await choose("carol", "live");
			},
			{ actions },
		);
		assert.deepEqual(approvers(approved), ["bob", "carol"]);
		assert.equal(approved.actionId, "live");
	});

	test("without decisions it ends by its time", async () => {
		const people = await People.create(["alice", "bob"]);
		const ask = () =>
			people.ask(() => people.approve("alice"), { timeout: "6s" });
		assert.equal((await thrown(ask)).cause, "timed_out");
		assert.equal(await people.effect("alice"), "missing");
	});

	test("a cancelled call withdraws all requests", async () => {
		const people = await People.create();
		const stop = new AbortController();
		const reason = new Error("stop");
		const ask = () =>
			people.ask(
				async () => {
					await people.approve("alice");
					stop.abort(reason);
				},
				{ signal: stop.signal },
			);
		assert.equal(await thrown(ask), reason);
		assert.equal(people.stateOf("bob"), "withdrawn");
		assert.equal(people.stateOf("carol"), "withdrawn");
		assert.equal(await people.effect("alice"), "interrupted");
	});

	test("a gated function runs once, with a journal that takes every approval", async () => {
		const taken = [];
		let isWilling = true;
		const journal = {
			take: async (id) => {
				taken.push(id);
				return isWilling || taken.length % 2 === 1;
			},
		};
		const people = await People.create(["alice", "bob"], { journal });
		const ran = [];
		const options = { approvals: 2, from: people.names, timeout: "20s" };
		const pay = people.client.approvalRequired("pay", options, (args) =>
			ran.push(args),
		);
		for (const name of people.names) people.of[name].when({}).approve();
		await pay({ amount: 7 });
		assert.deepEqual(ran, [{ amount: 7 }]);
		assert.equal(taken.length, 2);
		isWilling = false;
		assert.equal(
			(await thrown(() => pay({ amount: 8 }))).cause,
			"already_used",
		);
		assert.equal(ran.length, 1);
		assert.equal(await people.effect("alice"), "interrupted");
	});

	test("adapters pass the options on", async () => {
		const people = await People.create();
		const options = { approvals: 2, from: ["alice", "bob"], timeout: "20s" };
		const gate = new ToolGate("test", people.client, options);
		people.of.alice.when({}).approve();
		people.of.bob.when({}).approve();
		const call = { name: "pay", args: { amount: 7 }, callId: "1" };
		assert.deepEqual(await gate.run(call, ({ amount }) => amount), {
			result: 7,
		});
		assert.equal(people.of.carol.asked.length, 0);
		people.of.bob.when({}).reject("no");
		const { denial } = await gate.run(call, () => assert.fail());
		assert.equal(denial.cause, "rejected");
		// One decision would settle a durable request.
		const durable = { ...options, durable: true };
		assert.throws(
			() => new ToolGate("test", people.client, durable),
			/durable/,
		);
		const submit = () => people.client.submit({ call: CALL, ...options });
		assert.match((await thrown(submit)).message, /durable/);
	});

	test("options that make no sense", async () => {
		const people = await People.create();
		for (const options of [
			{ approvals: 0 },
			{ approvals: true },
			{ approvals: 57 },
			{ approvals: "2" },
			{ approvals: null },
			{ from: ["alice"] },
			{ rejections: 2 },
			{ comment: "approve" },
			{ approvals: 2, from: "alice" },
			{ approvals: 2, from: [] },
			{ approvals: 2, from: ["alice", "alice"] },
			{ approvals: 2, rejections: 0 },
			{ approvals: 2, comment: "sometimes" },
			{ approvals: 2, approver: "alice" },
		]) {
			const ask = () => people.client.ask({ call: CALL, ...options });
			assert.match((await thrown(ask)).message, /expected/);
		}
		for (const name of THREE) assert.equal(people.of[name].asked.length, 0);
	});
});
