// Durations as people write them: "30s", "10m", "24h".

import { CountersignError } from "./errors.js";

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** The gateway keeps no request for longer. */
const MAX_TIMEOUT_MS = 30 * UNITS.d;
const DURATION = /^(\d{1,9})(ms|s|m|h|d)$/;

/** Such as `"30s"`, `"10m"`, `"24h"` or `"7d"`. */
export type Duration = `${number}${"ms" | "s" | "m" | "h" | "d"}`;

function readDuration(name: string, text: string): number {
	const parts = typeof text === "string" ? DURATION.exec(text) : null;
	if (parts === null)
		throw new CountersignError(
			`${name}: expected a duration such as "30s", "10m" or "24h"`,
		);
	return Number(parts[1]) * UNITS[parts[2] as keyof typeof UNITS];
}

/** How long a request may wait, in milliseconds. There is no way to wait for ever. */
export function readTimeout(text: string): number {
	const time = readDuration("timeout", text);
	if (time <= 0 || time > MAX_TIMEOUT_MS)
		throw new CountersignError("timeout: expected more than 0 and at most 30d");
	return time;
}

/** How long one call waits, in milliseconds; may be zero. */
export function readWait(text: string): number {
	return Math.min(readDuration("wait", text), MAX_TIMEOUT_MS);
}
