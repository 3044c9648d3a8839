// At most so many waits at once. The others queue, within their own deadlines.

import { type Deadline, sleep } from "./clock.js";

export class WaitLimiter {
	#free: number;
	readonly #queue: (() => void)[] = [];

	constructor(most: number) {
		this.#free = most;
	}

	/** Runs an action when there is room, or gives up at the deadline: then `otherwise`. */
	async run<T>(
		action: () => Promise<T>,
		deadline: Deadline,
		signal: AbortSignal | undefined,
		otherwise: () => T,
	): Promise<T> {
		if (!(await this.#acquire(deadline, signal))) return otherwise();
		try {
			return await action();
		} finally {
			this.#release();
		}
	}

	async #acquire(deadline: Deadline, signal?: AbortSignal): Promise<boolean> {
		if (this.#free > 0) {
			this.#free -= 1;
			return true;
		}
		let hasRoom = false;
		const enough = new AbortController();
		const enter = () => {
			hasRoom = true;
			enough.abort();
		};
		const giveUp = () => enough.abort();
		this.#queue.push(enter);
		signal?.addEventListener("abort", giveUp);
		await sleep(deadline.left(), enough.signal);
		signal?.removeEventListener("abort", giveUp);
		if (hasRoom) {
			if (!signal?.aborted) return true;
			this.#release();
		} else this.#queue.splice(this.#queue.indexOf(enter), 1);
		signal?.throwIfAborted();
		return false;
	}

	#release(): void {
		const next = this.#queue.shift();
		if (next === undefined) this.#free += 1;
		else next();
	}
}
