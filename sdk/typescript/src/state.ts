// The state that this library keeps across restarts. There is no default in memory: a process that forgets
// revocations would accept a revoked device again.

import { link, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { sleep } from "./clock.js";
import { randomBytes, toHex } from "./core/bytes.js";
import { CountersignError } from "./errors.js";
import {
	checkDirectory,
	createPrivate,
	errorCode,
	readPrivate,
	removeOlder,
	writePrivate,
} from "./private_file.js";

/** A place that survives restarts. Names may contain slashes. */
export interface State {
	/** The text that was stored under this name; null if there is none. */
	load(name: string): Promise<string | null>;
	store(name: string, text: string): Promise<void>;
	/** Stores a text unless the name is taken, in one step. False if it is. */
	create(name: string, text: string): Promise<boolean>;
	/**
	 * Runs an action while no other process runs one, if the place can do that. The action asks
	 * `isHeld` before it writes: a process that was suspended may have lost its turn.
	 */
	exclusively?<T>(
		action: (isHeld: () => Promise<boolean>) => Promise<T>,
	): Promise<T>;
}

/** Takes an approval once. Several hosts that share their requests share a journal. */
export interface UseJournal {
	/** True for the first caller, false for everyone else, lastingly. */
	take(requestId: string): Promise<boolean>;
}

const LOCK = "trust.lock";
const LOCK_TIMEOUT_MS = 10_000;
const LOCK_INTERVAL_MS = 10;
/** No request lasts longer than 30 days. */
const ENTRY_LIFETIME_MS = 31 * 24 * 60 * 60 * 1000;

/** Files whose paths begin with a prefix: a directory, or a profile's path without `toml`. */
export class DirectoryState implements State {
	readonly #prefix: string;
	/** Directories whose old files were removed by this process. */
	readonly #cleaned = new Set<string>();

	constructor(prefix: string) {
		this.#prefix = prefix;
	}

	path(name: string): string {
		return `${this.#prefix}${name}`;
	}

	async load(name: string): Promise<string | null> {
		return readPrivate(await this.#checked(name));
	}

	async store(name: string, text: string): Promise<void> {
		return writePrivate(await this.#checked(name), text);
	}

	/** The path of a name. Whoever can write its directories could remove what is known. */
	async #checked(name: string): Promise<string> {
		const path = this.path(name);
		for (const place of new Set([dirname(this.path("x")), dirname(path)]))
			await checkDirectory(place);
		return path;
	}

	async create(name: string, text: string): Promise<boolean> {
		const path = await this.#checked(name);
		const isFirst = await createPrivate(path, text);
		const directory = dirname(path);
		if (name.includes("/") && !this.#cleaned.has(directory)) {
			this.#cleaned.add(directory);
			// A file too many does no harm.
			await removeOlder(directory, ENTRY_LIFETIME_MS).catch(() => undefined);
		}
		return isFirst;
	}

	/**
	 * By a file with its holder's mark that is there while an action runs. One that a killed process
	 * left is removed.
	 */
	async exclusively<T>(
		action: (isHeld: () => Promise<boolean>) => Promise<T>,
	): Promise<T> {
		const path = await this.#checked(LOCK);
		const mark = toHex(randomBytes(16));
		for (let waited = 0; !(await createPrivate(path, mark)); ) {
			const found = await stat(path).catch(() => null);
			const holder = await readPrivate(path);
			const age = found === null ? 0 : Date.now() - found.mtimeMs;
			if (holder !== null && Math.abs(age) > LOCK_TIMEOUT_MS)
				await removeLock(path, holder, found?.ino);
			if (waited > 2 * LOCK_TIMEOUT_MS)
				throw new CountersignError(`${path} is locked by another process`);
			await sleep(LOCK_INTERVAL_MS);
			waited += LOCK_INTERVAL_MS;
		}
		try {
			return await action(async () => (await readPrivate(path)) === mark);
		} finally {
			await removeLock(path, mark);
		}
	}
}

/**
 * Removes a lock with this mark. It is moved away first, so that no other one is removed. Locks of
 * the Python library have no mark: they are told apart by the number of the file.
 * @internal
 */
export async function removeLock(
	path: string,
	mark: string,
	number?: number,
): Promise<void> {
	if ((await readPrivate(path)) !== mark) return;
	const moved = `${path}.${toHex(randomBytes(8))}.part`;
	try {
		await rename(path, moved);
		// Another process was faster, and this is its lock.
		const isOther =
			(await readPrivate(moved)) !== mark ||
			(number !== undefined && (await stat(moved)).ino !== number);
		if (isOther) await link(moved, path);
	} catch (error) {
		if (!["ENOENT", "EEXIST"].includes(errorCode(error))) throw error;
	} finally {
		await rm(moved, { force: true });
	}
}

/** An entry for each approval that was taken, made in one step. Files are kept for 31 days. */
export class FileJournal implements UseJournal {
	readonly #state: State;

	/** `place` is a directory, or the state that the client has. */
	constructor(place: string | State) {
		this.#state =
			typeof place === "string" ? new DirectoryState(join(place, "/")) : place;
	}

	take(requestId: string): Promise<boolean> {
		return this.#state.create(`used/${requestId}`, "");
	}
}
