// The gateway over HTTP. Redirects are not followed, and no proxy is used.

import { readFileSync } from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import { isIP } from "node:net";
import * as tls from "node:tls";
import { visibleText } from "./core/visible.js";
import { ProfileError } from "./errors.js";
import {
	type Transport,
	type TransportAnswer,
	TransportError,
	type TransportRequest,
} from "./gateway.js";
import { errorCode } from "./private_file.js";
import type { GatewayLocation } from "./profile.js";

/** More than the longest list of statements. */
const MAX_ANSWER_BYTES = 32 << 20;
const UNTRUSTED =
	/^(CERT_|ERR_TLS_CERT|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH)/;
const CREDENTIAL = /^[\x21-\x7e]+$/;

function isLoopback(host: string): boolean {
	const bare = host.replace(/^\[|\]$/g, "");
	if (isIP(bare) === 4) return bare.startsWith("127.");
	if (isIP(bare) === 6) return bare === "::1";
	return bare === "localhost" || bare.endsWith(".localhost");
}

/** The address of a node. Plain `http` is refused beyond this machine, unless it is allowed. */
export function parseAddress(text: string, allowHttp: boolean): URL {
	const refuse = (problem: string) =>
		new ProfileError(
			`the profile's gateway ${visibleText(text.replace(/\/\/[^/]*@/, "//"))}: ${problem}`,
		);
	let url: URL;
	try {
		url = new URL(text);
	} catch {
		throw refuse("expected an address such as https://gateway.example.org");
	}
	if (url.protocol === "http:" && !allowHttp && !isLoopback(url.hostname))
		throw refuse("plain http would show the credential to the network");
	if (url.protocol !== "https:" && url.protocol !== "http:")
		throw refuse("expected https://…");
	if (url.username || url.password || url.search || url.hash || !url.hostname)
		throw refuse("expected only a host, an optional port and an optional path");
	return url;
}

/** Root certificates: those of the profile, of `SSL_CERT_FILE`, or the system's. */
function rootCertificates(ca: string | undefined): string[] | undefined {
	const file = ca ?? process.env.SSL_CERT_FILE;
	if (file) {
		try {
			return [readFileSync(file, "utf8")];
		} catch (error) {
			throw new ProfileError(
				`the certificates in ${file} cannot be read (${errorCode(error)})`,
			);
		}
	}
	const { getCACertificates } = tls as {
		getCACertificates?: (kind: string) => string[];
	};
	return getCACertificates === undefined
		? undefined
		: [...getCACertificates("default"), ...getCACertificates("system")];
}

export class HttpTransport implements Transport {
	readonly #addresses: URL[];
	readonly #authorization: string;
	readonly #agents: { "http:": http.Agent; "https:": https.Agent };
	#current = 0;

	constructor({ urls, ca, allowHttp, apiKey }: GatewayLocation) {
		this.#addresses = urls.map((url) => parseAddress(url, allowHttp));
		if (!CREDENTIAL.test(apiKey))
			throw new ProfileError("the profile's credential is damaged");
		this.#authorization = `Bearer ${apiKey}`;
		const isEncrypted = this.#addresses.some(
			({ protocol }) => protocol === "https:",
		);
		const roots = isEncrypted ? rootCertificates(ca) : undefined;
		this.#agents = {
			"http:": new http.Agent({ keepAlive: true }),
			"https:": new https.Agent({
				keepAlive: true,
				minVersion: "TLSv1.2",
				// The environment can change the default.
				rejectUnauthorized: true,
				...(roots === undefined ? {} : { ca: roots }),
			}),
		};
	}

	get nodes(): number {
		return this.#addresses.length;
	}

	leaveNode(): void {
		this.#current += 1;
	}

	close(): void {
		this.#agents["http:"].destroy();
		this.#agents["https:"].destroy();
	}

	send({
		method,
		path,
		body,
		signal,
	}: TransportRequest): Promise<TransportAnswer> {
		const base = this.#addresses[this.#current % this.#addresses.length] as URL;
		const isEncrypted = base.protocol === "https:";
		const headers: http.OutgoingHttpHeaders = {
			Accept: "application/json, */*",
			Authorization: this.#authorization,
			"User-Agent": "countersign-typescript",
			...(body === undefined
				? {}
				: {
						"Content-Type": "application/json",
						"Content-Length": Buffer.byteLength(body),
					}),
		};
		return new Promise((resolve, reject) => {
			const fail = (error: Error) => reject(transportError(base, error));
			const request = (isEncrypted ? https : http).request(
				{
					protocol: base.protocol,
					hostname: base.hostname.replace(/^\[|\]$/g, ""),
					port: base.port,
					path: base.pathname.replace(/\/+$/, "") + path,
					method,
					headers,
					agent: this.#agents[isEncrypted ? "https:" : "http:"],
					signal,
				},
				(response) => {
					readAnswer(response).then(resolve, (error) => {
						response.destroy();
						fail(error);
					});
				},
			);
			request.on("error", fail);
			request.end(body);
		});
	}
}

/** Without the request's headers, which have the credential. */
function transportError(base: URL, error: Error): TransportError {
	if (error instanceof TransportError) return error;
	const code = errorCode(error);
	const detail = `${base.origin} cannot be reached (${code || error.name})`;
	return new TransportError(detail, UNTRUSTED.test(code));
}

async function readAnswer(
	response: http.IncomingMessage,
): Promise<TransportAnswer> {
	const chunks: Buffer[] = [];
	let size = 0;
	for await (const chunk of response) {
		size += chunk.length;
		if (size > MAX_ANSWER_BYTES)
			throw new TransportError("an answer of more than 32 MiB", true);
		chunks.push(chunk);
	}
	const headers = new Map<string, string>();
	for (const [name, value] of Object.entries(response.headers))
		headers.set(name, String(value));
	return {
		status: response.statusCode ?? 0,
		headers,
		body: new Uint8Array(Buffer.concat(chunks)),
	};
}
