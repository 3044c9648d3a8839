// Calls to the gateway: bounded in time, at any of its addresses, and again if that can do no harm.

import { parse } from "./canonical.js";
import { Problem } from "./problem.js";
import { visibleText } from "./visible.js";

/** @typedef {import('./json.js').Node} Node */

/** How long a person waits for an answer. */
const PATIENCE_MS = 15_000;
const ATTEMPT_MS = 6_000;
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;
/** More than the largest page of an inbox. */
export const MAX_ANSWER_BYTES = 32 << 20;

/**
 * One call. It must be idempotent, unless it is sent `once`.
 * @typedef {object} Call
 * @property {'GET' | 'POST' | 'PUT' | 'DELETE'} [method] default GET
 * @property {string} path
 * @property {string} [body]
 * @property {boolean} [once]
 * @property {number} [patienceMs] how long it is tried
 * @property {AbortSignal} [signal] gives it up
 * @property {number[]} expect statuses that are no refusal
 */

/** @typedef {{ status: number, text: string }} Answer */

/**
 * A credential that changes. `renew` gives another one than the one that was refused. Both throw a
 * `Problem`. `forget` drops what is held in memory.
 * @typedef {{ current: () => Promise<string>, renew: (refused: string) => Promise<string>, forget: () => void }} Credential
 */

/**
 * A path with one segment for each part, whatever characters they have.
 * @param {...string} parts
 */
export function path(...parts) {
	return parts.map((part) => `/${encodeURIComponent(part)}`).join("");
}

/** The time at which several calls that begin now are given up together. */
export function callDeadline() {
	return Date.now() + PATIENCE_MS;
}

/**
 * How long a call may still be tried.
 * @param {number} deadline
 */
export function patienceUntil(deadline) {
	const left = deadline - Date.now();
	if (left <= 0) throw Problem.of("slow", {});
	return left;
}

/** @param {number} milliseconds */
export function jittered(milliseconds) {
	return milliseconds * (0.5 + Math.random());
}

export function isHidden() {
	return globalThis.document?.visibilityState === "hidden";
}

