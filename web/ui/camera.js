// Reads a QR code with the camera, where the browser can.

import { texts } from "../texts.js";
import { el, fill } from "./dom.js";
import { button } from "./parts.js";

const PAUSE_MS = 150;
/** Enough for a long link, and read within the pause. */
const LONGEST_SIDE = 960;

/**
 * Chromium's detector, which TypeScript does not know.
 * @typedef {{ detect(source: HTMLVideoElement): Promise<{ rawValue: string }[]> }} Detector
 */

/** @returns {Promise<Detector | null>} */
async function detector() {
	if (!navigator.mediaDevices) return null;
	const Known = /** @type {any} */ (window).BarcodeDetector;
	const formats = Known ? await Known.getSupportedFormats() : [];
	if (formats.includes("qr_code")) return new Known({ formats: ["qr_code"] });
	const decoder = await import("../vendor/decode.js").catch(() => null);
	return decoder && pixelDetector(decoder.decodeQR);
}

/**
 * Reads the pixels of the picture, where the browser knows no QR codes itself.
 * @param {(image: { width: number, height: number, data: Uint8ClampedArray }) => string} decode throws
 *   if there is no code
 * @returns {Detector}
 */
function pixelDetector(decode) {
	const canvas = el("canvas");
	const pencil = canvas.getContext("2d", { willReadFrequently: true });
	return {
		async detect(video) {
			const scale = Math.min(
				1,
				LONGEST_SIDE / Math.max(video.videoWidth, video.videoHeight, 1),
			);
			const width = Math.round(video.videoWidth * scale);
			const height = Math.round(video.videoHeight * scale);
			if (!pencil || width === 0 || height === 0) return [];
			[canvas.width, canvas.height] = [width, height];
			pencil.drawImage(video, 0, 0, width, height);
			const { data } = pencil.getImageData(0, 0, width, height);
			return [{ rawValue: decode({ width, height, data }) }];
		},
	};
}

/**
 * A button that starts the camera, and then its picture. `found` says whether the text was what is
 * wanted.
 * @param {(text: string) => boolean} found
 */
export function cameraReader(found) {
	const place = el("div", { class: "stack" });
	/** @type {MediaStream | null} */
	let stream = null;
	const stop = () => {
		for (const track of stream?.getTracks() ?? []) track.stop();
		stream = null;
	};
	const start = async () => {
		const reader = await detector();
		if (!reader) {
			fill(place, el("p", { class: "hint" }, texts.camera.missing));
			return;
		}
		try {
			stream = await navigator.mediaDevices.getUserMedia({
				video: { facingMode: "environment" },
			});
		} catch {
			fill(place, el("p", { class: "hint" }, texts.camera.denied));
			return;
		}
		const video = el("video", {
			class: "camera",
			autoplay: true,
			playsinline: true,
			"aria-label": texts.camera.label,
		});
		const status = el("p", { class: "hint", role: "status" }, texts.camera.aim);
		video.srcObject = stream;
		fill(
			place,
			video,
			status,
			button(texts.cancel, {
				on: () => {
					stop();
					offer();
				},
			}),
		);
		read(reader, video, status);
	};
	/** @type {(reader: Detector, video: HTMLVideoElement, status: HTMLElement) => Promise<void>} */
	const read = async (reader, video, status) => {
		while (stream && place.isConnected) {
			const codes = await reader.detect(video).catch(() => []);
			if (stream && codes.some((code) => found(code.rawValue))) break;
			if (codes.length > 0) status.textContent = texts.camera.other;
			await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
		}
		stop();
	};
	const offer = () =>
		fill(place, button(texts.camera.start, { icon: "camera", on: start }));
	offer();
	return { element: place, stop };
}
