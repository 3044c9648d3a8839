// A rule as people see it: the sentence, the buttons, the comment, and what became of it:
// `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { canonical, parse } from "../core/canonical.js";
import { readRule, ruleProblem } from "../core/rule.js";
import { buttonsOf, fakeDocument } from "./elements.mjs";
import { RULE, SINGLE } from "./rules.mjs";

const document = fakeDocument();
const { decisionBar } = await import("../views/decide.js");
const { outcomeBar } = await import("../views/outcome.js");
const { rejectAllDialog } = await import("../views/rejectall.js");
const { requestHead } = await import("../views/requestbody.js");
const { ruleSentence } = await import("../views/rule.js");

const read = (rule) =>
	readRule(parse("artifact", canonical({ "countersign.rule": rule })));

/** A request of `bot` to alice, under this rule. */
function itemOf(rule, change = {}) {
	const artifact = {
		requestId: "r",
		artifactType: "command.review",
		hash: "0".repeat(64),
		repository: "repo",
		createdAt: "2026-01-01T00:00:00Z",
		sessionId: null,
		payload: { kind: "command", command: "terraform apply" },
		rest: {},
		actions: [],
		rule,
		...change,
	};
	return {
		requestId: "r",
		state: "pending",
		enforcerId: "bot",
		label: "bot",
		isPaired: true,
		artifactHash: artifact.hash,
		expiresAt: null,
		decision: null,
		content: { opened: true, artifact },
		strangers: [],
		approvalProblem: ruleProblem(rule, {
			approverId: "alice",
			enforcerId: "bot",
		}),
	};
}

/** The bar of a request, and what is decided with it. */
function barOf(rule, change) {
	const decided = [];
	const decide = async (choice) => void decided.push(choice);
	const bar = decisionBar(itemOf(rule, change), decide, () => null);
	const [comment] = bar.element.all(({ tag }) => tag === "textarea");
	return { ...bar, decided, comment, buttons: buttonsOf(bar.element) };
}

const textOf = (element, wanted) =>
	element.all(({ attributes }) =>
		(attributes.get("class") ?? "").split(" ").includes(wanted),
	)[0]?.textContent ?? null;

test("the rule is one sentence", () => {
	const said = (rule) => ruleSentence(read(rule));
	const of = (approvals, from, escalate) => ({
		approvals,
		from,
		...(escalate && { escalate }),
	});
	assert.equal(
		said(RULE),
		"One of 2 approvals, from alice, bob and carol; after 3 minutes dave is asked too; not by erin.",
	);
	assert.equal(said(SINGLE), "One approval, from alice and bob.");
	const people = ["alice", "bob", "carol"];
	assert.equal(
		said({ ...RULE, asks: [of(2, people)], notBy: ["dave"] }),
		"One of 2 approvals, from alice, bob and carol; not by dave.",
	);
	assert.equal(
		said({
			...RULE,
			asks: [
				of(2, people, [{ after: 3600, from: ["dave", "frank"] }]),
				of(1, ["grace"]),
				of(2, ["grace", "heidi"], [{ after: 90, from: ["ivan"] }]),
			],
			rejections: 2,
			comment: "always",
		}),
		"One of 2 approvals, from alice, bob and carol; after 1 hour dave and frank are asked too; one approval, from grace; 2 approvals, from grace and heidi; after 90 seconds ivan is asked too; not by erin; it takes 2 rejections to deny it; a comment is required to approve or reject.",
	);
	for (const comment of ["approve", "reject"])
		assert.ok(
			said({ ...SINGLE, comment }).endsWith(
				`; a comment is required to ${comment}.`,
			),
		);
	assert.ok(
		said({ ...RULE, seat: "dave" }).startsWith("One of 2 approvals, from"),
	);
});

test("the sentence stands under the headline, with each name set apart", () => {
	const rule = read({ ...RULE, notBy: ["b and c", "d\u202eb"] });
	const item = itemOf(rule);
	const head = requestHead(item, item.content.artifact);
	assert.match(textOf(head, "rule"), /^One of 2 approvals, from alice, bob/);
	const names = head.all(({ tag }) => tag === "bdi");
	assert.deepEqual(names.map((name) => name.textContent).slice(0, 5), [
		"alice",
		"bob",
		"carol",
		"dave",
		"b and c",
	]);
	// A character that turns the text around is named.
	assert.ok(!names[5].textContent.includes("\u202e"));
	for (const other of [null, "unknown"]) {
		const plain = itemOf(other);
		assert.equal(
			textOf(requestHead(plain, plain.content.artifact), "rule"),
			null,
		);
	}
});

