// The profile that `countersign join` and `countersign pair` write. This library only reads it.

import { homedir } from "node:os";
import { join } from "node:path";
import { fromBase64urlOf } from "./core/bytes.js";
import { isId } from "./core/canonical.js";
import { ProfileError } from "./errors.js";
import { readPrivate } from "./private_file.js";
import {
	parseToml,
	TomlError,
	type TomlTable,
	type TomlValue,
} from "./toml.js";

export interface GatewayLocation {
	urls: string[];
	/** A file of root certificates to trust instead of the system's. */
	ca: string | undefined;
	allowHttp: boolean;
	apiKey: string;
}

/** An approver's devices, as far as they are known. */
export interface ApproverRecord {
	id: string;
	/** Bundles of the devices in force. */
	devices: string[];
	/** Ids of devices that were ever revoked. */
	revoked: string[];
	/** By which device each was added. */
	addedBy: Map<string, string>;
	/** When the statements were last read. */
	checkedAt: string;
	/** New with each pairing. */
	routingToken: string;
}

export interface Profile {
	enforcerId: string;
	tenantId: string;
	/** X25519. */
	privateKey: Bytes;
	gateway: GatewayLocation;
	approvers: ApproverRecord[];
}

/** Separators of lines, and controls of bidirectional text: ids with them look like others. */
const DECEIVING = /[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Where the profile of this name is; `$COUNTERSIGN_PROFILE` or `default` without one. */
export function profilePath(name?: string): string {
	const chosen = name ?? (process.env.COUNTERSIGN_PROFILE || "default");
	if (!NAME.test(chosen))
		throw new ProfileError(
			"a profile's name consists of letters, digits, dots, dashes and underscores, and begins with a letter or digit",
		);
	const { COUNTERSIGN_PROFILES, XDG_CONFIG_HOME } = process.env;
	const directory =
		COUNTERSIGN_PROFILES ||
		join(XDG_CONFIG_HOME || join(homedir(), ".config"), "countersign");
	return join(directory, `${chosen}.toml`);
}

export async function readProfile(path: string): Promise<Profile> {
	const text = await readPrivate(path);
	if (text === null)
		throw new ProfileError(
			`there is no profile ${path}; join with the link that your administrator sent: countersign join LINK`,
		);
	return parseProfile(text, `the profile ${path}`);
}

export function parseProfile(text: string, what = "the profile"): Profile {
	let root: TomlTable;
	try {
		root = parseToml(text);
	} catch (error) {
		if (!(error instanceof TomlError)) throw error;
		throw new ProfileError(`${what} is damaged in ${error.message}`);
	}
	const reader = new TableReader(root, what, "");
	// The other role is not read: an enforcer has no use for an approver's keys.
	reader.optional("approver");
	const found = reader.optional("enforcer");
	reader.finish();
	if (!(found instanceof Map))
		throw new ProfileError(
			`${what} has no enforcer; join with an invitation for an enforcer: countersign join LINK`,
		);
	return readEnforcer(new TableReader(found, what, "enforcer."));
}

function readEnforcer(enforcer: TableReader): Profile {
	const gateway = enforcer.table("gateway");
	// Only rules use it, and the library asks without one.
	if (enforcer.has("operators")) enforcer.texts("operators");
	const profile = {
		enforcerId: enforcer.id("id"),
		privateKey: enforcer.key("key"),
		tenantId: gateway.id("tenant"),
		gateway: {
			urls: gateway.texts("urls"),
			ca: gateway.optionalText("ca"),
			allowHttp: gateway.flag("allow_http"),
			apiKey: gateway.text("api_key"),
		},
		approvers: enforcer.tables("approvers").map(readApprover),
	};
	gateway.finish();
	enforcer.finish();
	if (profile.gateway.urls.length === 0) throw gateway.damaged("urls");
	const ids = new Set(profile.approvers.map(({ id }) => id));
	// Which of two would be asked, and by which devices judged, would be chance.
	if (ids.size < profile.approvers.length) throw enforcer.damaged("approvers");
	return profile;
}

function readApprover(reader: TableReader): ApproverRecord {
	reader.text("paired_at");
	const record = {
		id: reader.id("id"),
		routingToken: reader.text("routing_token"),
		checkedAt: reader.text("checked_at"),
		devices: reader.texts("devices"),
		revoked: reader.has("revoked") ? reader.texts("revoked") : [],
		addedBy: reader.textMap("added_by"),
	};
	reader.finish();
	return record;
}

/** Reads the members of a table one by one, and refuses those that were not asked for. */
class TableReader {
	readonly #table: TomlTable;
	readonly #what: string;
	readonly #path: string;
	readonly #known = new Set<string>();

	constructor(table: TomlTable, what: string, path: string) {
		this.#table = table;
		this.#what = what;
		this.#path = path;
	}

	damaged(name: string): ProfileError {
		return new ProfileError(`${this.#what} is damaged: ${this.#path}${name}`);
	}

	has(name: string): boolean {
		return this.#table.has(name);
	}

	optional(name: string): TomlValue | undefined {
		this.#known.add(name);
		return this.#table.get(name);
	}

	optionalText(name: string): string | undefined {
		const value = this.optional(name);
		if (value !== undefined && typeof value !== "string")
			throw this.damaged(name);
		return value;
	}

	text(name: string): string {
		const value = this.optionalText(name);
		if (value === undefined) throw this.damaged(name);
		return value;
	}

	id(name: string): string {
		const value = this.text(name);
		if (!isId(value) || DECEIVING.test(value)) throw this.damaged(name);
		return value;
	}

	key(name: string): Bytes {
		const value = this.text(name);
		try {
			return fromBase64urlOf("key", value, 32);
		} catch {
			throw this.damaged(name);
		}
	}

	flag(name: string): boolean {
		const value = this.optional(name) ?? false;
		if (typeof value !== "boolean") throw this.damaged(name);
		return value;
	}

	texts(name: string): string[] {
		const value = this.optional(name);
		if (!Array.isArray(value)) throw this.damaged(name);
		return value.map((item) => {
			if (typeof item !== "string") throw this.damaged(name);
			return item;
		});
	}

	textMap(name: string): Map<string, string> {
		const value = this.optional(name) ?? new Map<string, TomlValue>();
		if (!(value instanceof Map)) throw this.damaged(name);
		const read = new Map<string, string>();
		for (const [key, item] of value) {
			if (typeof item !== "string") throw this.damaged(name);
			read.set(key, item);
		}
		return read;
	}

	table(name: string): TableReader {
		const value = this.optional(name);
		if (!(value instanceof Map)) throw this.damaged(name);
		return new TableReader(value, this.#what, `${this.#path}${name}.`);
	}

	tables(name: string): TableReader[] {
		const value = this.optional(name) ?? [];
		if (!Array.isArray(value)) throw this.damaged(name);
		return value.map((item) => {
			if (!(item instanceof Map)) throw this.damaged(name);
			return new TableReader(item, this.#what, `${this.#path}${name}.`);
		});
	}

	finish(): void {
		for (const name of this.#table.keys()) {
			if (!this.#known.has(name))
				throw new ProfileError(
					`${this.#what} has a member that this version does not know: ${this.#path}${name}`,
				);
		}
	}
}
