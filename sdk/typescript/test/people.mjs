// Several approvers of one client, and what their devices were told.

import { FakeApprover } from "@countersign/client/testing";
import { verifyOutcome } from "../../../web/core/outcome.js";
import { until } from "./support.mjs";

export const CALL = { name: "transfer", args: { iban: "DE02", amount: 500 } };
const IDENTITY = { tenantId: "fake-tenant", enforcerId: "fake-enforcer" };

/** Paired with one client. Each waits, until a test decides for them. */
export class People {
	static async create(names = ["alice", "bob", "carol"], options = {}) {
		const people = new People();
		const nobody = await FakeApprover.create(options);
		people.nobody = nobody;
		people.client = nobody.client;
		people.gateway = nobody.gateway;
		people.names = names;
		people.of = {};
		for (const name of names) {
			people.of[name] = await nobody.addApprover(name);
			people.of[name].when({}).wait();
		}
		return people;
	}

	request(name) {
		return this.of[name].asked.at(-1);
	}

	stateOf(name) {
		return this.gateway.stateOf(this.request(name).requestId);
	}

	/** Waits until each of them has a request to decide. */
	asked(names = this.names) {
		return until(() =>
			names.every(
				(name) =>
					this.request(name) && this.stateOf(name) === "pendingApproval",
			),
		);
	}

	/** Asks for two approvals, and decides once everyone is asked. */
	async ask(decide, options = {}) {
		const complete = { approvals: 2, from: this.names, timeout: "20s" };
		const question = { call: CALL, ...complete, ...options };
		const asking = this.client.ask(question);
		asking.catch(() => {});
		await this.asked(question.from);
		await decide(this);
		return asking;
	}

	async approve(...names) {
		for (const name of names) await this.request(name).approve();
	}

	/** Puts a decision on a person's exchange, as the gateway can. */
	deliver(name, decision) {
		this.gateway.decide(this.request(name).requestId, decision);
	}

	decisionOf(name) {
		return this.gateway.decisionOf(this.request(name).requestId);
	}

	/** What the enforcer has signed about a person's decision, as their device verifies it. */
	async effect(name) {
		const { requestId, artifact } = this.request(name);
		const outcome = this.gateway.outcomeOf(requestId);
		if (outcome === undefined) return null;
		const decision = this.gateway.decisionOf(requestId);
		return verifyOutcome(outcome, artifact, { ...IDENTITY, decision });
	}
}
