// This browser's storage, in IndexedDB: the profile with keys that cannot be exported, pinned
// enforcers, sessions that were seen, and decisions. Logging out removes the whole database.

import { Problem } from "./problem.js";
import { extendTeam } from "./records.js";

/** @typedef {import('./records.js').Profile} Profile */
/** @typedef {import('./records.js').TokenRecord} TokenRecord */
/** @typedef {import('./records.js').EnforcerRecord} EnforcerRecord */
/** @typedef {import('./records.js').DecisionRecord} DecisionRecord */
/** @typedef {import('./records.js').SessionRecord} SessionRecord */
/** @typedef {import('./records.js').TrustRecord} TrustRecord */
/** @typedef {import('./records.js').TeamRecord} TeamRecord */
/** @typedef {import('./records.js').UnpairedRecord} UnpairedRecord */

const NAME = "countersign";
const VERSION = 1;

/** @typedef {'profile' | 'enforcers' | 'unpaired' | 'decisions' | 'sessions'} Table */

/** @type {Record<Table, string | null>} */
const KEYS = {
	profile: null,
	enforcers: "enforcerId",
	unpaired: "enforcerId",
	decisions: "requestId",
	sessions: "sessionId",
};

/** @param {unknown} cause */
function storageProblem(cause) {
	return Problem.of(
		"storage",
		{ cause: cause instanceof Error ? cause.message : String(cause) },
		cause,
	);
}

