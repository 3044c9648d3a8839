// A decision that a hostile gateway calls delivered, and the outcome that it serves.

import { concat, sha256, toBase64url, toHex, utf8 } from "../core/bytes.js";
import { canonical, canonicalNode, parse } from "../core/canonical.js";

globalThis.WebSocket ??= { OPEN: 1 };

const { REQUEST, request, scene } = await import("./hostile.mjs");

const base64 = (bytes) => Buffer.from(bytes).toString("base64");

/**
 * Decides a request, has the gateway call it delivered, and serves the outcome that `serve` makes
 * with `sign(change of the predicate, signer, subjects)`. Returns the item and its model.
 */
export async function delivered(
	serve,
	{ rule, choice = { verdict: "approve" } } = {},
) {
	const { model, session, says, sent, device, enforcers, shows } =
		await scene();
	const pair = await crypto.subtle.generateKey({ name: "Ed25519" }, true, [
		"sign",
		"verify",
	]);
	const key = toBase64url(
		new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey)),
	);
	const extensions = {
		"countersign.outcome": { v: 1, key },
		...(rule && { "countersign.rule": rule }),
	};
	const shown = await shows(
		await request(enforcers.bot, device, { further: { extensions } }),
	);
	await model.decide(shown, choice);
	const [body] = sent;
	const signed = utf8(canonicalNode(parse("decision", body), "signature"));
	const digest = toHex(
		await sha256(
			concat(signed, Buffer.from(JSON.parse(body).signature, "base64url")),
		),
	);
	const own = { name: REQUEST, digest: { sha256: shown.artifactHash } };
	const sign = async (change = {}, signer = pair, subject = [own]) => {
		const payload = canonical({
			_type: "https://in-toto.io/Statement/v1",
			predicateType: "urn:countersign:outcome:v1",
			subject,
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
		const body = {
			requestId: REQUEST,
			outcome: await serve(sign, { own, digest, pair }),
		};
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
