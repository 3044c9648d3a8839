// Statements by which a device in force adds or revokes a device of the same approver, and which
// devices follow from them. A device starts from itself and trusts nothing that no trusted device
// has signed.

import { fromBase64urlOf } from "./bytes.js";
import { canonical, canonicalNode, Reader } from "./canonical.js";
import {
	hasSameKeys,
	parseDeviceBundle,
	readDeviceId,
	sign,
	verifies,
} from "./keys.js";
import { Problem } from "./problem.js";

/** @typedef {import('./json.js').Node} Node */
/** @typedef {import('./keys.js').DeviceBundle} DeviceBundle */
/** @typedef {import('./keys.js').DeviceKeys} DeviceKeys */

const WHAT = "statement";
/** So that a request can be encrypted to all of them within its size limit. */
export const MAX_DEVICES = 32;

/**
 * A device's bundle; or a deviceId, and those of the devices that stay in force, as far as the
 * signer knows.
 * @typedef {{ add: DeviceBundle } | { revoke: string, keeps?: string[] }} Change
 */

/**
 * @typedef {object} Subject
 * @property {string} tenantId
 * @property {string} approverId
 */

/**
 * A well-formed statement with signatures that nobody has verified yet.
 * @typedef {object} SignedStatement
 * @property {Subject} subject
 * @property {Change} change
 * @property {string} by
 * @property {string} text what the signatures cover
 * @property {Bytes} signature
 * @property {Bytes | null} possession
 */

/**
 * The canonical text of a statement.
 * @param {Subject} subject
 * @param {Change} change
 * @param {string} at
 * @param {string} by
 */
export function spellStatement({ tenantId, approverId }, change, at, by) {
	const members = { v: 1, tenantId, approverId, at, by };
	if ("add" in change)
		return canonical({
			...members,
			statement: "device.add",
			bundle: change.add.text,
		});
	const keeps = change.keeps && { keeps: [...change.keeps].sort() };
	return canonical({
		...members,
		...keeps,
		statement: "device.revoke",
		deviceId: change.revoke,
	});
}

/**
 * The text of a signed statement. `possession` is the new device's signature, if the statement adds
 * one other than the signer.
 * @param {string} statement
 * @param {string} signature
 * @param {string | null} possession
 */
export function spellSigned(statement, signature, possession) {
	const proof = possession === null ? "" : `"possession":"${possession}",`;
	return `{${proof}"signature":"${signature}","statement":${statement}}`;
}

/**
 * A statement by this device alone: about itself as the first device, or a revocation.
 * @param {DeviceKeys} keys
 * @param {Subject} subject
 * @param {Change} change
 * @param {string} at
 */
export async function signStatement(keys, subject, change, at) {
	const text = spellStatement(subject, change, at, keys.bundle.deviceId);
	return spellSigned(text, await sign(keys, text), null);
}

/**
 * @param {Node} node
 * @returns {Promise<SignedStatement>}
 */
export async function parseSigned(node) {
	const outer = new Reader(WHAT, node);
	const inner = outer.object("statement");
	const signature = readSignature(outer.string("signature"));
	const possession = outer.optionalString("possession");
	outer.finish();
	const reader = new Reader(WHAT, inner, "/statement");
	reader.version();
	const kind = reader.oneOf("statement", ["device.add", "device.revoke"]);
	/** @type {Change} */
	const change =
		kind === "device.add"
			? { add: await parseDeviceBundle(reader.string("bundle")) }
			: {
					revoke: readDeviceId(reader.string("deviceId")),
					...readKeeps(reader),
				};
	reader.time("at");
	const statement = {
		subject: {
			tenantId: reader.id("tenantId"),
			approverId: reader.id("approverId"),
		},
		change,
		by: readDeviceId(reader.string("by")),
		text: canonicalNode(inner),
		signature,
		possession: possession === null ? null : readSignature(possession),
	};
	reader.finish();
	return statement;
}

/**
 * In order and none twice, so that there is one spelling.
 * @param {Reader} reader
 */
function readKeeps(reader) {
	if (reader.optional("keeps") === undefined) return {};
	const keeps = reader
		.array("keeps")
		.map(({ value }) => (typeof value === "string" ? readDeviceId(value) : ""));
	const isOrdered = keeps.every(
		(id, place) => id !== "" && (place === 0 || id > keeps[place - 1]),
	);
	if (!isOrdered || keeps.length > MAX_DEVICES)
		throw reader.invalid("keeps", `deviceId[] <= ${MAX_DEVICES}`);
	return { keeps };
}

/** @param {string} text */
export function readSignature(text) {
	return fromBase64urlOf("signature", text, 64);
}

/**
 * The devices of one approver. Revoked ids are kept: an old statement, shown again, brings none of
 * them back.
 */
