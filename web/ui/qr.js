// QR codes (ISO/IEC 18004): bytes, error correction level L, the smallest version that fits.

/** Error correction codewords in each block, and blocks, by version from 1 to 40, for level L. */
const PARITY = [
	7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28,
	28, 28, 30, 30, 26, 28, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30,
	30,
];
const BLOCKS = [
	1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8, 8, 9, 9, 10, 12,
	12, 12, 13, 14, 15, 16, 17, 18, 19, 19, 20, 21, 22, 24, 25,
];
const BYTE_MODE = 4;
const LEVEL_L = 1;

/** @type {((row: number, column: number) => boolean)[]} */
const MASKS = [
	(r, c) => (r + c) % 2 === 0,
	(r) => r % 2 === 0,
	(_, c) => c % 3 === 0,
	(r, c) => (r + c) % 3 === 0,
	(r, c) => (Math.floor(r / 2) + Math.floor(c / 3)) % 2 === 0,
	(r, c) => ((r * c) % 2) + ((r * c) % 3) === 0,
	(r, c) => (((r * c) % 2) + ((r * c) % 3)) % 2 === 0,
	(r, c) => (((r + c) % 2) + ((r * c) % 3)) % 2 === 0,
];

// The field GF(256) modulo x^8 + x^4 + x^3 + x^2 + 1.
const EXP = new Uint8Array(510);
const LOG = new Uint8Array(256);
for (let power = 0, value = 1; power < 255; power += 1) {
	EXP[power] = value;
	EXP[power + 255] = value;
	LOG[value] = power;
	value = (value << 1) ^ (value & 0x80 ? 0x11d : 0);
}

/**
 * @param {number} degree
 */
function generator(degree) {
	let poly = [1];
	for (let root = 0; root < degree; root += 1) {
		const next = new Array(poly.length + 1).fill(0);
		poly.forEach((factor, at) => {
			next[at] ^= factor;
			if (factor) next[at + 1] ^= EXP[LOG[factor] + root];
		});
		poly = next;
	}
	return poly.slice(1);
}

/**
 * @param {Bytes} data
 * @param {number[]} divisor
 */
function parity(data, divisor) {
	const rest = new Uint8Array(divisor.length);
	for (const byte of data) {
		const factor = byte ^ rest[0];
		rest.copyWithin(0, 1);
		rest[rest.length - 1] = 0;
		if (factor)
			divisor.forEach((term, at) => {
				if (term) rest[at] ^= EXP[LOG[factor] + LOG[term]];
			});
	}
	return rest;
}

/**
 * Where the alignment patterns are, in both directions.
 * @param {number} version
 */
function alignments(version) {
	if (version === 1) return [];
	const count = Math.floor(version / 7) + 2;
	const last = version * 4 + 10;
	const step =
		version === 32 ? 26 : Math.ceil((last - 6) / (count - 1) / 2) * 2;
	const places = [6];
	for (let at = count - 2; at >= 0; at -= 1) places.push(last - at * step);
	return places;
}

/**
 * Modules for data and parity.
 * @param {number} version
 */
function capacityBits(version) {
	const size = version * 4 + 17;
	const places = alignments(version).length;
	const overlapping = places > 2 ? (places - 2) * 2 : 0;
	const aligned = places ? (places * places - 3) * 25 - overlapping * 5 : 0;
	return (
		size * size -
		3 * 64 -
		31 -
		2 * (size - 16) -
		aligned -
		(version >= 7 ? 36 : 0)
	);
}

/** @param {number} version */
function dataBytes(version) {
	return (
		Math.floor(capacityBits(version) / 8) -
		PARITY[version - 1] * BLOCKS[version - 1]
	);
}

/**
 * Header, data and padding.
 * @param {Bytes} bytes
 * @param {number} version
 */