/**
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
function resultOf(request) {
	return new Promise((resolve, reject) => {
		request.onsuccess = () => resolve(request.result);
		request.onerror = () => reject(storageProblem(request.error));
	});
}

export class Store {
	/** @returns {Promise<Store>} */
	static async open() {
		if (typeof indexedDB === "undefined") throw Problem.of("browser", {});
		const request = indexedDB.open(NAME, VERSION);
		request.onupgradeneeded = () => {
			const { objectStoreNames } = request.result;
			for (const [table, keyPath] of Object.entries(KEYS)) {
				if (objectStoreNames.contains(table)) continue;
				const store = request.result.createObjectStore(
					table,
					keyPath === null ? {} : { keyPath },
				);
				if (table === "decisions") store.createIndex("decidedAt", "decidedAt");
			}
		};
		return new Store(await resultOf(request));
	}

	/** Removes everything, also what other tabs have open. */
	static async remove() {
		await resultOf(indexedDB.deleteDatabase(NAME));
	}

	/** @param {IDBDatabase} database */
	constructor(database) {
		this.database = database;
		// Another tab logs out: its removal must not wait for this one.
		database.onversionchange = () => database.close();
	}

	close() {
		this.database.close();
	}

	/**
	 * @template T
	 * @param {Table} table
	 * @param {IDBTransactionMode} mode
	 * @param {(store: IDBObjectStore) => IDBRequest<T> | Promise<T>} act
	 * @returns {Promise<T>}
	 */
	async on(table, mode, act) {
		try {
			const transaction = this.database.transaction(table, mode, {
				durability: "strict",
			});
			const ended = new Promise((resolve, reject) => {
				transaction.oncomplete = resolve;
				transaction.onabort = () => reject(storageProblem(transaction.error));
			});
			const acting = act(transaction.objectStore(table));
			const [result] = await Promise.all([
				acting instanceof IDBRequest ? resultOf(acting) : acting,
				ended,
			]);
			return result;
		} catch (error) {
			throw error instanceof Problem ? error : storageProblem(error);
		}
	}

	/** @returns {Promise<Profile | null>} */
	async profile() {
		return (
			(await this.on("profile", "readonly", (store) =>
				store.get("approver"),
			)) ?? null
		);
	}

	/**
	 * Refused if there is one: keys are never overwritten.
	 * @param {Profile} profile
	 * @param {TokenRecord | null} [tokens]
	 */
	async keepProfile(profile, tokens = null) {
		await this.on("profile", "readwrite", (store) => {
			if (tokens !== null) store.put(tokens, "tokens");
			return store.add(profile, "approver");
		});
	}

	/** @param {string} deviceName */
	async renameProfile(deviceName) {
		return this.on("profile", "readwrite", async (store) => {
			const profile = {
				...(await resultOf(store.get("approver"))),
				deviceName,
			};
			await resultOf(store.put(profile, "approver"));
			return /** @type {Profile} */ (profile);
		});
	}

	/**
	 * What this device calls others, by their ids.
	 * @returns {Promise<Record<string, string>>}
	 */
	async nicknames() {
		return (
			(await this.on("profile", "readonly", (store) =>
				store.get("nicknames"),
			)) ?? {}
		);
	}

	/**
	 * @param {string} deviceId
	 * @param {string | null} name null: the one that it joined with
	 */
	async keepNickname(deviceId, name) {
		await this.on("profile", "readwrite", async (store) => {
			const { [deviceId]: _, ...others } =
				(await resultOf(store.get("nicknames"))) ?? {};
			const now = name === null ? others : { ...others, [deviceId]: name };
			await resultOf(store.put(now, "nicknames"));
		});
	}

	/** @returns {Promise<TokenRecord | null>} */
	async tokens() {
		return (
			(await this.on("profile", "readonly", (store) => store.get("tokens"))) ??
			null
		);
	}

	/** @param {TokenRecord} record */
	async keepTokens(record) {
		await this.on("profile", "readwrite", (store) =>
			store.put(record, "tokens"),
		);
	}

	async removeTokens() {
		await this.on("profile", "readwrite", (store) => store.delete("tokens"));
	}

	/** @returns {Promise<TrustRecord>} */
	async trust() {
		return (
			(await this.on("profile", "readonly", (store) => store.get("trust"))) ?? {
				devices: [],
				revoked: [],
			}
		);
	}

	/**
	 * Adds to what is kept, in one transaction: another tab, or another answer, may have added
	 * something meanwhile.
	 * @param {TrustRecord} record
	 */
	async addTrust({ devices, revoked, addedBy }) {
		await this.on("profile", "readwrite", async (store) => {
			/** @type {TrustRecord} */
			const before = (await resultOf(store.get("trust"))) ?? {
				devices: [],
				revoked: [],
			};
			const now = {
				devices: [...new Set([...before.devices, ...devices])],
				revoked: [...new Set([...before.revoked, ...revoked])],
				addedBy: { ...addedBy, ...before.addedBy },
			};
			const size = (/** @type {TrustRecord} */ record) =>
				record.devices.length +
				record.revoked.length +
				Object.keys(record.addedBy ?? {}).length;
			const isNew = size(now) > size(before);
			if (isNew) await resultOf(store.put(now, "trust"));
		});
	}

	/** @returns {Promise<TeamRecord[]>} */
	async teams() {
		return Object.values(
			(await this.on("profile", "readonly", (store) => store.get("teams"))) ??
				{},
		);
	}

	/**
	 * @param {string} teamId
	 * @returns {Promise<TeamRecord | null>}
	 */
	async team(teamId) {
		return (
			(await this.teams()).find((record) => record.teamId === teamId) ?? null
		);
	}

	/**
	 * Adds to the knowledge of a team, in one transaction: another tab may have read more.
	 * @param {TeamRecord} record
	 * @param {boolean} [endsFork] the person has joined the team anew
	 * @returns {Promise<TeamRecord>} as it is kept now
	 */
	async keepTeam(record, endsFork = false) {
		return this.on("profile", "readwrite", async (store) => {
			/** @type {Record<string, TeamRecord>} */
			const teams = (await resultOf(store.get("teams"))) ?? {};
			const before = teams[record.teamId];
			const now = extendTeam(before, record, endsFork);
			if (now !== before)
				await resultOf(store.put({ ...teams, [record.teamId]: now }, "teams"));
			return now;
		});
	}

	/** @param {string} teamId */
	async removeTeam(teamId) {
		await this.on("profile", "readwrite", async (store) => {
			const { [teamId]: _, ...others } =
				(await resultOf(store.get("teams"))) ?? {};
			await resultOf(store.put(others, "teams"));
		});
	}

	/** @returns {Promise<UnpairedRecord[]>} */
	unpaired() {
		return this.on("unpaired", "readonly", (store) => store.getAll());
	}

	/** @param {UnpairedRecord} record */
	async keepUnpaired(record) {
		await this.on("unpaired", "readwrite", (store) => store.put(record));
	}

	/**
	 * Keeps what the gateway does not know yet, unless the enforcer was paired again meanwhile.
	 * @param {string} enforcerId
	 * @param {import('./records.js').UntoldEnd} [untold]
	 */
	async keepUntold(enforcerId, untold) {
		await this.on("unpaired", "readwrite", async (store) => {
			const before = await resultOf(store.get(enforcerId));
			if (before === undefined) return;
			const { enforcerId: id, at } = before;
			await resultOf(
				store.put({ enforcerId: id, at, ...(untold && { untold }) }),
			);
		});
	}

	/** @param {string} enforcerId */
	async removeUnpaired(enforcerId) {
		await this.on("unpaired", "readwrite", (store) => store.delete(enforcerId));
	}

	/** @returns {Promise<EnforcerRecord[]>} */
	enforcers() {
		return this.on("enforcers", "readonly", (store) => store.getAll());
	}

	/** @param {EnforcerRecord} record */
	async keepEnforcer(record) {
		await this.on("enforcers", "readwrite", (store) => store.put(record));
	}

	/** @param {string} enforcerId */
	async removeEnforcer(enforcerId) {
		await this.on("enforcers", "readwrite", (store) =>
			store.delete(enforcerId),
		);
	}

	/**
	 * The newest decisions that are older than `before`.
	 * @param {string | null} before
	 * @param {number} limit
	 * @returns {Promise<DecisionRecord[]>}
	 */
	async decisions(before, limit) {
		const range = before === null ? null : IDBKeyRange.upperBound(before, true);
		/** @type {DecisionRecord[]} */
		const found = [];
		await this.on("decisions", "readonly", async (store) => {
			const request = store.index("decidedAt").openCursor(range, "prev");
			for (;;) {
				const cursor = await resultOf(request);
				if (cursor === null || found.push(cursor.value) >= limit) return;
				cursor.continue();
			}
		});
		return found;
	}

	/**
	 * @param {string} requestId
	 * @returns {Promise<DecisionRecord | null>}
	 */
	async decision(requestId) {
		return (
			(await this.on("decisions", "readonly", (store) =>
				store.get(requestId),
			)) ?? null
		);
	}

	/**
	 * A verified decision is never replaced by an unverified one.
	 * @param {DecisionRecord} record
	 */
	async keepDecision(record) {
		await this.on("decisions", "readwrite", async (store) => {
			const known = /** @type {DecisionRecord | undefined} */ (
				await resultOf(store.get(record.requestId))
			);
			if (record.isVerified || !known?.isVerified)
				await resultOf(store.put(record));
		});
	}

	/** @returns {Promise<SessionRecord[]>} */
	sessions() {
		return this.on("sessions", "readonly", (store) => store.getAll());
	}

	/** @param {SessionRecord} record */
	async keepSession(record) {
		await this.on("sessions", "readwrite", (store) => store.put(record));
	}
}
