// Reads a QR code with the camera, where the browser can.

import { texts } from "../texts.js";
import { el, fill } from "./dom.js";
import { button } from "./parts.js";

const PAUSE_MS = 150;

/**
 * Chromium's detector, which TypeScript does not know.
 * @typedef {{ detect(source: HTMLVideoElement): Promise<{ rawValue: string }[]> }} Detector
 */

/** @returns {Promise<Detector | null>} */
async function detector() {
	const Known = /** @type {any} */ (window).BarcodeDetector;
	if (!Known || !navigator.mediaDevices) return null;
	const formats = await Known.getSupportedFormats();
	return formats.includes("qr_code")
		? new Known({ formats: ["qr_code"] })
		: null;
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
