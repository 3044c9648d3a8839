/** The text of the code in the picture. Throws if there is none. */
export function decodeQR(image: {
	width: number;
	height: number;
	data: Uint8ClampedArray | Uint8Array;
}): string;
