// The gateway over HTTP, with a server that misbehaves.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { Deadline, SYSTEM_CLOCK } from "../dist/clock.js";
import { Gateway, GatewayAway, GatewayRefusal } from "../dist/gateway.js";
import { HttpTransport } from "../dist/http.js";
import { thrown } from "./support.mjs";

async function serve(t, handle) {
	const seen = [];
	const server = createServer((request, response) => {
		let body = "";
		request.on("data", (chunk) => {
			body += chunk;
		});
		request.on("end", () => {
			const { method, url, headers } = request;
			seen.push({ method, url, headers, body });
			handle(response, seen.length, request);
		});
	});
	await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
	t.after(() => {
		server.closeAllConnections();
		server.close();
	});
	return { seen, url: `http://127.0.0.1:${server.address().port}` };
}

function open(t, ...urls) {
	const away = [];
	const transport = new HttpTransport({
		urls,
		ca: undefined,
		allowHttp: false,
		apiKey: "csk_secret",
	});
	t.after(() => transport.close());
	const gateway = new Gateway(transport, (detail) => away.push(detail));
	const call = (options, time = 2_000) =>
		gateway.call(
			{ path: "/v1/x", expect: [200], ...options },
			Deadline.after(SYSTEM_CLOCK, time),
		);
	return { away, call };
}

test("a call has the credential and its body, and the answer is read strictly", async (t) => {
	const { seen, url } = await serve(t, (response) => response.end('{"a":1}'));
	const { call } = open(t, `${url}/base/`);
	const answer = await call({ method: "POST", body: '{"ä":1}' });
	assert.equal(answer.json().raw, '{"a":1}');
	const [{ method, url: path, headers, body }] = seen;
	assert.equal(method, "POST");
	assert.equal(path, "/base/v1/x");
	assert.equal(headers.authorization, "Bearer csk_secret");
	assert.equal(body, '{"ä":1}');
});

test("redirects are not followed", async (t) => {
	const { seen, url } = await serve(t, (response) => {
		response.writeHead(307, { Location: "http://127.0.0.1:9/" }).end();
	});
	const { call } = open(t, url);
	assert.ok((await thrown(() => call({}))) instanceof GatewayRefusal);
	assert.equal(seen.length, 1);
});

test("a limit is waited for as long as it says, within the deadline", async (t) => {
	const { seen, url } = await serve(t, (response, count) => {
		if (count === 1) response.writeHead(429, { "Retry-After": "1" }).end("{}");
		else response.end("{}");
	});
	const { call } = open(t, url);
	const start = Date.now();
	await call({});
	assert.ok(Date.now() - start >= 990);
	assert.equal(seen.length, 2);
	const busy = await serve(t, (response) =>
		response.writeHead(503, { "Retry-After": "60" }).end("{}"),
	);
	const other = open(t, busy.url);
	assert.ok((await thrown(() => other.call({}))) instanceof GatewayAway);
	assert.equal(busy.seen.length, 1);
});

test("another node is tried at once", async (t) => {
	const { url } = await serve(t, (response) => response.end("{}"));
	const { call, away } = open(t, "http://127.0.0.1:9", url);
	const start = Date.now();
	await call({});
	assert.ok(Date.now() - start < 1_000);
	assert.equal(away.length, 1);
});

test("refusals are made visible, and are no text of ours", async (t) => {
	const { url } = await serve(t, (response) => {
		const body = {
			code: "PROTO_ERR_POLICY_DENY",
			message: "no\u202e\n\u001b[2J",
		};
		response.writeHead(403).end(JSON.stringify({ body }));
	});
	const error = await thrown(() => open(t, url).call({}));
	assert.ok(error instanceof GatewayRefusal);
	assert.equal(error.code, "POLICY_DENY");
	assert.doesNotMatch(error.message, /[\u202e\n\u001b]/);
});

test("answers that are cut off, never end, or make no sense", async (t) => {
	const cut = await serve(t, (response) => {
		response.writeHead(200, { "Content-Length": "100" });
		response.write("{");
		response.destroy();
	});
	assert.ok(
		(await thrown(() => open(t, cut.url).call({}, 400))) instanceof GatewayAway,
	);
	const endless = await serve(t, () => {});
	const start = Date.now();
	assert.ok(
		(await thrown(() => open(t, endless.url).call({}, 400))) instanceof
			GatewayAway,
	);
	assert.ok(Date.now() - start < 1_500);
	for (const text of ['{"a":1,"a":1}', "<html>", Buffer.of(0x22, 0xe4, 0x22)]) {
		const odd = await serve(t, (response) => response.end(text));
		const answer = await open(t, odd.url).call({});
		assert.throws(() => answer.json(), GatewayAway);
	}
});
