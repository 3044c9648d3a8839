// Strict JSON, its canonical form, base64url and times: one spelling for each value, and nothing
// that two readers take differently.

import { fromBase64url, toBase64url } from "../core/bytes.js";
import {
	canonicalNode,
	cleanText,
	isId,
	readTime,
	spellTime,
} from "../core/canonical.js";
import { JsonError, parseJson } from "../core/json.js";
import { assert, assertEqual, assertRefused } from "./support.js";

/** @type {import('./support.js').Tests} */
export const tests = {
	"JSON that is refused, and why"() {
		const deep = (/** @type {number} */ depth) =>
			"[".repeat(depth) + "]".repeat(depth);
		/** @type {[string, string][]} */
		const refused = [
			["", "end"],
			["{", "end"],
			['"a', "end"],
			["[1,", "end"],
			["tru", "syntax"],
			['{"a":1,}', "syntax"],
			["[1,]", "syntax"],
			["{'a':1}", "syntax"],
			["{a:1}", "syntax"],
			["NaN", "syntax"],
			["+1", "syntax"],
			[".5", "syntax"],
			["-", "end"],
			["01", "trailing"],
			["1.", "trailing"],
			["[1.]", "syntax"],
			["1 2", "trailing"],
			["{} x", "trailing"],
			["\ufeff1", "syntax"],
			['"\t"', "syntax"],
			['"\\x"', "syntax"],
			['"\\u12"', "syntax"],
			["\u00a01", "syntax"],
			['{"a":1,"a":2}', "duplicate"],
			['{"a":1,"\\u0061":2}', "duplicate"],
			['"\\ud800"', "surrogate"],
			['"\\udc00"', "surrogate"],
			['"\\ud800\\u0041"', "surrogate"],
			['"\\u0000"', "nul"],
			["9007199254740992", "integer"],
			["-9007199254740992", "integer"],
			["1e400", "overflow"],
			[deep(65), "depth"],
			[`[${"1,".repeat(250_000)}1]`, "values"],
		];
		for (const [text, reason] of refused) {
			let found = "accepted";
			try {
				parseJson(text);
			} catch (error) {
				if (!(error instanceof JsonError)) throw error;
				found = error.reason;
			}
			assertEqual(found, reason, text.slice(0, 40));
		}
		parseJson(deep(64));
	},

	"JSON in canonical form"() {
		/** @type {[string, string][]} */
		const known = [
			[' { "b" : [ 1 , 2.50 ] , "a" : null } ', '{"a":null,"b":[1,2.5]}'],
			[
				'{"\\ud83d\\ude00":1,"\\ufb33":2,"1":3,"__proto__":4}',
				'{"1":3,"__proto__":4,"\ud83d\ude00":1,"\ufb33":2}',
			],
			['"\\u20ac\\u000f\\n\\"\\/\\\\\\u007f"', '"€\\u000f\\n\\"/\\\\\u007f"'],
			[
				"[333333333.33333329,1E30,4.50,2e-3,1e-27,-0,1e21,1e20]",
				"[333333333.3333333,1e+30,4.5,0.002,1e-27,0,1e+21,100000000000000000000]",
			],
		];
		for (const [text, expected] of known)
			assertEqual(canonicalNode(parseJson(text)), expected);
		assertEqual(
			canonicalNode(parseJson('["\\\\","\\"\\\\\\"x",{"\\n":"\\u0041\\t"}]')),
			'["\\\\","\\"\\\\\\"x",{"\\n":"A\\t"}]',
		);
		assertEqual(parseJson(' {"a": [1, 2 ]} ').raw, '{"a": [1, 2 ]}');
	},

	async "base64url has one spelling"() {
		for (let length = 0; length < 70; length += 1) {
			const bytes = crypto.getRandomValues(new Uint8Array(length));
			assertEqual([...fromBase64url("key", toBase64url(bytes))], [...bytes]);
		}
		const large = new Uint8Array(1 << 20).map((_, at) => at * 7);
		assertEqual(
			toBase64url(fromBase64url("key", toBase64url(large))).length,
			Math.ceil((large.length * 4) / 3),
		);
		for (const text of [
			"A",
			"AA=",
			"AA==",
			"A A",
			"AB",
			"AAB",
			"A+",
			"A/",
			"Aé",
			"AAAA\n",
		]) {
			await assertRefused(() => fromBase64url("key", text), "base64");
		}
	},

	"times as the gateway spells them"() {
		assertEqual(
			spellTime(Date.UTC(2026, 1, 21, 12, 0, 0)),
			"2026-02-21T12:00:00Z",
		);
		assertEqual(
			spellTime(Date.UTC(2026, 1, 21, 12, 0, 10, 120)),
			"2026-02-21T12:00:10.12Z",
		);
		assertEqual(
			spellTime(Date.UTC(2026, 1, 21, 12, 0, 10, 5)),
			"2026-02-21T12:00:10.005Z",
		);
		assertEqual(
			readTime("2026-02-21T12:00:00.5+01:00"),
			Date.UTC(2026, 1, 21, 11, 0, 0, 500),
		);
		assertEqual(readTime("2024-02-29t00:00:00z"), Date.UTC(2024, 1, 29));
		for (const text of [
			"2026-02-29T00:00:00Z",
			"2026-13-01T00:00:00Z",
			"2026-02-21",
			"2026-02-21T24:00:00Z",
			"2026-02-21T12:00Z",
			"x",
		]) {
			assertEqual(readTime(text), null, text);
		}
	},

	"ids, and texts that people type"() {
		assert(
			isId("build-bot") && isId("ü".repeat(128)) && isId("😀".repeat(128)),
			"ids",
		);
		assert(!isId("") && !isId("a\nb") && !isId("a".repeat(129)), "no ids");
		assertEqual(cleanText("a\u0000b\ud800c😀"), "a\ufffdb\ufffdc😀");
	},
};