test("without a rule the buttons are as before", async () => {
	const { buttons, decided, comment, approve } = barOf(null);
	assert.deepEqual(
		[...buttons.keys()],
		["Reject", "Approve", "Approve for longer…"],
	);
	assert.equal(comment, undefined);
	await approve();
	await buttons.get("Approve").click();
	assert.deepEqual(decided, [{ verdict: "approve" }, { verdict: "approve" }]);
});

test("Approve is not offered to those who do not count, and a sentence says why", () => {
	for (const [rule, said] of [
		[{ ...RULE, seat: "bob" }, /It asks bob for a decision/],
		[{ ...RULE, notBy: ["alice"] }, /doesn’t count your approval/],
		[{ ...SINGLE, asks: [{ approvals: 1, from: ["bob"] }] }, /other people/],
		[{ ...RULE, enforcerId: "prod" }, /for another agent/],
		[{ ...RULE, v: 2 }, /version this page doesn’t know. Reload the page/],
	]) {
		const { buttons, element, comment, decided, approve } = barOf(
			read({ ...rule, comment: "approve" }),
		);
		assert.deepEqual([...buttons.keys()], ["Reject"]);
		assert.equal(comment, undefined);
		assert.match(textOf(element, "note"), said);
		approve();
		assert.deepEqual(decided, []);
	}
	const actions = [
		{ id: "yes", caption: "Go on", verdict: "approve" },
		{ id: "no", caption: "Stop", verdict: "reject" },
	];
	const { buttons } = barOf(read({ ...RULE, seat: "bob" }), { actions });
	assert.deepEqual([...buttons.keys()], ["Reject", "Reject: Stop"]);
});

test("every rule offers this request only", () => {
	const labels = (rule) => [...barOf(rule).buttons.keys()];
	for (const rule of [RULE, SINGLE, { ...SINGLE, notBy: ["erin"] }])
		assert.deepEqual(labels(read(rule)), ["Reject", "Approve"]);
	assert.ok(labels(null).includes("Approve for longer…"));
});

test("a required comment is asked for, and goes with the approval", async () => {
	const { buttons, decided, comment, element } = barOf(
		read({ ...RULE, comment: "approve" }),
	);
	assert.equal(comment.getAttribute("aria-required"), "true");
	const [label] = element.all(({ tag }) => tag === "label");
	assert.equal(label.textContent, "Comment (required)");
	assert.equal(label.getAttribute("for"), comment.id);
	for (const blank of ["", " \n", "\u200b"]) {
		comment.value = blank;
		await buttons.get("Approve").click();
		assert.deepEqual(decided, [], JSON.stringify(blank));
		assert.equal(comment.getAttribute("aria-invalid"), "true");
		assert.equal(document.activeElement, comment);
		assert.match(textOf(element, "bad"), /Write a comment first/);
	}
	comment.value = " planned ";
	comment.dispatchEvent({ type: "input" });
	assert.equal(comment.getAttribute("aria-invalid"), null);
	await buttons.get("Approve").click();
	assert.deepEqual(decided, [{ verdict: "approve", reason: "planned" }]);
});

test("a choice of the agent needs the comment too", async () => {
	const actions = [{ id: "yes", caption: "Go on", verdict: "approve" }];
	const rule = read({ ...RULE, comment: "always" });
	const { buttons, decided, comment } = barOf(rule, { actions });
	await buttons.get("Approve: Go on").click();
	assert.deepEqual(decided, []);
	comment.value = "planned";
	await buttons.get("Approve: Go on").click();
	assert.deepEqual(decided, [
		{ verdict: "approve", actionId: "yes", reason: "planned" },
	]);
});

