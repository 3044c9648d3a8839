// IndexedDB in memory, as far as the store uses it: transactions on one database follow each other.

class IDBRequest {}

class Transaction {
	constructor(database) {
		this.database = database;
		this.queue = [];
		this.error = null;
		database.last = database.last.then(() => this.run());
	}

	async run() {
		// Code that continues after an answer may send more requests.
		for (let idle = 0; idle < 3; idle += 1) {
			await new Promise((resolve) => setImmediate(resolve));
			for (
				let next = this.queue.shift();
				next !== undefined;
				next = this.queue.shift()
			) {
				next();
				idle = 0;
			}
		}
		this.oncomplete?.();
	}

	objectStore(table) {
		const { rows, keyPath } = this.database.tables.get(table);
		const ask = (act) => {
			const request = new IDBRequest();
			this.queue.push(() => {
				request.result = act();
				request.onsuccess?.();
			});
			return request;
		};
		return {
			get: (key) => ask(() => structuredClone(rows.get(key))),
			getAll: () => ask(() => structuredClone([...rows.values()])),
			put: (value, key) =>
				ask(() => void rows.set(key ?? value[keyPath], structuredClone(value))),
			delete: (key) => ask(() => void rows.delete(key)),
		};
	}
}

class Database {
	constructor() {
		this.version = 0;
		this.tables = new Map();
		this.last = Promise.resolve();
		this.objectStoreNames = { contains: (name) => this.tables.has(name) };
	}

	createObjectStore(name, { keyPath = null } = {}) {
		if (this.tables.has(name)) throw new Error(`${name} exists`);
		this.tables.set(name, { rows: new Map(), keyPath });
		return { createIndex() {} };
	}

	transaction() {
		return new Transaction(this);
	}

	close() {}
}

/** @returns {Map<string, Database>} the databases, by name */
export function installStorage() {
	const databases = new Map();
	const open = (name, version) => {
		const request = new IDBRequest();
		setImmediate(() => {
			const database = databases.get(name) ?? new Database();
			databases.set(name, database);
			request.result = database;
			if (database.version < version) request.onupgradeneeded?.();
			database.version = version;
			request.onsuccess?.();
		});
		return request;
	};
	Object.assign(globalThis, { IDBRequest, indexedDB: { open } });
	return databases;
}

export { Database };
