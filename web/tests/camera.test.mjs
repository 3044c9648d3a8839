// The decoder of QR codes that the page brings along: pinned, and reads what the page shows.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { qrCode } from "../ui/qr.js";
import { decodeQR } from "../vendor/decode.js";

/** Of the package qr 0.7.0, as published. */
const PINNED = {
	"decode.js":
		"00e209820dcb11d624e9a03d6383e580766792b57d1651318f0a29e4e1ff0fe8",
	"index.js":
		"a0de370051f94bd74f218f74401fdf197585e3f9ef0143164f87ea941a3fdd6f",
};

const LINK = `https://gateway.example.org/#/join/${"A1b-".repeat(10)}xyz/${"s".repeat(22)}/${"d".repeat(22)}`;

/**
 * As a camera sees it: each module has some pixels, turned a little, on a grey ground.
 * @param {string} text
 * @param {number} pixels
 * @param {number} turned in degrees
 */
function picture(text, pixels, turned) {
	const { size, dark } = qrCode(text);
	const side = Math.round((size + 8) * pixels * 1.5);
	const data = new Uint8ClampedArray(side * side * 4).fill(255);
	const [cos, sin] = [
		Math.cos((turned * Math.PI) / 180),
		Math.sin((turned * Math.PI) / 180),
	];
	for (let y = 0; y < side; y += 1) {
		for (let x = 0; x < side; x += 1) {
			const [right, down] = [x - side / 2, y - side / 2];
			const column = Math.floor((right * cos + down * sin) / pixels + size / 2);
			const row = Math.floor((down * cos - right * sin) / pixels + size / 2);
			const isIn = column >= 0 && row >= 0 && column < size && row < size;
			const shade = isIn && dark[row * size + column] ? 40 : 210;
			data.fill(shade, (y * side + x) * 4, (y * side + x) * 4 + 3);
		}
	}
	return { width: side, height: side, data };
}

test("the decoder is the one that was published", async () => {
	for (const [name, hash] of Object.entries(PINNED)) {
		const file = await readFile(new URL(`../vendor/${name}`, import.meta.url));
		assert.equal(createHash("sha256").update(file).digest("hex"), hash, name);
	}
});

test("what the page shows is read, also turned and dim", () => {
	for (const [pixels, turned] of [
		[4, 0],
		[6, 7],
		[5, 180],
	])
		assert.equal(decodeQR(picture(LINK, pixels, turned)), LINK);
});

test("a picture without a code is refused", () => {
	const data = new Uint8ClampedArray(100 * 100 * 4).fill(128);
	assert.throws(() => decodeQR({ width: 100, height: 100, data }));
});
