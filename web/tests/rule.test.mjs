// Rules are read strictly, and say whose approval counts: `node --test web/tests/`.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { canonical, parse } from "../core/canonical.js";
import { Problem } from "../core/problem.js";
import {
	allowsGrant,
	checkRule,
	isBlank,
	needsOthers,
	readRule,
	ruleProblem,
	teamsOf,
	wantsComment,
} from "../core/rule.js";
import { crowd, RULE, SINGLE } from "./rules.mjs";

const read = (rule) =>
	readRule(parse("artifact", canonical({ "countersign.rule": rule })));
const without = (object, ...names) =>
	Object.fromEntries(
		Object.entries(object).filter(([name]) => !names.includes(name)),
	);
const [ASK] = RULE.asks;
const withAsk = (change) => ({ ...RULE, asks: [{ ...ASK, ...change }] });
const withStep = (change) =>
	withAsk({ escalate: [{ after: 180, from: ["dave"], ...change }] });
const ALICE = { approverId: "alice", enforcerId: "bot" };

const vectors = JSON.parse(
	await readFile(
		new URL("../../tests/vectors/rule.json", import.meta.url),
		"utf8",
	),
);

test("page and terminal read the same rules", () => {
	assert.ok(vectors.refused.length > 40);
	for (const { name, rule } of vectors.accepted)
		assert.equal(typeof read(rule), "object", name);
	for (const { name, rule } of vectors.unknown)
		if (rule.v !== 1) assert.equal(read(rule), "unknown", name);
	for (const { name, rule } of vectors.refused)
		assert.throws(
			() => read(rule),
			(error) => error instanceof Problem,
			name,
		);
});

test("page and terminal let the same people approve", () => {
	const codes = {
		seat: "otherSeat",
		comment: "commentMissing",
		notAsked: "notInRule",
		notBy: "excludedByRule",
		version: "version",
		enforcer: "ruleOfOther",
	};
	assert.ok(vectors.approvals.length > 10);
	for (const { rule, comment, refusal, ...about } of vectors.approvals) {
		let found = null;
		try {
			const reason = comment ?? undefined;
			const approve = { verdict: "approve", reason };
			checkRule(read(rule), ruleProblem(read(rule), about), approve);
		} catch (error) {
			found = (error.values.problem ?? error).code;
		}
		assert.equal(found, refusal === null ? null : codes[refusal]);
	}
});

test("an artifact may have no rule", () => {
	assert.equal(readRule(undefined), null);
	assert.equal(readRule(parse("artifact", "{}")), null);
});

test("all members of a rule are read", () => {
	const asks = [
		{
			...ASK,
			team: null,
			escalate: ASK.escalate.map((step) => ({ ...step, team: null })),
		},
	];
	assert.deepEqual(read(RULE), { ...without(RULE, "v"), asks });
	assert.deepEqual(read(SINGLE), {
		...without(SINGLE, "v"),
		seat: null,
		asks: [{ ...SINGLE.asks[0], team: null, escalate: [] }],
		notBy: [],
	});
});

test("the largest rules are accepted", () => {
	const accepted = [
		{ ...RULE, asks: [{ approvals: 64, from: ["alice", ...crowd(63)] }] },
		withAsk({ approvals: 64, from: ["alice", ...crowd(62)] }),
		withAsk({ from: ["ü".repeat(128), "alice"] }),
		{ ...RULE, seat: "dave" },
		{ ...SINGLE, seat: "bob" },
		withStep({ after: 1 }),
		withStep({ after: 86_400 }),
		// The same people in another step are the same people.
		withStep({ from: ["alice", "dave"] }),
		withAsk({
			escalate: Array.from({ length: 8 }, (_, at) => ({
				after: at + 1,
				from: ["dave"],
			})),
		}),
		{ ...RULE, asks: Array(16).fill(ASK) },
		{ ...RULE, asks: [ASK, { approvals: 1, from: crowd(60) }] },
		{ ...RULE, rejections: 64 },
		{ ...RULE, notBy: crowd(64) },
	];
	for (const rule of accepted)
		assert.equal(typeof read(rule), "object", JSON.stringify(rule));
	for (const comment of ["none", "reject", "approve", "always"])
		assert.equal(read({ ...RULE, comment }).comment, comment);
});