function encode(bytes, version) {
	const out = new Uint8Array(dataBytes(version));
	let length = 0;
	/** @type {(value: number, bits: number) => void} */
	const put = (value, bits) => {
		for (let bit = bits - 1; bit >= 0; bit -= 1, length += 1) {
			if ((value >> bit) & 1) out[length >> 3] |= 0x80 >> (length & 7);
		}
	};
	put(BYTE_MODE, 4);
	put(bytes.length, version < 10 ? 8 : 16);
	for (const byte of bytes) put(byte, 8);
	let at = Math.ceil(Math.min(length + 4, out.length * 8) / 8);
	for (let pad = 0xec; at < out.length; at += 1, pad ^= 0xec ^ 0x11)
		out[at] = pad;
	return out;
}

/**
 * Splits into blocks and interleaves them with their parity.
 * @param {Bytes} data
 * @param {number} version
 */
function interleave(data, version) {
	const [count, extra] = [BLOCKS[version - 1], PARITY[version - 1]];
	const short = Math.floor(data.length / count);
	const divisor = generator(extra);
	const blocks = [];
	for (let index = 0, from = 0; index < count; index += 1) {
		const length = short + (index >= count - (data.length % count) ? 1 : 0);
		const block = data.subarray(from, from + length);
		blocks.push({ block, check: parity(block, divisor) });
		from += length;
	}
	const out = [];
	for (let at = 0; at <= short; at += 1)
		for (const { block } of blocks) if (at < block.length) out.push(block[at]);
	for (let at = 0; at < extra; at += 1)
		for (const { check } of blocks) out.push(check[at]);
	return out;
}

/**
 * @param {number} value
 * @param {number} divisor
 * @param {number} bits
 */
function withCheck(value, divisor, bits) {
	let rest = value << bits;
	const top = 31 - Math.clz32(divisor);
	for (
		let bit = 31 - Math.clz32(rest);
		rest && bit >= top;
		bit = 31 - Math.clz32(rest)
	)
		rest ^= divisor << (bit - top);
	return (value << bits) | rest;
}

/** A square of modules; `fixed` are those that carry no data. */
class Square {
	/** @param {number} version */
	constructor(version) {
		this.version = version;
		this.size = version * 4 + 17;
		this.dark = new Uint8Array(this.size * this.size);
		this.fixed = new Uint8Array(this.size * this.size);
		this.#patterns();
	}

	/** @type {(row: number, column: number, dark: boolean | number) => void} */
	fix(row, column, dark) {
		if (row < 0 || column < 0 || row >= this.size || column >= this.size)
			return;
		this.dark[row * this.size + column] = dark ? 1 : 0;
		this.fixed[row * this.size + column] = 1;
	}

