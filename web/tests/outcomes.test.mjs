// The source of an outcome: the agent's machine, or the gateway alone: `node --test web/tests/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { concat, sha256, toBase64url, toHex, utf8 } from "../core/bytes.js";
import { canonical, canonicalNode, parse } from "../core/canonical.js";
import { Problem } from "../core/problem.js";

globalThis.WebSocket ??= { OPEN: 1 };

const { REQUEST, request, scene } = await import("./hostile.mjs");

const base64 = (bytes) => Buffer.from(bytes).toString("base64");

/**
 * Decides a request, has the gateway call it delivered, and serves the outcome that `serve` makes.
 * Returns the item and its model.
 */
async function delivered(serve) {
	const { model, session, says, sent, device, enforcers, shows } =
		await scene();
	const pair = await crypto.subtle.generateKey({ name: "Ed25519" }, true, [
		"sign",
		"verify",
	]);
	const key = toBase64url(
		new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey)),
	);
	const shown = await shows(
		await request(enforcers.bot, device, {
			further: { extensions: { "countersign.outcome": { v: 1, key } } },
		}),
	);
	await model.decide(shown, { verdict: "approve" });
	const [body] = sent;
	const signed = utf8(canonicalNode(parse("decision", body), "signature"));
	const digest = toHex(
		await sha256(
			concat(signed, Buffer.from(JSON.parse(body).signature, "base64url")),
		),
	);
	const sign = async (change = {}, signer = pair) => {
		const payload = canonical({
			_type: "https://in-toto.io/Statement/v1",
			predicateType: "urn:countersign:outcome:v1",
			subject: [{ name: REQUEST, digest: { sha256: shown.artifactHash } }],
			predicate: {
				v: 1,
				tenantId: "t",
				enforcerId: "bot",
				outcome: "allowed",
				cause: "",
				decisions: [digest],
				at: "2026-01-01T00:00:00Z",
				...change,
			},
		});
		const type = "application/vnd.in-toto+json";
		const message = utf8(
			`DSSEv1 ${type.length} ${type} ${utf8(payload).length} ${payload}`,
		);
		const signature = await crypto.subtle.sign(
			{ name: "Ed25519" },
			signer.privateKey,
			message,
		);
		return canonical({
			payload: base64(utf8(payload)),
			payloadType: type,
			signatures: [{ sig: base64(new Uint8Array(signature)) }],
		});
	};
	const { json } = session.client;
	session.client.json = async (call) => {
		if (call.path !== `/v1/exchanges/${REQUEST}/outcome`) return json(call);
		const body = { requestId: REQUEST, outcome: await serve(sign) };
		return parse(
			"answer",
			JSON.stringify({
				msgId: "p",
				msgType: "exchange.outcome",
				requestId: REQUEST,
				body,
			}),
		);
	};
	says.exchange = { state: "delivered", decision: JSON.parse(body) };
	await model.askQuietly(REQUEST);
	return { item: model.find(REQUEST), model };
}

test("an outcome signed by the agent’s machine is shown as confirmed", async () => {
	const { item } = await delivered((sign) => sign());
	assert.deepEqual(
		[item.state, item.decision.outcome],
		["delivered", "allowed"],
	);
	const changed = await delivered((sign) =>
		sign({ outcome: "denied", cause: "changed" }),
	);
	assert.equal(changed.item.decision.outcome, "changed");
});

test("without it, only the gateway says that it was delivered", async () => {
	const { item } = await delivered(() => {
		throw Problem.of("refused", {
			status: 404,
			code: "NOT_FOUND",
			message: "",
		});
	});
	assert.deepEqual([item.state, item.decision.outcome], ["delivered", null]);
});

test("a confirmation that another key signed, or that is about something else, is called forged", async () => {
	const other = await crypto.subtle.generateKey({ name: "Ed25519" }, true, [
		"sign",
		"verify",
	]);
	for (const serve of [
		(sign) => sign({}, other),
		(sign) => sign({ decisions: ["0".repeat(64)] }),
		(sign) => sign({ enforcerId: "prod" }),
		(sign) => sign({ tenantId: "other" }),
		() => "{}",
	]) {
		const { item } = await delivered(serve);
		assert.equal(item.decision.outcome, "forged");
	}
});

test("while the gateway does not answer, it is not called delivered", async () => {
	const { item } = await delivered(() => {
		throw Problem.of("unreachable", { cause: "" });
	});
	assert.equal(item.state, "decided");
});

test("a gateway that withholds a confirmation later does not undo it", async () => {
	let isServed = true;
	const { model } = await delivered((sign) => {
		if (isServed) return sign();
		throw Problem.of("refused", {
			status: 404,
			code: "NOT_FOUND",
			message: "",
		});
	});
	isServed = false;
	model.settle({ ...model.find(REQUEST), state: "decided" });
	await model.ask(REQUEST);
	assert.equal(model.find(REQUEST).decision.outcome, "allowed");
});