/** The dialog that was opened last. */
function dialogOf() {
	const dialog = document.body.childNodes.at(-1);
	const [reason] = dialog.all(({ tag }) => tag === "textarea");
	const [form] = dialog.all(({ tag }) => tag === "form");
	const [label] = dialog.all(({ tag }) => tag === "label");
	return { dialog, reason, label, send: () => form.fire("submit") };
}
const settled = () => new Promise((resolve) => setTimeout(resolve));

test("a rejection asks for the comment that its rule requires", async () => {
	for (const comment of ["reject", "always"]) {
		const { buttons, decided } = barOf(read({ ...RULE, comment }));
		buttons.get("Reject").click();
		const { dialog, reason, label, send } = dialogOf();
		assert.equal(label.textContent, "Comment (required)");
		assert.equal(reason.getAttribute("aria-required"), "true");
		send();
		await settled();
		assert.deepEqual(decided, []);
		assert.match(textOf(dialog, "bad"), /Write a comment first/);
		buttonsOf(dialog).get("Too risky.").click();
		assert.equal(reason.getAttribute("aria-invalid"), null);
		send();
		await settled();
		assert.deepEqual(
			decided.map((choice) => choice.reason),
			["Too risky."],
		);
	}
});

test("otherwise its reason is optional, and begins with what was written", async () => {
	for (const rule of [null, "unknown", read({ ...RULE, comment: "approve" })]) {
		const { buttons, decided, comment } = barOf(rule);
		if (comment) comment.value = "no ticket";
		buttons.get("Reject").click();
		const { reason, label, send } = dialogOf();
		assert.equal(label.textContent, "Reason (optional)");
		assert.equal(reason.value, comment ? "no ticket" : "");
		reason.value = "";
		send();
		await settled();
		assert.deepEqual(
			decided.map(({ verdict, reason: given }) => [verdict, given]),
			[["reject", undefined]],
		);
	}
});

test("rejecting all requests of an agent asks for a comment if one of them needs it", async () => {
	const rejected = [];
	const approver = {
		decide: async (_, choice) => void rejected.push(choice.reason),
	};
	const strict = itemOf(read({ ...RULE, comment: "always" }));
	rejectAllDialog(approver, "bot", [itemOf(null), strict]);
	const { reason, send } = dialogOf();
	send();
	await settled();
	assert.deepEqual(rejected, []);
	assert.equal(reason.getAttribute("aria-invalid"), "true");
	reason.value = "stop";
	send();
	await settled();
	assert.deepEqual(rejected, ["stop", "stop"]);
	rejectAllDialog(approver, "bot", [itemOf(null)]);
	dialogOf().send();
	await settled();
	assert.deepEqual(rejected, ["stop", "stop", undefined]);
});

test("after a decision the page says who is waited for, and what came of it", () => {
	const said = (rule, verdict, state, outcome = null) => {
		const decision = {
			verdict,
			outcome,
			isOwn: true,
			isVerified: true,
			reason: null,
		};
		const item = { ...itemOf(rule), state, decision };
		return textOf(
			outcomeBar(item, null, async () => {}),
			"quiet",
		);
	};
	const [rule, single] = [read(RULE), read(SINGLE)];
	const waits =
		"Approved by you. The agent waits until enough others have approved.";
	assert.equal(said(rule, "approve", "decided"), waits);
	for (const other of [null, single, "unknown"])
		assert.match(
			said(other, "approve", "decided"),
			/^The gateway accepted it\./,
		);
	assert.match(said(rule, "reject", "decided"), /^The gateway accepted it\./);
	const twice = read({ ...RULE, rejections: 2 });
	assert.match(said(twice, "reject", "decided"), /one rejection isn’t enough/);
	const ended = (...args) => said(rule, args[0], "delivered", args[1]);
	assert.match(ended("approve", "missing"), /too few people approved/);
	assert.match(ended("approve", "allowed"), /it was allowed\.$/);
	assert.match(ended("approve", "rejected"), /because others rejected it/);
	assert.match(ended("reject", "rejected"), /it was denied\.$/);
	assert.match(ended("reject", "allowed"), /enough others approved it/);
	assert.match(ended("approve", null), /no signed confirmation/);
	assert.match(
		said(null, "approve", "delivered", "rejected"),
		/it was denied\.$/,
	);
});
