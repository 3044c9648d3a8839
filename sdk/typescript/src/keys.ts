// The enforcer's own keys, as WebCrypto keeps them: nothing gives a private half back.

import {
	createHmac,
	createPrivateKey,
	createPublicKey,
	createSecretKey,
	type KeyObject,
	sign,
	timingSafeEqual,
} from "node:crypto";
import {
	concat,
	fromBase64url,
	randomBytes,
	toBase64url,
} from "./core/bytes.js";

export interface EncryptionKeys {
	privateKey: CryptoKey;
	publicKey: Bytes;
	/** Proves records of requests. */
	recordKey: KeyObject;
}

/** The salt that makes a key for proofs of records out of an enforcer's private key. */
const RECORD_KEY = "countersign stored request v1";

/** The DER prefixes of PKCS #8 before 32 bytes of a private key. */
const X25519_PREFIX = fromBase64url("key", "MC4CAQAwBQYDK2VuBCIEIA");
const ED25519_PREFIX = fromBase64url("key", "MC4CAQAwBQYDK2VwBCIEIA");
/** The base point of X25519: with it, Diffie-Hellman gives the public key. */
const BASE_POINT = Uint8Array.of(9, ...new Uint8Array(31));

export async function importEncryptionKey(
	secret: Bytes,
): Promise<EncryptionKeys> {
	const algorithm = { name: "X25519" };
	const privateKey = await crypto.subtle.importKey(
		"pkcs8",
		concat(X25519_PREFIX, secret),
		algorithm,
		false,
		["deriveBits"],
	);
	const base = await crypto.subtle.importKey(
		"raw",
		BASE_POINT,
		algorithm,
		false,
		[],
	);
	const bits = await crypto.subtle.deriveBits(
		{ name: "X25519", public: base } as EcdhKeyDeriveParams,
		privateKey,
		256,
	);
	const recordSecret = createHmac("sha256", RECORD_KEY).update(secret).digest();
	return {
		privateKey,
		publicKey: new Uint8Array(bits),
		recordKey: createSecretKey(recordSecret),
	};
}

/** Proves that a record of a request comes from a holder of the enforcer's key. */
export function proveRecord(keys: EncryptionKeys, record: string): string {
	const mac = createHmac("sha256", keys.recordKey).update(record, "utf8");
	return mac.digest("base64url");
}

export function provesRecord(
	keys: EncryptionKeys,
	record: string,
	proof: string,
): boolean {
	const expected = Buffer.from(proveRecord(keys, record));
	const given = Buffer.from(proof);
	return expected.length === given.length && timingSafeEqual(expected, given);
}

/** The key for the outcome of one request. It is forgotten with the request. */
export class OutcomeKey {
	readonly #seed: Bytes;

	constructor(seed: Bytes) {
		this.#seed = seed;
	}

	static generate(): OutcomeKey {
		return new OutcomeKey(randomBytes(32));
	}

	/** For the record of a durable request, which is as secret as the key. */
	expose(): string {
		return toBase64url(this.#seed);
	}

	publicKey(): string {
		const { x } = createPublicKey(this.#privateKey()).export({ format: "jwk" });
		return String(x);
	}

	sign(message: Bytes): Bytes {
		return new Uint8Array(sign(null, message, this.#privateKey()));
	}

	#privateKey() {
		return createPrivateKey({
			key: Buffer.from(concat(ED25519_PREFIX, this.#seed)),
			format: "der",
			type: "pkcs8",
		});
	}
}
