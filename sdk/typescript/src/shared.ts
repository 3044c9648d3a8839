// Calls that several callers wait for at once. A call does not end with one of its callers, and does
// not go on without any.

import { type Deadline, sleep } from "./clock.js";
import { LateAnswer } from "./gateway.js";

interface SharedCall<T> {
	result: Promise<T>;
	aborter: AbortController;
	callers: number;
}

export class SharedCalls<T> {
	readonly #running = new Map<string, SharedCall<T>>();

	/** The result of the call of this name that is under way, or of a new one. */
	async join(
		name: string,
		start: (signal: AbortSignal) => Promise<T>,
		deadline: Deadline,
		signal?: AbortSignal,
	): Promise<T> {
		const call = this.#running.get(name) ?? this.#start(name, start);
		call.callers += 1;
		try {
			return await within(call.result, deadline, signal);
		} finally {
			call.callers -= 1;
			if (call.callers === 0) {
				this.#forget(name, call);
				call.aborter.abort();
			}
		}
	}

	#start(
		name: string,
		start: (signal: AbortSignal) => Promise<T>,
	): SharedCall<T> {
		const aborter = new AbortController();
		const result = start(aborter.signal);
		const call = { result, aborter, callers: 0 };
		const forget = () => this.#forget(name, call);
		result.then(forget, forget);
		this.#running.set(name, call);
		return call;
	}

	#forget(name: string, call: SharedCall<T>): void {
		if (this.#running.get(name) === call) this.#running.delete(name);
	}
}

/** The result of something shared, or an error if the caller's time is over before. */
async function within<T>(
	shared: Promise<T>,
	deadline: Deadline,
	signal?: AbortSignal,
): Promise<T> {
	signal?.throwIfAborted();
	const ended = new AbortController();
	const end = () => ended.abort();
	signal?.addEventListener("abort", end);
	try {
		return await Promise.race([
			shared,
			sleep(deadline.left(), ended.signal).then(() => {
				signal?.throwIfAborted();
				throw new LateAnswer();
			}),
		]);
	} finally {
		signal?.removeEventListener("abort", end);
		end();
	}
}