export class DeviceTrust {
	/**
	 * @param {Subject} subject
	 * @param {DeviceBundle[]} inForce
	 */
	constructor(subject, inForce) {
		this.subject = subject;
		this.inForce = inForce;
		/** @type {Set<string>} */
		this.revoked = new Set();
		/**
		 * By which device each was added.
		 * @type {Map<string, string>}
		 */
		this.adders = new Map();
	}

	/**
	 * The device, if it is in force.
	 * @param {string} deviceId
	 */
	device(deviceId) {
		if (this.revoked.has(deviceId))
			throw Problem.of("revokedDevice", { deviceId });
		const found = this.inForce.find((bundle) => bundle.deviceId === deviceId);
		if (found === undefined) throw Problem.of("unknownDevice", { deviceId });
		return found;
	}

	/**
	 * Follows one statement. It changes something only if a device in force signed it.
	 * @param {SignedStatement} signed
	 */
	async follow(signed) {
		const { subject, change, by, text } = signed;
		const isSame =
			subject.tenantId === this.subject.tenantId &&
			subject.approverId === this.subject.approverId;
		if (!isSame) throw Problem.of("otherApprover", {});
		// A list is read again as a whole, and may begin with statements of devices that were
		// revoked since.
		if (
			"add" in change
				? this.has(change.add)
				: this.revoked.has(change.revoke) && !change.keeps
		)
			return;
		if (!(await verifies(this.device(by), text, signed.signature)))
			throw Problem.of("statementSignature", {});
		if ("revoke" in change) {
			// Also of a device that is not known here: it must not be added later.
			this.revoke(change.revoke);
			if (change.keeps) this.revokeAddedBy(change.revoke, change.keeps);
			return;
		}
		const proven =
			signed.possession !== null &&
			(await verifies(change.add, text, signed.possession));
		if (!proven) throw Problem.of("possession", {});
		this.add(change.add);
		this.adders.set(change.add.deviceId, by);
	}

	/** @param {string} id */
	revoke(id) {
		this.inForce = this.inForce.filter(({ deviceId }) => deviceId !== id);
		this.revoked.add(id);
	}

	/**
	 * Revokes what a revoked device has added, and what those have added, unless it is to be kept.
	 * A thief can sign an addition after the revocation, and a gateway can list it before the
	 * revocation.
	 * @param {string} id
	 * @param {string[]} keeps
	 */
	revokeAddedBy(id, keeps) {
		for (const added of this.addedBy(id, keeps))
			if (this.inForce.some(({ deviceId }) => deviceId === added))
				this.revoke(added);
	}

	/**
	 * The devices that this one has added, and those that they have added, but for the exceptions
	 * and what these have added. Also through devices that were revoked before: one of them may
	 * have been revoked to hide what it has added.
	 * @param {string} id
	 * @param {string[]} except
	 */
	addedBy(id, except) {
		/** @type {Set<string>} */
		const found = new Set();
		const adders = [id];
		for (const adder of adders) {
			for (const [added, by] of this.adders) {
				if (by !== adder || except.includes(added) || found.has(added))
					continue;
				found.add(added);
				adders.push(added);
			}
		}
		return found;
	}

	/**
	 * Follows a list in its order, and again as long as that leads to further devices: a device's
	 * statements may stand before the one by which it becomes known here. A statement that cannot
	 * be read or followed proves nothing, changes nothing, and does not stop the rest.
	 * @param {Node[]} list
	 */
	async followAll(list) {
		/** @type {SignedStatement[]} */
		const signed = [];
		const skipping = async (/** @type {() => Promise<void>} */ act) => {
			try {
				await act();
			} catch (error) {
				if (!(error instanceof Problem)) throw error;
			}
		};
		for (const node of list)
			await skipping(async () => void signed.push(await parseSigned(node)));
		// An id is added once at most, so this ends.
		for (let isOn = true; isOn; ) {
			isOn = false;
			for (const statement of signed) {
				await skipping(async () => {
					const before = this.inForce.length;
					await this.follow(statement);
					isOn ||= this.inForce.length > before;
				});
			}
		}
	}

	/** @param {DeviceBundle} bundle */
	has(bundle) {
		return this.inForce.some((known) => hasSameKeys(known, bundle));
	}

	/** @param {DeviceBundle} bundle */
	add(bundle) {
		const { deviceId } = bundle;
		if (this.revoked.has(deviceId))
			throw Problem.of("revokedDevice", { deviceId });
		// An id is half a hash. An attacker with two key pairs of the same id must not replace one
		// by the other.
		if (this.inForce.some((known) => known.deviceId === deviceId))
			throw Problem.of("deviceIdTaken", { deviceId });
		if (this.inForce.length >= MAX_DEVICES)
			throw Problem.of("tooManyDevices", { limit: MAX_DEVICES });
		this.inForce = [...this.inForce, bundle];
	}
}