const REFUSED = {
	"no object": "x",
	"a list": [RULE],
	"no version": without(RULE, "v"),
	"no enforcer": without(RULE, "enforcerId"),
	"an enforcer that is no id": { ...RULE, enforcerId: "" },
	"no set": without(RULE, "set"),
	"a short set": { ...RULE, set: "AAECAwQFBgcICQoLDA0O" },
	"a long set": { ...RULE, set: "AAECAwQFBgcICQoLDA0ODxA" },
	"a set with other bits": { ...RULE, set: "AAECAwQFBgcICQoLDA0ODx" },
	"a set with padding": { ...RULE, set: "AAECAwQFBgcICQoLDA0ODw==" },
	"a seat that is null": { ...RULE, seat: null },
	"a seat that is no id": { ...RULE, seat: "a\nb" },
	"a list of seats": { ...RULE, seat: ["alice"] },
	"a seat of nobody who is asked": { ...RULE, seat: "erin" },
	"no seat for two approvals": without(RULE, "seat"),
	"no seat for two rejections": { ...SINGLE, rejections: 2 },
	"no seat for two asks": { ...SINGLE, asks: Array(2).fill(SINGLE.asks[0]) },
	"no asks": without(RULE, "asks"),
	"an empty list of asks": { ...RULE, asks: [] },
	"too many asks": { ...RULE, asks: Array(17).fill(ASK) },
	"an ask that is no object": { ...RULE, asks: ["alice"] },
	"a further member of an ask": withAsk({ any: true }),
	"an ask of nobody": { ...RULE, asks: [without(ASK, "from")] },
	"an empty list of people": withAsk({ approvals: 1, from: [] }),
	"a person who is no id": withAsk({ from: ["alice", ""] }),
	"a person with a control character": withAsk({ from: ["alice", "b\u0007"] }),
	"a person with too long an id": withAsk({ from: ["alice", "a".repeat(129)] }),
	"a person who is a number": withAsk({ from: ["alice", 1] }),
	"people who are no list": withAsk({ from: "alice" }),
	"a person twice": withAsk({ from: ["alice", "bob", "alice"] }),
	"too many people": {
		...RULE,
		asks: [{ approvals: 2, from: ["alice", ...crowd(64)] }],
	},
	"too many people with those of later steps": withAsk({
		from: ["alice", ...crowd(63)],
	}),
	"too many people of several asks": {
		...RULE,
		asks: [ASK, { approvals: 1, from: crowd(61) }],
	},
	"no count of approvals": { ...RULE, asks: [without(ASK, "approvals")] },
	"no approval": withAsk({ approvals: 0 }),
	"fewer approvals than none": withAsk({ approvals: -1 }),
	"half an approval": withAsk({ approvals: 1.5 }),
	"approvals in words": withAsk({ approvals: "2" }),
	"more approvals than people": withAsk({ approvals: 5 }),
	"more approvals than people without later ones": {
		...RULE,
		asks: [{ approvals: 4, from: ASK.from }],
	},
	"people counted twice": withAsk({
		approvals: 4,
		escalate: [{ after: 180, from: ["alice"] }],
	}),
	"too many approvals": withAsk({
		approvals: 65,
		from: ["alice", ...crowd(62)],
	}),
	"steps that are no list": withAsk({ escalate: {} }),
	"a step that is no object": withAsk({ escalate: ["dave"] }),
	"no steps": withAsk({ escalate: [] }),
	"too many steps": withAsk({
		escalate: Array.from({ length: 9 }, (_, at) => ({
			after: at + 1,
			from: ["dave"],
		})),
	}),
	"two steps at one time": withAsk({
		escalate: Array(2).fill({ after: 180, from: ["dave"] }),
	}),
	"steps in the wrong order": withAsk({
		escalate: [240, 180].map((after) => ({ after, from: ["dave"] })),
	}),
	"a further member of a step": withStep({ approvals: 1 }),
	"a step to nobody": withStep({ from: [] }),
	"a step to a person twice": withStep({ from: ["dave", "dave"] }),
	"a step without a time": withAsk({ escalate: [{ from: ["dave"] }] }),
	"a step at once": withStep({ after: 0 }),
	"a step after more than a day": withStep({ after: 86_401 }),
	"a step after a time in words": withStep({ after: "3m" }),
	"no count of rejections": without(RULE, "rejections"),
	"no rejection": { ...RULE, rejections: 0 },
	"too many rejections": { ...RULE, rejections: 65 },
	"half a rejection": { ...RULE, rejections: 0.5 },
	"no word about comments": without(RULE, "comment"),
	"an unknown word about comments": { ...RULE, comment: "both" },
	"a truth about comments": { ...RULE, comment: true },
	"excluded people who are no list": { ...RULE, notBy: "erin" },
	"excluded people who are null": { ...RULE, notBy: null },
	"an empty list of excluded people": { ...RULE, notBy: [] },
	"an excluded person twice": { ...RULE, notBy: ["erin", "erin"] },
	"an excluded person who is no id": { ...RULE, notBy: [""] },
	"too many excluded people": { ...RULE, notBy: crowd(65) },
	"a further member": { ...RULE, park: 14_400 },
};

