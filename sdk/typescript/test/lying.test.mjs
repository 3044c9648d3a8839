// A gateway that lies, as the proxy of the gateway's own hostile tests does: forged, swapped, replayed,
// withheld and altered messages, and edited statements. None of them makes anything run.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Approved, Denied, StillWaiting } from "@countersign/client";
import { FakeApprover } from "@countersign/client/testing";
import { utf8 } from "../dist/core/bytes.js";
import { spellTime } from "../dist/core/canonical.js";
import { generateKeyPairs, openKeys, sign } from "../dist/core/keys.js";
import { spellSigned, spellStatement } from "../dist/core/statements.js";
import { FakeDevice } from "../dist/testing/fake_device.js";
import { thrown } from "./support.mjs";

const SUBJECT = { tenantId: "fake-tenant", approverId: "fake-approver" };
const keys = await openKeys(await generateKeyPairs(), "mallory");
const mallory = new FakeDevice(keys, SUBJECT);
const CALL = { name: "pay", args: { amount: 5 } };

/** The ways into the library. Each ends in a denial, or runs `ran`. */
const ENTRIES = {
	wrapped: (client, ran, timeout) =>
		client.approvalRequired("pay", { timeout }, ran)(CALL.args),
	durable: async (client, ran, timeout) => {
		const pending = await client.submit({ call: CALL, timeout });
		for (;;) {
			const outcome = await pending.outcome({ wait: timeout });
			if (outcome instanceof Denied) throw outcome;
			if (outcome instanceof Approved) return outcome.use(CALL, ran);
			assert.ok(outcome instanceof StillWaiting);
		}
	},
};

const cases = [];

/** `lie` changes the gateway of an approver that has approved everything. */
function refuses(title, causes, lie) {
	// Only a request without a usable answer waits for its end.
	const isAnswered = causes.every((cause) =>
		["untrusted", "ended"].includes(cause),
	);
	const timeout = isAnswered ? "20s" : "1500ms";
	for (const [entry, act] of Object.entries(ENTRIES))
		cases.push([
			`${entry}: ${title}`,
			async () => {
				const approver = await FakeApprover.create();
				approver.when({}).approve();
				const ran = [];
				await ENTRIES[entry](approver.client, () => ran.push("honest"), "20s");
				assert.deepEqual(ran, ["honest"]);
				await lie(approver);
				const client = await approver.newClient();
				const error = await thrown(() =>
					act(client, () => ran.push("lie"), timeout),
				);
				assert.ok(error instanceof Denied, `${error}`);
				assert.ok(causes.includes(error.cause), `${error.cause}: ${error}`);
				assert.match(error.forModel(), /Nothing was executed/);
				assert.deepEqual(ran, ["honest"]);
				client.close();
			},
		]);
}

/** Changes decisions on their way. */
function altering(change) {
	return (approver) => {
		approver.gateway.tamper = async (_, text) => change(text, approver);
	};
}

/** Changes the answers of one call. */
function answering(place, change) {
	return (approver) => {
		const { send, ...rest } = approver.gateway.transport();
		approver.gateway.transport = () => ({
			...rest,
			send: async (request) =>
				request.path.includes(place)
					? change(() => send(request), request)
					: send(request),
		});
	};
}

const edit = (change) => (text) =>
	JSON.stringify({ ...JSON.parse(text), ...change(JSON.parse(text)) });
const flip = (text) => (text.startsWith("A") ? "B" : "A") + text.slice(1);

// No member of a decision can be altered, left out or added.
for (const name of [
	"artifactHash",
	"expiresAt",
	"nonce",
	"repoRef",
	"requestId",
	"scope",
	"sigAlg",
	"signature",
	"signerKeyId",
]) {
	const altered = edit((decision) => ({ [name]: flip(decision[name]) }));
	refuses(`another ${name}`, ["untrusted"], altering(altered));
	const left = edit(() => ({ [name]: undefined }));
	refuses(`no ${name}`, ["untrusted"], altering(left));
}
refuses("a member more", ["untrusted"], altering(edit(() => ({ more: 1 }))));
refuses("a rejection that becomes an approval", ["untrusted"], (approver) => {
	approver.when({}).reject();
	altering(edit(() => ({ decision: "approve" })))(approver);
});
for (const text of ["[]", "null", '"approve"', '{"decision":"approve"}'])
	refuses(`${text} for a decision`, ["untrusted", "unavailable"], (approver) =>
		altering(() => text)(approver),
	);

