// Two clocks: one stands still while the machine sleeps, the other can be set. A deadline holds by
// both.

export interface Clock {
	/** Milliseconds since 1970. */
	now(): number;
	/** Milliseconds that only grow. */
	monotonic(): number;
}

export const SYSTEM_CLOCK: Clock = {
	now: () => Date.now(),
	monotonic: () => performance.now(),
};

export class Deadline {
	readonly #clock: Clock;
	readonly #at: number;
	readonly #monotonicAt: number;

	constructor(clock: Clock, at: number, monotonicAt: number) {
		this.#clock = clock;
		this.#at = at;
		this.#monotonicAt = monotonicAt;
	}

	static after(clock: Clock, milliseconds: number): Deadline {
		return new Deadline(
			clock,
			clock.now() + milliseconds,
			clock.monotonic() + milliseconds,
		);
	}

	/** Of a time that was written down: the monotonic clock counts from now on. */
	static at(clock: Clock, time: number): Deadline {
		return new Deadline(clock, time, clock.monotonic() + (time - clock.now()));
	}

	/** Milliseconds that are left, by the clock that leaves fewer; never negative. */
	left(): number {
		const byDate = this.#at - this.#clock.now();
		const byMonotonic = this.#monotonicAt - this.#clock.monotonic();
		return Math.max(0, Math.min(byDate, byMonotonic));
	}

	isOver(): boolean {
		return this.left() <= 0;
	}

	/** The earlier of this one and so many milliseconds from now. */
	within(milliseconds: number): Deadline {
		const left = Math.min(this.left(), milliseconds);
		return Deadline.after(this.#clock, left);
	}
}

/** Waits, or ends early when `signal` is aborted. It does not throw. */
export function sleep(
	milliseconds: number,
	signal?: AbortSignal,
): Promise<void> {
	return new Promise((resolve) => {
		if (signal?.aborted) return resolve();
		const end = () => {
			clearTimeout(timer);
			signal?.removeEventListener("abort", end);
			resolve();
		};
		// Longer times do not fit into a timer.
		const timer = setTimeout(end, Math.min(milliseconds, 2 ** 31 - 1));
		signal?.addEventListener("abort", end);
	});
}