for (const [name, rule] of Object.entries(REFUSED))
	test(`refused: ${name}`, () =>
		assert.throws(
			() => read(rule),
			(error) => error instanceof Problem,
		));

test("another version is recognised and not understood", () => {
	const unknown = [
		{ v: 2 },
		{ ...RULE, v: 2, further: [] },
		{ ...RULE, v: "1" },
		{ ...RULE, v: null },
	];
	for (const rule of unknown)
		assert.equal(read(rule), "unknown", JSON.stringify(rule));
});

test("a team stands in the place of people, and then there is a seat", () => {
	const team = {
		teamId: "AAAAAAAAAAAAAAAAAAAAAA",
		seq: 7,
		digest: "0".repeat(64),
	};
	const ofTeam = { ...without(ASK, "from"), team };
	const step = { after: 180, team };
	for (const rule of [
		{ ...RULE, asks: [ofTeam] },
		{ ...RULE, asks: [ASK, ofTeam], seat: "zoe" },
		withAsk({ escalate: [step], approvals: 9 }),
	])
		assert.equal(teamsOf(read(rule)).length, 1, JSON.stringify(rule));
	for (const rule of [
		withAsk({ team }),
		withStep({ team }),
		{ ...SINGLE, asks: [{ approvals: 1, team }] },
		...[
			{ seq: 2048 },
			{ seq: -1 },
			{ seq: 0.5 },
			{ digest: "0" },
			{ teamId: "AA" },
			{ name: "payments" },
		].map((change) => ({
			...RULE,
			asks: [{ ...ofTeam, team: { ...team, ...change } }],
		})),
	])
		assert.throws(
			() => read(rule),
			(error) => error instanceof Problem,
			JSON.stringify(rule),
		);
});

test("an approval counts by those who are asked, and by nobody else", () => {
	const codeOf = (rule, about) =>
		ruleProblem(read(rule), { ...ALICE, ...about })?.code ?? null;
	const seated = (seat, change = {}) => ({ ...RULE, ...change, seat });
	assert.equal(ruleProblem(null, ALICE), null);
	assert.equal(codeOf(RULE), null);
	assert.equal(codeOf(seated("dave"), { approverId: "dave" }), null);
	assert.equal(codeOf(SINGLE), null);
	assert.equal(
		codeOf(
			{ ...SINGLE, asks: [{ ...ASK, approvals: 1 }] },
			{ approverId: "dave" },
		),
		null,
	);
	assert.equal(codeOf({ ...RULE, v: 2 }), "version");
	assert.equal(codeOf({ ...RULE, enforcerId: "prod" }), "ruleOfOther");
	assert.equal(codeOf(RULE, { enforcerId: "prod" }), "ruleOfOther");
	assert.equal(codeOf(seated("bob")), "otherSeat");
	assert.equal(codeOf(seated("alice", { notBy: ["alice"] })), "excludedByRule");
	assert.equal(codeOf({ ...SINGLE, notBy: ["alice"] }), "excludedByRule");
	const own = { operators: ["alice"] };
	assert.equal(codeOf({ ...SINGLE, notBy: ["erin"] }, own), "excludedByRule");
	assert.equal(codeOf(SINGLE, own), null);
	assert.equal(codeOf(SINGLE, { approverId: "carol" }), "notInRule");
	const { values } = ruleProblem(read(seated("bob")), ALICE);
	assert.deepEqual(values, { seat: "bob" });
});