// Forged: by a device that is not in force, in the owner's name and in its own.
const forged = (text) => mallory.resign(text, { decision: "approve" });
const own = (text) => mallory.resign(text, { signerKeyId: mallory.deviceId });
refuses("forged", ["untrusted"], altering(forged));
refuses("signed by a stranger", ["untrusted"], altering(own));

// Replayed, and swapped.
refuses("an approval of another request", ["untrusted"], (approver) =>
	approver.gateway.replay(),
);
refuses("an approval of another artifact", ["untrusted"], (approver) =>
	approver.gateway.swapArtifact(),
);
refuses(
	"an earlier approval with this request's id",
	["untrusted"],
	(approver) => {
		const [{ requestId }] = approver.asked;
		const earlier = approver.gateway.decisionOf(requestId);
		approver.gateway.tamper = async (id) =>
			edit(() => ({ requestId: id }))(earlier);
	},
);

// Withheld and silent.
refuses("withheld", ["timed_out"], (approver) => approver.gateway.silent());
refuses(
	"no answer at all",
	["timed_out", "unavailable"],
	answering(
		"/wait",
		(_, { signal }) =>
			new Promise((_, reject) =>
				signal.addEventListener("abort", () => reject(signal.reason)),
			),
	),
);
refuses(
	"no answer to the request",
	["unavailable"],
	answering("/v1/artifacts", async () => answer(503, "{}")),
);
refuses(
	"another request is accepted",
	["unavailable"],
	answering("/v1/artifacts", async (send) => {
		const given = await send();
		const text = new TextDecoder().decode(given.body);
		const other = text.replaceAll(/"requestId":"./g, '"requestId":"f');
		return { ...given, body: utf8(other) };
	}),
);

// Answers that are no decision, and ends that the gateway claims.
const wait = (change) =>
	answering("/wait", async (send) => change(await send()));
for (const [title, change] of [
	["200 without a body", () => answer(200, "")],
	["200 with a page", () => answer(200, "<html>approved</html>")],
	["201", (given) => ({ ...given, status: 201 })],
	["202", (given) => ({ ...given, status: 202 })],
	[
		"another type of message",
		({ body, ...given }) => ({
			...given,
			body: utf8(
				new TextDecoder()
					.decode(body)
					.replace("decision.deliver", "artifact.accepted"),
			),
		}),
	],
	[
		"a member twice",
		({ body, ...given }) => ({
			...given,
			body: utf8(
				new TextDecoder()
					.decode(body)
					.replace('"decision":', '"decision":"approve","decision":'),
			),
		}),
	],
])
	refuses(title, ["unavailable", "timed_out", "untrusted"], wait(change));
for (const state of ["approved", "delivered", "decided", "withdrawn"])
	refuses(
		`an end: ${state}`,
		["ended"],
		wait(() => ({
			status: 204,
			headers: new Map([["exchange-state", state]]),
			body: new Uint8Array(),
		})),
	);

// Edited statements bring no device into force that none in force has added.
const parsed = (text) => JSON.parse(text);
const added = await mallory.add(mallory);
/** A statement that the paired device has signed, with something else in it. */
const endorsed = (change) => async (approver) => {
	await approver.addDevice();
	const [first] = approver.gateway.statements;
	const statement = change(parsed(first), parsed(added));
	return [JSON.stringify(statement)];
};
for (const [title, statements] of [
	["its own device", async () => [added]],
	["its own device, twice", async () => [added, added]],
	[
		"its own bundle in a signed statement",
		endorsed((signed, other) => ({
			...signed,
			possession: other.possession,
			statement: { ...signed.statement, bundle: other.statement.bundle },
		})),
	],
	[
		"its own signature in the name of a device in force",
		async (approver) => {
			await approver.addDevice();
			const { statement } = parsed(approver.gateway.statements[0]);
			const change = { add: keys.bundle };
			const at = spellTime(Date.now());
			const text = spellStatement(SUBJECT, change, at, statement.by);
			const signature = await sign(keys, text);
			return [spellSigned(text, signature, signature)];
		},
	],
	[
		"a signature for another approver",
		endorsed((signed, other) => ({
			...signed,
			statement: { ...other.statement, approverId: "bob" },
		})),
	],
	["nonsense", async () => ["{}", "[]", "null", '"add"', added]],
])
	refuses(
		`statements: ${title}`,
		["untrusted", "unavailable"],
		async (approver) => {
			approver.gateway.statements = await statements(approver);
			altering(own)(approver);
		},
	);

function answer(status, text) {
	return { status, headers: new Map(), body: utf8(text) };
}

// Most of them only wait.
describe("a gateway that lies", { concurrency: 16 }, () => {
	for (const [title, body] of cases) test(title, body);
});
