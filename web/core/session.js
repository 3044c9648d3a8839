// Shared by the use cases of one approver: who it is, its keys, what it has pinned, and how to
// reach the gateway.

import { fromBase64urlOf } from "./bytes.js";
import { readTime, spellTime } from "./canonical.js";
import { GatewayClient, loaded } from "./gateway.js";
import { openKeys, parseDeviceBundle } from "./keys.js";
import { DeviceTrust } from "./statements.js";

/** @typedef {import('./artifact.js').PinnedEnforcer} PinnedEnforcer */
/** @typedef {import('./keys.js').DeviceKeys} DeviceKeys */
/** @typedef {import('./store.js').EnforcerRecord} EnforcerRecord */
/** @typedef {import('./store.js').Profile} Profile */
/** @typedef {import('./store.js').Store} Store */

export class Session {
	/**
	 * @param {Store} store
	 * @param {Profile} profile
	 * @param {{ gateways: string[], page: string }} place
	 */
	static async open(store, profile, place) {
		const keys = await openKeys(profile.keys, profile.deviceName);
		const credential =
			profile.credential ??
			new (await loaded(import("./tokens.js"))).TokenSource(
				store,
				place.gateways,
			);
		const session = new Session(store, profile, credential, keys, place);
		await session.reload();
		return session;
	}

	/**
	 * @param {Store} store
	 * @param {Profile} profile
	 * @param {string | import('./gateway.js').Credential} credential
	 * @param {DeviceKeys} keys
	 * @param {{ gateways: string[], page: string }} place
	 */
	constructor(store, profile, credential, keys, place) {
		this.store = store;
		this.keys = keys;
		this.page = place.page;
		this.client = new GatewayClient(place.gateways, credential);
		/** Whether the person signs in, rather than having joined by invitation. */
		this.isSignIn = profile.credential === null;
		this.identity = {
			tenantId: profile.tenantId,
			approverId: profile.approverId,
			deviceId: keys.bundle.deviceId,
			deviceName: profile.deviceName,
			joinedAt: profile.joinedAt,
		};
		/** @type {Map<string, EnforcerRecord>} */
		this.enforcers = new Map();
		/**
		 * Why introductions were not taken over, by the enforcer's id.
		 * @type {Map<string, 'endedHere' | 'disagreement' | 'otherKey'>}
		 */
		this.refused = new Map();
		/**
		 * The link by which this device has just joined, until it is in force.
		 * @type {{ link: import('./invite.js').DeviceLink, invitationId: string, asked?: Promise<import('./types.js').Enrolment> } | null}
		 */
		this.invited = null;
		/**
		 * The link for a new device that is shown here.
		 * @type {import('./types.js').DeviceOffer | null}
		 */
		this.offer = null;
		/** Tells other tabs what has changed: `enforcers`, `tokens` or `logout`. */
		this.tabs = new BroadcastChannel("countersign");
	}

	/**
	 * Gives this device another name, before anyone has seen it.
	 * @param {string} name
	 */
	async rename(name) {
		const profile = await this.store.renameProfile(name);
		this.keys = await openKeys(profile.keys, name);
		this.identity.deviceName = name;
	}

	/** Reads the pinned enforcers again. */
	async reload() {
		const records = await this.store.enforcers();
		this.enforcers = new Map(
			records.map((record) => [record.enforcerId, record]),
		);
	}

	/** Whose devices these are. */
	get subject() {
		return {
			tenantId: this.identity.tenantId,
			approverId: this.identity.approverId,
		};
	}

	/** The time, as it is signed. */
	timestamp() {
		return spellTime(Date.now());
	}

	/**
	 * @param {string | null} enforcerId
	 * @returns {PinnedEnforcer | null} null if this device has not authenticated it
	 */
	pinned(enforcerId) {
		const record =
			enforcerId === null ? undefined : this.enforcers.get(enforcerId);
		if (record === undefined) return null;
		return {
			enforcerId: record.enforcerId,
			encryptionKey: fromBase64urlOf("key", record.key, 32),
		};
	}

	/** @param {EnforcerRecord} record */
	async pin(record) {
		await this.store.keepEnforcer(record);
		await this.store.removeUnpaired(record.enforcerId);
		this.enforcers.set(record.enforcerId, record);
		this.refused.delete(record.enforcerId);
		this.tabs.postMessage("enforcers");
	}

	/**
	 * Earlier introductions by other devices do not bring the enforcer back.
	 * @param {EnforcerRecord} record
	 * @param {import('./records.js').UntoldEnd} untold what the gateway does not know yet
	 */
	async unpin({ enforcerId, pairedAt }, untold) {
		// The other device's clock may be ahead.
		const at = spellTime(Math.max(Date.now(), readTime(pairedAt) ?? 0));
		await this.store.keepUnpaired({ enforcerId, at, untold });
		await this.drop(enforcerId);
	}

	/**
	 * Forgets an enforcer that nobody vouches for any more. A new introduction brings it back.
	 * @param {string} enforcerId
	 */
	async drop(enforcerId) {
		await this.store.removeEnforcer(enforcerId);
		this.enforcers.delete(enforcerId);
		this.tabs.postMessage("enforcers");
	}

	/**
	 * The devices that this one trusts without asking anyone: itself, and those that it was led to
	 * before.
	 */
	async trust() {
		const { devices, revoked, addedBy } = await this.store.trust();
		const known = await Promise.all(devices.map(parseDeviceBundle));
		const trust = new DeviceTrust(this.subject, [
			this.keys.bundle,
			...known.filter(({ deviceId }) => !revoked.includes(deviceId)),
		]);
		for (const deviceId of revoked) trust.revoked.add(deviceId);
		trust.adders = new Map(Object.entries(addedBy ?? {}));
		return trust;
	}

	/**
	 * Keeps what was followed. Nothing is forgotten: a device that is known to be revoked stays so.
	 * @param {DeviceTrust} trust
	 */
	async remember(trust) {
		const own = this.identity.deviceId;
		const devices = trust.inForce
			.filter(({ deviceId }) => deviceId !== own)
			.map(({ text }) => text);
		await this.store.addTrust({
			devices,
			revoked: [...trust.revoked],
			addedBy: Object.fromEntries(trust.adders),
		});
	}

	/**
	 * The text of an Envelope around `body`, which is JSON and is not rewritten.
	 * @param {string} msgType
	 * @param {string} requestId
	 * @param {string} body
	 * @param {{ recipient?: { enforcerId: string }, expiresAt?: string }} [further]
	 */
	envelope(msgType, requestId, body, further) {
		const sender = { approverId: this.identity.approverId };
		const head = {
			msgType,
			requestId,
			createdAt: this.timestamp(),
			sender,
			...further,
		};
		return `${JSON.stringify(head).slice(0, -1)},"body":${body}}`;
	}
}