test("what the rule does not count is not approved, and can be rejected", () => {
	const check = (rule, choice) =>
		checkRule(rule, ruleProblem(rule, ALICE), choice);
	const refused = (rule, choice, code) =>
		assert.throws(
			() => check(read(rule), choice),
			(error) => error.code === code,
			JSON.stringify(choice),
		);
	const approve = { verdict: "approve" };
	for (const rule of [
		{ ...RULE, v: 2 },
		{ ...RULE, seat: "bob" },
		{ ...RULE, notBy: ["alice"] },
		{ ...RULE, enforcerId: "prod" },
	]) {
		refused(rule, approve, "notApprovable");
		check(read(rule), { verdict: "reject" });
	}
	check(read(RULE), approve);
	check(null, { ...approve, scope: "timebox" });
	for (const comment of ["approve", "always"]) {
		const rule = { ...RULE, comment };
		refused(rule, approve, "commentMissing");
		refused(rule, { ...approve, reason: " \n" }, "commentMissing");
		check(read(rule), { ...approve, reason: "planned" });
		// A rejection counts without one, so nothing keeps a person from it.
		check(read(rule), { verdict: "reject" });
	}
	check(read({ ...RULE, comment: "reject" }), approve);
	const longer = { ...approve, scope: "session", reason: "planned" };
	refused(RULE, longer, "ruleOnce");
	refused(SINGLE, longer, "ruleOnce");
});

test("a comment is wanted for what the rule says", () => {
	const wanted = (comment) =>
		["approve", "reject"].map((verdict) =>
			wantsComment(read({ ...RULE, comment }), verdict),
		);
	assert.deepEqual(wanted("none"), [false, false]);
	assert.deepEqual(wanted("approve"), [true, false]);
	assert.deepEqual(wanted("reject"), [false, true]);
	assert.deepEqual(wanted("always"), [true, true]);
	for (const rule of [null, "unknown"])
		assert.equal(wantsComment(rule, "approve"), false);
});

test("a comment that nobody can see is blank", () => {
	for (const text of [
		"",
		" \t\n",
		"\u00a0",
		"\u0085",
		"\u200b\u2060",
		"\ufeff",
		"\u3000",
		"\u2028",
		"\0",
	])
		assert.ok(isBlank(text), JSON.stringify(text));
	for (const text of ["x", " ok ", "👍", "\u200bü", "."])
		assert.ok(!isBlank(text), JSON.stringify(text));
});

test("a permission beyond the request is for requests without a rule", () => {
	const ofTwo = {
		...SINGLE,
		seat: "alice",
		asks: [SINGLE.asks[0], SINGLE.asks[0]],
	};
	assert.equal(allowsGrant(null), true);
	assert.equal(allowsGrant("unknown"), false);
	for (const rule of [
		SINGLE,
		withAsk({}),
		ofTwo,
		{ ...SINGLE, notBy: ["erin"] },
		{ ...SINGLE, comment: "approve" },
		{ ...SINGLE, comment: "reject" },
		{ ...SINGLE, comment: "always" },
	])
		assert.equal(allowsGrant(read(rule)), false, JSON.stringify(rule));
	assert.deepEqual(
		[null, "unknown", read(SINGLE), read(RULE), read(ofTwo)].map(needsOthers),
		[false, false, false, true, true],
	);
});