/** @param {number} milliseconds */
export function sleep(milliseconds) {
	return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/**
 * A module that is loaded when it is needed.
 * @template T
 * @param {Promise<T>} module
 * @returns {Promise<T>}
 */
export async function loaded(module) {
	try {
		return await module;
	} catch (error) {
		throw Problem.of("unreachable", { cause: String(error) }, error);
	}
}

export class GatewayClient {
	/**
	 * @param {string[]} addresses of nodes or of a load balancer
	 * @param {string | Credential | null} credential
	 */
	constructor(addresses, credential) {
		this.addresses = addresses.map((address) => address.replace(/\/+$/, ""));
		this.credential = credential;
		this.current = 0;
	}

	get address() {
		return String(this.addresses[this.current % this.addresses.length]);
	}

	leaveNode() {
		this.current += 1;
	}

	/**
	 * The credential of a call.
	 * @returns {Promise<string | null>}
	 */
	async present() {
		return typeof this.credential === "string" || this.credential === null
			? this.credential
			: this.credential.current();
	}

	/**
	 * Makes a call until it is answered, or for as long as a person waits.
	 * @param {Call} call
	 * @returns {Promise<Answer>}
	 */
	async call(call) {
		const until = Date.now() + (call.patienceMs ?? PATIENCE_MS);
		let pause = FIRST_PAUSE_MS;
		let isRenewed = false;
		for (;;) {
			const left = until - Date.now();
			// Another node may be fine.
			const time =
				this.addresses.length > 1 && call.once !== true
					? Math.min(left, ATTEMPT_MS)
					: left;
			const presented = await this.present();
			if (call.signal?.aborted) throw Problem.of("slow", {});
			const { answer, problem, waitMs } = await this.attempt(
				call,
				time,
				presented,
			);
			if (answer !== null) return answer;
			if (
				problem.code === "credential" &&
				typeof this.credential === "object" &&
				this.credential !== null &&
				presented !== null
			) {
				if (isRenewed) throw Problem.of("signInRefused", {}, problem);
				// A call that was not authenticated has done nothing.
				await this.credential.renew(presented);
				isRenewed = true;
				continue;
			}
			if (!problem.isUnavailable || call.signal?.aborted) throw problem;
			this.leaveNode();
			// Of a call that may have arrived only a limit says that nothing was done.
			if (
				call.once === true &&
				(Number(problem.values.status) !== 429 || call.signal !== undefined)
			)
				throw problem;
			const wait = Math.max(waitMs ?? 0, jittered(pause));
			if (Date.now() + wait >= until) throw problem;
			await sleep(wait);
			pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
		}
	}

	/**
	 * @param {Call} call
	 * @param {number} timeMs
	 * @param {string | null} credential
	 * @returns {Promise<{ answer: Answer, problem: null, waitMs: null } | { answer: null, problem: Problem, waitMs: number | null }>}
	 */
	async attempt(call, timeMs, credential) {
		const aborter = new AbortController();
		const giveUp = () => aborter.abort();
		const timer = setTimeout(giveUp, timeMs);
		call.signal?.addEventListener("abort", giveUp);
		/** @type {Record<string, string>} */
		const headers = { Accept: "application/json, */*" };
		if (credential !== null) headers.Authorization = `Bearer ${credential}`;
		if (call.body !== undefined) headers["Content-Type"] = "application/json";
		try {
			const response = await fetch(this.address + call.path, {
				method: call.method ?? "GET",
				headers,
				body: call.body ?? null,
				signal: aborter.signal,
				credentials: "omit",
				cache: "no-store",
				redirect: "error",
				referrerPolicy: "no-referrer",
			});
			const text = await readText(response);
			if (call.expect.includes(response.status)) {
				return {
					answer: { status: response.status, text },
					problem: null,
					waitMs: null,
				};
			}
			const seconds = Number.parseInt(
				response.headers.get("Retry-After") ?? "",
				10,
			);
			return {
				answer: null,
				problem: refusal(response.status, text),
				waitMs: seconds >= 0 ? seconds * 1000 : null,
			};
		} catch (error) {
			if (error instanceof Problem)
				return { answer: null, problem: error, waitMs: null };
			const cause = error instanceof Error ? error.message : String(error);
			const problem = aborter.signal.aborted
				? Problem.of("slow", {})
				: Problem.of("unreachable", { cause }, error);
			return { answer: null, problem, waitMs: null };
		} finally {
			clearTimeout(timer);
			call.signal?.removeEventListener("abort", giveUp);
		}
	}

	/**
	 * The answer to a call, as strict JSON.
	 * @param {Call} call
	 * @returns {Promise<Node>}
	 */
	async json(call) {
		const { text } = await this.call(call);
		return parse("answer", text);
	}

	/**
	 * The answer to a call as a plain object, for what is neither hashed nor signed. Its members
	 * may be anything.
	 * @param {Call} call
	 * @returns {Promise<{ status: number, members: any }>}
	 */
	async members(call) {
		const { status, text } = await this.call(call);
		/** @type {unknown} */
		let members = null;
		try {
			members = JSON.parse(text);
		} catch {
			// No gateway answers so: something stands in between.
		}
		if (typeof members !== "object" || members === null)
			throw Problem.of("answer", { expected: "JSON" });
		return { status, members };
	}

	/**
	 * Where a WebSocket of this approver is opened.
	 * @param {string} approverId
	 */
	channelUrl(approverId) {
		const url = new URL(`${this.address}/v1/ws`);
		url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
		url.search = new URLSearchParams({
			role: "approver",
			id: approverId,
		}).toString();
		return url.href;
	}
}

/**
 * The text of an answer. One that is too long is not read to its end.
 * @param {Response} response
 */
async function readText(response) {
	const reader = response.body?.getReader();
	const decoder = new TextDecoder();
	let [text, size] = ["", 0];
	while (reader !== undefined) {
		const { done, value } = await reader.read();
		if (done) break;
		size += value.length;
		if (size > MAX_ANSWER_BYTES) {
			await reader.cancel();
			throw Problem.of("answer", { expected: "<= 32 MiB" });
		}
		text += decoder.decode(value, { stream: true });
	}
	return text + decoder.decode();
}

/**
 * An `error` of the gateway, as an Envelope or as plain JSON. Its text is made visible, since it
 * may be hostile.
 * @param {number} status
 * @param {string} text
 */
function refusal(status, text) {
	if (status === 401) return Problem.of("credential", {});
	/** @type {any} */
	let error = null;
	try {
		const value = JSON.parse(text);
		error = value?.body ?? value;
	} catch {
		// Then the status is all that is known.
	}
	const read = (/** @type {unknown} */ member) =>
		typeof member === "string" ? visibleText(member) : "";
	const code = read(error?.code).replace(/^.*_ERR_/, "");
	return Problem.of("refused", { status, code, message: read(error?.message) });
}

/**
 * Whether the gateway refused with this code, such as `NOT_FOUND`.
 * @param {unknown} error
 * @param {...string} codes
 * @returns {boolean}
 */
export function isRefusedWith(error, ...codes) {
	return (
		error instanceof Problem &&
		error.code === "refused" &&
		codes.includes(String(error.values.code))
	);
}
