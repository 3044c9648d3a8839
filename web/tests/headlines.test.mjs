// What a request would do, in a sentence: `node --test web/tests/`.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { agentTitle } from "../core/agentnames.js";
import { agentReason } from "../core/sentence.js";
import { readSessions, sessionWord } from "../core/sessions.js";
import { byUrgency, shortRepository } from "../ui/summary.js";

globalThis.document ??= {
	createElement: () => ({ setAttribute() {}, append() {} }),
};
const { headline } = await import("../ui/sentence.js");

const vectors = JSON.parse(
	await readFile(
		new URL("../../tests/vectors/headlines.json", import.meta.url),
		"utf8",
	),
);

test("page and terminal say the same", () => {
	assert.ok(vectors.length > 40);
	for (const { type = "command.review", payload, says } of vectors)
		assert.equal(headline({ artifactType: type, payload }), says);
});

test("a sentence stays short, and says that there is more", () => {
	const long = "x".repeat(100_000);
	for (const payload of [
		{ kind: "command", command: long },
		{ kind: "plan", text: long },
		{ kind: "tool", tool: long, input: { url: long } },
		{ title: long },
	]) {
		const said = headline({ artifactType: "plan.review", payload });
		assert.ok(said.length < 300 && said.includes("…"), said);
	}
});

test("agents have their names, and their reasons are found", () => {
	const title = (agent) => agentTitle({ payload: { agent } });
	assert.equal(title("claude"), "Claude Code");
	assert.equal(title("copilot"), "GitHub Copilot CLI");
	for (const other of ["Claude Code", "toString", 7, undefined])
		assert.equal(title(other), null);
	const reason = (payload) => agentReason({ payload });
	assert.equal(reason({ options: { description: "List" } }), "List");
	assert.equal(reason({ description: "Why" }), "Why");
	for (const none of [{}, { description: " " }, { options: [1] }])
		assert.equal(reason(none), null);
});

test("the most urgent request comes first", () => {
	const item = (expiresAt, receivedAt) => ({ expiresAt, receivedAt });
	const sorted = [
		item(null, "1"),
		item("2026-01-01T10:00:00Z", "3"),
		item("2026-01-01T09:00:00+02:00", "4"),
		item("2026-01-01T10:00:00Z", "2"),
	].sort(byUrgency);
	assert.deepEqual(
		sorted.map(({ receivedAt }) => receivedAt),
		["4", "2", "3", "1"],
	);
	assert.equal(shortRepository("host:/work/infra"), "infra");
	assert.equal(shortRepository("host:/."), "host:/.");
	assert.equal(shortRepository("repo:acme"), "repo:acme");
});

test("a session waits for a person only while a request of it is open", () => {
	const now = Date.parse("2026-01-01T10:00:00Z");
	const word = (state, minutes, isWaiting, endedAt = null) =>
		sessionWord(
			{
				state,
				endedAt,
				updatedAt: new Date(now - minutes * 60_000).toISOString(),
			},
			isWaiting,
			now,
		);
	assert.equal(word("waiting_approval", 0, true), "waiting");
	assert.equal(word("waiting_approval", 1, false), "working");
	assert.equal(word("waiting_approval", 53, false), "quiet");
	assert.equal(word("executing", 1, true), "waiting");
	assert.equal(word("error", 1, false), "failed");
	assert.equal(word("idle", 90, false), "idle");
	// One that was resumed asks again, or has reported since.
	const ended = "2026-01-01T09:59:00Z";
	assert.equal(word("executing", 1, false, ended), "finished");
	assert.equal(word("executing", 30, false, ended), "finished");
	assert.equal(word("executing", 1, true, ended), "waiting");
	for (const before of ["executing", "idle", "error"])
		assert.equal(word(before, 0.5, false, ended), "working");
	assert.equal(word("executing", 20, false, "2026-01-01T09:30:00Z"), "quiet");
});

test("a session that asks after its end goes on", async () => {
	const read = async (askedAt) => {
		const known = {
			enforcerId: "bot",
			state: "idle",
			updatedAt: "2026-01-01T09:00:00Z",
			endedAt: "2026-01-01T09:00:00Z",
		};
		const record = { sessionId: "s", enforcerId: "bot", seenAt: "", askedAt };
		const [session] = await readSessions(
			{
				client: { members: async () => ({ status: 200, members: known }) },
				store: { sessions: async () => [record] },
			},
			"bot",
		);
		return sessionWord(session, false, Date.parse("2026-01-01T10:05:00Z"));
	};
	assert.equal(await read("2026-01-01T10:00:00Z"), "working");
	assert.equal(await read("2026-01-01T08:00:00Z"), "finished");
	assert.equal(await read(undefined), "finished");
});
