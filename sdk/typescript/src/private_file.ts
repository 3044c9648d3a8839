// Files beside the keys: readable by their owner only, and replaced as a whole.

import {
	constants,
	type FileHandle,
	link,
	mkdir,
	open,
	readdir,
	rename,
	rm,
	stat,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { randomBytes, toHex } from "./core/bytes.js";
import { ProfileError } from "./errors.js";

/** More than a profile with all of its devices, or a record of the largest artifact. */
const MAX_FILE_BYTES = 16 << 20;

export function errorCode(error: unknown): string {
	return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** The text of a file that only its owner can read; null if there is no such file. */
export async function readPrivate(path: string): Promise<string | null> {
	let file: FileHandle;
	try {
		file = await open(path, constants.O_RDONLY);
	} catch (error) {
		if (errorCode(error) === "ENOENT") return null;
		throw new ProfileError(`${path} cannot be read (${errorCode(error)})`);
	}
	try {
		const found = await file.stat();
		if (!found.isFile()) throw new ProfileError(`${path} is no file`);
		if (found.uid !== process.geteuid?.())
			throw new ProfileError(
				`${path} belongs to another user, so it is not used`,
			);
		if ((found.mode & 0o077) !== 0)
			throw new ProfileError(
				`${path} can be read by others (mode ${(found.mode & 0o777).toString(8)}), so it is not used; others may know its keys`,
			);
		if (found.size > MAX_FILE_BYTES)
			throw new ProfileError(`${path} is too large`);
		return await file.readFile("utf8");
	} finally {
		await file.close();
	}
}

/** Refuses a directory that is another user's, or that others can write. It may be missing. */
export async function checkDirectory(path: string): Promise<void> {
	const found = await stat(path).catch((error) => {
		if (errorCode(error) === "ENOENT") return null;
		throw new ProfileError(`${path} cannot be read (${errorCode(error)})`);
	});
	if (found === null) return;
	if (found.uid !== process.geteuid?.())
		throw new ProfileError(
			`${path} belongs to another user, so it is not used`,
		);
	if ((found.mode & 0o022) !== 0)
		throw new ProfileError(
			`${path} can be written by others (mode ${(found.mode & 0o777).toString(8)}), so it is not used`,
		);
}

/** Replaces a file. Readers never see it half written. */
export async function writePrivate(path: string, text: string): Promise<void> {
	await mkdir(dirname(path), { recursive: true, mode: 0o700 });
	const part = `${path}.${toHex(randomBytes(8))}.part`;
	try {
		await writeNew(part, text);
		await rename(part, path);
	} catch (error) {
		await rm(part, { force: true });
		throw error;
	}
	await syncDirectory(path);
}

/** Makes a file that is not there yet, lastingly. False: it is there already. */
export async function createPrivate(
	path: string,
	text: string,
): Promise<boolean> {
	await mkdir(dirname(path), { recursive: true, mode: 0o700 });
	// An empty file is never half written. Others appear whole, by a second name.
	const part = text === "" ? path : `${path}.${toHex(randomBytes(8))}.part`;
	try {
		await writeNew(part, text);
		if (part !== path) await link(part, path);
	} catch (error) {
		if (errorCode(error) === "EEXIST") return false;
		throw error;
	} finally {
		if (part !== path) await rm(part, { force: true });
	}
	await syncDirectory(path);
	return true;
}

/** Removes the files of a directory that are older. */
export async function removeOlder(
	directory: string,
	ageMs: number,
): Promise<void> {
	for (const name of await readdir(directory)) {
		const path = join(directory, name);
		try {
			const { mtimeMs } = await stat(path);
			if (Date.now() - mtimeMs > ageMs) await rm(path);
		} catch (error) {
			if (errorCode(error) !== "ENOENT") throw error;
		}
	}
}

async function writeNew(path: string, text: string): Promise<void> {
	const file = await open(path, "wx", 0o600);
	try {
		await file.writeFile(text);
		await file.sync();
	} finally {
		await file.close();
	}
}

async function syncDirectory(path: string): Promise<void> {
	const directory = await open(join(dirname(path), "."), constants.O_RDONLY);
	try {
		await directory.sync();
	} finally {
		await directory.close();
	}
}
