// The people who work with an agent: in answers, in introductions and as a person types them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fromBase64url } from "../core/bytes.js";
import { parse } from "../core/canonical.js";
import {
	checkIntroduction,
	judgeIntroductions,
	parseIntroduction,
	spellIntroduction,
} from "../core/introduction.js";

import { parseEnforcerBundle } from "../core/keys.js";
import { parseOperators } from "../core/operators.js";
import { beginAnswer, digitsOf, proveAnswer } from "../core/pairing.js";
import { deviceOf, fromHex } from "./support.js";

const read = (name) =>
	JSON.parse(
		readFileSync(
			new URL(`../../tests/vectors/${name}.json`, import.meta.url),
			"utf8",
		),
	);
const vectors = read("operators");
const encryption = read("encryption");
const { nonce, approverId, enforcerBundle, link } = encryption.pairing;

const randomOf = (answer) =>
	fromBase64url(
		"random",
		JSON.parse(new TextDecoder().decode(fromBase64url("answer", answer)))
			.random,
	);
const introduction = (value) =>
	parseIntroduction(parse("answer", JSON.stringify(value)));

test("an answer names them under its proof and its digits", async () => {
	const { bundle } = await deviceOf(encryption, "phone");
	const offer = parseEnforcerBundle(enforcerBundle);
	for (const { operators, byLink, byCode, digits } of vectors.answers) {
		const begin = (answer) =>
			beginAnswer(
				offer,
				nonce,
				approverId,
				bundle,
				randomOf(answer),
				operators,
			);
		assert.equal(
			await proveAnswer(begin(byLink), fromHex(link.secret)),
			byLink,
		);
		const { answer, transcript } = begin(byCode);
		assert.equal(answer, byCode);
		assert.equal(await digitsOf(transcript, nonce), digits);
	}
});

test("an introduction names them, and is refused if the list makes no sense", async () => {
	const { signable, signed } = vectors.introduction;
	const found = introduction(signed);
	assert.equal(found.text, signable);
	assert.deepEqual(found.operators, ["dave"]);
	const {
		key,
		label,
		at: pairedAt,
		operators,
		subject,
		enforcerId,
		by,
	} = found;
	const record = { enforcerId, key, label, pairedAt, operators };
	assert.equal(spellIntroduction(subject, record, by), signable);
	assert.ok(vectors.refused.length > 5);
	for (const { name, introduction: refused } of vectors.refused)
		assert.throws(
			() => introduction(refused),
			({ code }) => code === "member",
			name,
		);
	const { bundle } = await deviceOf(encryption, "phone");
	const trust = { subject, device: () => bundle };
	await checkIntroduction(found, trust);
	const statement = { ...signed.statement, operators: ["erin"] };
	await assert.rejects(
		checkIntroduction(introduction({ ...signed, statement }), trust),
		({ code }) => code === "statementSignature",
	);
});

test("introductions add operators, and remove none", () => {
	const found = introduction(vectors.introduction.signed);
	const here = { own: "me", known: new Map(), ended: new Map() };
	const two = [found, { ...found, by: "other", operators: ["erin", "dave"] }];
	assert.deepEqual(judgeIntroductions(two, here).taken[0].operators, [
		"dave",
		"erin",
	]);
	const record = {
		enforcerId: found.enforcerId,
		key: found.key,
		operators: ["bob", "dave"],
	};
	const known = new Map([[found.enforcerId, record]]);
	assert.deepEqual(judgeIntroductions([found], { ...here, known }).taken, []);
	assert.deepEqual(judgeIntroductions(two, { ...here, known }).taken, [
		{ ...record, operators: ["bob", "dave", "erin"] },
	]);
	const other = new Map([[found.enforcerId, { ...record, key: "another" }]]);
	assert.deepEqual(
		judgeIntroductions(two, { ...here, known: other }).taken,
		[],
	);
});

test("ids are read as people type them", () => {
	assert.deepEqual(parseOperators(" dave, erin ,,dave "), ["dave", "erin"]);
	assert.equal(parseOperators(" , "), null);
	for (const text of [
		"a\u0007b",
		"a\u202eb",
		Array.from({ length: 17 }, (_, at) => `p${at}`).join(),
	])
		assert.throws(
			() => parseOperators(text),
			({ code }) => code === "operators",
		);
});