	#patterns() {
		const end = this.size - 7;
		for (let at = 0; at < this.size; at += 1) {
			this.fix(6, at, at % 2 === 0);
			this.fix(at, 6, at % 2 === 0);
		}
		for (const [top, left] of [
			[0, 0],
			[0, end],
			[end, 0],
		]) {
			for (let r = -1; r <= 7; r += 1) {
				for (let c = -1; c <= 7; c += 1) {
					const ring = Math.max(Math.abs(r - 3), Math.abs(c - 3));
					this.fix(top + r, left + c, ring !== 2 && ring !== 4);
				}
			}
		}
		const places = alignments(this.version);
		const last = places[places.length - 1];
		for (const row of places) {
			for (const column of places) {
				if (
					(row === 6 && (column === 6 || column === last)) ||
					(row === last && column === 6)
				)
					continue;
				for (let r = -2; r <= 2; r += 1) {
					for (let c = -2; c <= 2; c += 1)
						this.fix(
							row + r,
							column + c,
							Math.max(Math.abs(r), Math.abs(c)) !== 1,
						);
				}
			}
		}
		if (this.version >= 7) {
			const bits = withCheck(this.version, 0x1f25, 12);
			for (let at = 0; at < 18; at += 1) {
				const [far, near] = [this.size - 11 + (at % 3), Math.floor(at / 3)];
				this.fix(far, near, (bits >> at) & 1);
				this.fix(near, far, (bits >> at) & 1);
			}
		}
		this.format(0);
	}

	/** @param {number} mask */
	format(mask) {
		const bits = withCheck((LEVEL_L << 3) | mask, 0x537, 10) ^ 0x5412;
		for (let at = 0; at < 15; at += 1) {
			const dark = (bits >> at) & 1;
			const skip = at > 5 ? 1 : 0;
			if (at < 8) this.fix(at + skip, 8, dark);
			else this.fix(this.size - 15 + at, 8, dark);
			if (at < 8) this.fix(8, this.size - 1 - at, dark);
			else this.fix(8, at === 8 ? 7 : 14 - at, dark);
		}
		this.fix(this.size - 8, 8, 1);
	}

	/** @param {number[]} bytes */
	place(bytes) {
		let bit = 0;
		for (
			let right = this.size - 1, up = true;
			right > 0;
			right -= 2, up = !up
		) {
			if (right === 6) right -= 1;
			for (let step = 0; step < this.size; step += 1) {
				const row = up ? this.size - 1 - step : step;
				for (const column of [right, right - 1]) {
					const at = row * this.size + column;
					if (this.fixed[at]) continue;
					this.dark[at] = ((bytes[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1;
					bit += 1;
				}
			}
		}
	}

	/** @param {number} mask */
	toggle(mask) {
		for (let row = 0; row < this.size; row += 1) {
			for (let column = 0; column < this.size; column += 1) {
				const at = row * this.size + column;
				if (!this.fixed[at] && MASKS[mask](row, column)) this.dark[at] ^= 1;
			}
		}
	}

	/** How hard it is to read, by the standard's four rules. */
	penalty() {
		const { size, dark } = this;
		let points = 0;
		for (const [along, across] of [
			[1, size],
			[size, 1],
		]) {
			for (let line = 0; line < size; line += 1) {
				let run = 0;
				let window = 0;
				for (let at = 0; at < size; at += 1) {
					const here = dark[line * across + at * along];
					run =
						at > 0 && here === dark[line * across + (at - 1) * along]
							? run + 1
							: 1;
					if (run === 5) points += 3;
					else if (run > 5) points += 1;
					window = ((window << 1) | here) & 0x7ff;
					if (at >= 10 && (window === 0x5d0 || window === 0x05d)) points += 40;
				}
			}
		}
		for (let row = 1; row < size; row += 1) {
			for (let column = 1; column < size; column += 1) {
				const at = row * size + column;
				const sum =
					dark[at] + dark[at - 1] + dark[at - size] + dark[at - size - 1];
				if (sum === 0 || sum === 4) points += 3;
			}
		}
		const share = dark.reduce((sum, one) => sum + one, 0) / dark.length;
		return points + Math.floor(Math.abs(share - 0.5) * 20) * 10;
	}
}

/**
 * The modules of a text's QR code, row by row, or null if it is too long for one.
 * @param {string} text
 * @returns {{ size: number, dark: Bytes } | null}
 */
export function qrCode(text) {
	const bytes = new TextEncoder().encode(text);
	let version = 1;
	while (
		version <= 40 &&
		dataBytes(version) < bytes.length + (version < 10 ? 2 : 3)
	)
		version += 1;
	if (version > 40) return null;
	const square = new Square(version);
	square.place(interleave(encode(bytes, version), version));
	let best = { mask: 0, points: Infinity };
	for (let mask = 0; mask < MASKS.length; mask += 1) {
		square.toggle(mask);
		square.format(mask);
		const points = square.penalty();
		if (points < best.points) best = { mask, points };
		square.toggle(mask);
	}
	square.toggle(best.mask);
	square.format(best.mask);
	return { size: square.size, dark: square.dark };
}
