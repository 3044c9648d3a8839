// Which public keys are refused: WebCrypto imports points of small order, and some that are not on
// the curve at all. With a key of small order a signature verifies for many messages, and a shared
// secret is known to everyone.
//
// Only public values are computed with here, so it need not run in constant time.

const P = 2n ** 255n - 19n;
/** d of edwards25519. */
const D =
	37095705934669439343138083508754565189542113879843219016388785533085940283555n;
/** A of curve25519. */
const A = 486662n;
const SIGN = 1n << 255n;

/** @param {Bytes} bytes little-endian */
function toNumber(bytes) {
	return bytes.reduceRight((number, byte) => (number << 8n) | BigInt(byte), 0n);
}

/** @param {bigint} number */
function mod(number) {
	const rest = number % P;
	return rest < 0n ? rest + P : rest;
}

/**
 * Whether a number is a square modulo P, by Euler's criterion.
 * @param {bigint} number
 */
function isSquare(number) {
	let power = 1n;
	let square = mod(number);
	for (let exponent = (P - 1n) / 2n; exponent > 0n; exponent >>= 1n) {
		if (exponent & 1n) power = mod(power * square);
		square = mod(square * square);
	}
	return power <= 1n;
}

/** @param {Bytes} bytes */
function edwardsY(bytes) {
	const number = toNumber(bytes);
	return mod(number & ~SIGN);
}

/**
 * Whether an Ed25519 key, or the first half of a signature, has an order of 1, 2, 4 or 8: then y is
 * 1, -1, 0, or a root of d y^4 + 2 y^2 - 1.
 * @param {Bytes} bytes
 */
export function isSmallOrder(bytes) {
	const y = edwardsY(bytes);
	const yy = mod(y * y);
	return mod(y * (yy - 1n) * (D * yy * yy + 2n * yy - 1n)) === 0n;
}

/**
 * Whether these are a point of Ed25519 that may be a key: x^2 = (y^2 - 1) / (d y^2 + 1) has a root.
 * @param {Bytes} bytes
 */
export function isSigningKey(bytes) {
	const y = edwardsY(bytes);
	const yy = mod(y * y);
	return isSquare((yy - 1n) * (D * yy + 1n)) && !isSmallOrder(bytes);
}

/**
 * Whether these are an X25519 key in its only spelling, and not of small order: u is not 0, 1 or
 * -1, and doubling it does not lead to 1.
 * @param {Bytes} bytes
 */
export function isEncryptionKey(bytes) {
	const u = toNumber(bytes);
	const uu = mod(u * u);
	const quartic = uu * uu - 4n * u * uu - (2n + 4n * A) * uu - 4n * u + 1n;
	return u < P && mod(u * (uu - 1n) * quartic) !== 0n;
}
