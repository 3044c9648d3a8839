// Profiles, and what is learned beside them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, ProfileError } from "@countersign/client";
import { parseAddress } from "../dist/http.js";
import { parseProfile } from "../dist/profile.js";
import { parseToml, TomlError } from "../dist/toml.js";
import { merged } from "../dist/trust.js";
import { directory, thrown } from "./support.mjs";

const KEY = "JfVxTC4_qfj6DFk8rS-Kc2_HtRWFXGxFrnYsvyuAUU8";
const PROFILE = `# A profile of Countersign.

[enforcer]
id = "build-bot"
key = "${KEY}"
operators = ["dave"]

[enforcer.gateway]
urls = ["http://127.0.0.1:1", "https://gateway.example.org/base"]
tenant = "acme"
api_key = "csk_secret"

[[enforcer.approvers]]
id = "alice"
paired_at = "2026-02-21T12:00:00Z"
routing_token = "token"
checked_at = ""
devices = [
  "one",
  "two", # the last one
]
revoked = ['three']

[enforcer.approvers.added_by]
two = "one"

[[enforcer.approvers]]
id = "bob"
paired_at = "2026-02-21T12:00:00Z"
routing_token = "other"
checked_at = "2026-02-21T12:00:00Z"
devices = []
added_by = { "a-b" = "c" }

[approver]
id = "alice"
anything = { deep = [true, "x"] }
`;

test("a profile as the program writes it", () => {
	const profile = parseProfile(PROFILE);
	assert.equal(profile.enforcerId, "build-bot");
	assert.equal(profile.gateway.apiKey, "csk_secret");
	assert.equal(profile.gateway.allowHttp, false);
	assert.deepEqual(
		profile.approvers.map(({ id }) => id),
		["alice", "bob"],
	);
	assert.deepEqual(profile.approvers[0].devices, ["one", "two"]);
	assert.deepEqual(profile.approvers[0].revoked, ["three"]);
	assert.equal(profile.approvers[0].addedBy.get("two"), "one");
	assert.equal(profile.approvers[1].addedBy.get("a-b"), "c");
});

test("profiles that are refused, without their text", () => {
	for (const [from, to] of [
		['id = "build-bot"', 'id = "build-bot"\nmore = "x"'],
		["[enforcer]", "[guard]\n[enforcer]"],
		['tenant = "acme"', "tenant = true"],
		[KEY, "short"],
		['api_key = "csk_secret"', ""],
		["devices = []", "devices = [true]"],
		["urls = [", "urls = []\nothers = ["],
		['api_key = "csk_secret"', 'api_key = "csk_secret'],
		['tenant = "acme"', 'tenant = "acme"\ntenant = "acme"'],
	]) {
		assert.ok(PROFILE.includes(from), from);
		const error = (() => {
			try {
				return parseProfile(PROFILE.replace(from, to));
			} catch (refusal) {
				return refusal;
			}
		})();
		assert.ok(error instanceof ProfileError, `${to}: ${error}`);
		assert.doesNotMatch(error.message, /csk_secret|JfVx/);
	}
	const approverOnly = PROFILE.slice(PROFILE.indexOf("[approver]"));
	assert.throws(() => parseProfile(approverOnly), /has no enforcer/);
});

test("TOML: strings, and what is not read", () => {
	const read = parseToml(
		'a = "\\u00e4\\n\\"\\\\\\U0001F600"\nb.c = \'\\n\'\n"d e" = ""',
	);
	assert.equal(read.get("a"), 'ä\n"\\😀');
	assert.equal(read.get("b").get("c"), "\\n");
	assert.equal(read.get("d e"), "");
	for (const text of [
		"a = 1",
		"a = 2026-02-21T12:00:00Z",
		'a = """x"""',
		"a = '''x'''",
		'a = "\\q"',
		'a = "\\ud800"',
		'a = "x" b = "y"',
		'a = "x"\na = "y"',
		"[a]\n[a]",
		'a = "x"\n[a]',
		"[[a]]\n[a]",
		'a = ["x"]\n[[a]]',
		"a = {b = true}\n[a]",
		'a = "\u0007"',
		"a =",
		"= true",
		"[a",
	])
		assert.throws(() => parseToml(text), TomlError, text);
});

test("addresses: plain http only on this machine", () => {
	for (const text of [
		"http://127.0.0.1:8080",
		"http://localhost:1",
		"http://[::1]:1",
		"https://gateway.example.org/base",
	])
		parseAddress(text, false);
	for (const text of [
		"http://gateway.example.org",
		"ftp://127.0.0.1",
		"https://user:secret@gateway.example.org",
		"https://gateway.example.org/?a=b",
		"gateway",
	])
		assert.throws(
			() => parseAddress(text, false),
			(error) => error instanceof ProfileError && !/secret/.test(error.message),
			text,
		);
	parseAddress("http://gateway.example.org", true);
});

test("a profile's text needs a state", async (t) => {
	for (const state of [undefined, null, ""])
		assert.ok(
			(await thrown(() =>
				Client.fromProfileText(PROFILE, { state }),
			)) instanceof ProfileError,
		);
	const state = await directory(t);
	const client = await Client.fromProfileText(PROFILE, { state });
	client.close();
});

test("both copies of what is known count, unless the pairing is new", () => {
	const record = {
		id: "alice",
		devices: ["one"],
		revoked: ["x"],
		addedBy: new Map([["two", "one"]]),
		checkedAt: "2026-02-21T12:00:00Z",
		routingToken: "token",
	};
	const other = {
		...record,
		devices: ["two"],
		revoked: ["y"],
		addedBy: new Map([["two", "thief"]]),
		checkedAt: "2026-02-21T12:01:00Z",
	};
	const both = merged(record, other);
	assert.deepEqual(both.devices, ["one", "two"]);
	assert.deepEqual(both.revoked, ["x", "y"]);
	assert.equal(both.addedBy.get("two"), "one");
	assert.equal(both.checkedAt, other.checkedAt);
	const old = merged(record, { ...other, routingToken: "old" });
	assert.deepEqual(old, { ...record, revoked: ["x", "y"] });
});
