// Adding a new device: by a link that is shown here, or by its own link. Then there is something to
// compare.

import { texts } from "../texts.js";
import { cameraReader } from "../ui/camera.js";
import { el, fill } from "../ui/dom.js";
import { expiring, waitingLine } from "../ui/expiring.js";
import { icon } from "../ui/icons.js";
import { linkArgs } from "../ui/links.js";
import { markedName } from "../ui/marked.js";
import {
	busy,
	button,
	copyField,
	errorText,
	facts,
	field,
	linkButton,
	note,
	page,
	problemNote,
	waiting,
} from "../ui/parts.js";
import { qrView } from "../ui/qrview.js";
import { settling } from "../ui/settle.js";

/** @typedef {import('../core/problem.js').Problem} Problem */
/** @typedef {import('../core/types.js').NewDevice} NewDevice */

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {import('../ui/view.js').View}
 */
export function view(context) {
	const { approver, args, go } = context;
	const title = texts.devices.addTitle;
	const back = { href: "#/devices", text: texts.devices.title };
	if (args.length > 0) {
		const element = el("div", null, waiting());
		approver
			.readNewDevice(`#/device/${args.join("/")}`)
			.then(
				(device) => element.replaceChildren(compare(approver, device)),
				(thrown) =>
					element.replaceChildren(
						page(
							title,
							{ back },
							note("bad", errorText(thrown)),
							linkButton(texts.tryAgain, "#/device"),
						),
					),
			)
			.then(() => element.querySelector("h1")?.focus());
		return { title, element };
	}
	const input = el("input", {
		class: "input",
		autocomplete: "off",
		spellcheck: "false",
		required: true,
		placeholder: "https://…/#/device/…",
	});
	const place = el("div", null);
	const next = button(texts.devices.continue, {
		kind: "primary",
		type: "submit",
	});
	const open = (/** @type {string} */ text) => {
		const rest = linkArgs(text, "device");
		if (rest) go(`#/device/${rest}`);
		return rest !== null;
	};
	const submit = (/** @type {Event} */ event) => {
		event.preventDefault();
		// Another kind of link is refused there, in words.
		busy(next, place, async () => {
			if (!open(input.value)) await approver.readNewDevice(input.value.trim());
		});
	};
	const camera = cameraReader(open);
	const form = el(
		"form",
		{ class: "card card-body", on: { submit } },
		field(texts.devices.linkField, input, texts.devices.linkHint),
		place,
		el("div", { class: "row" }, next),
		camera.element,
	);
	if (approver.isSignIn) {
		const lead = texts.devices.signInLead;
		const element = page(title, { lead, back }, form);
		return { title, element, dispose: camera.stop };
	}
	const ending = new AbortController();
	const result = el("div", null);
	result.append(
		page(
			title,
			{ lead: texts.devices.addLead, back },
			offering(approver, ending.signal, (device, decline) => {
				camera.stop();
				const deny = async () => {
					await decline();
					go("#/devices");
				};
				result.replaceChildren(compare(approver, device, deny));
				result.querySelector("h1")?.focus();
			}),
			el(
				"details",
				{ class: "card details" },
				el("summary", null, texts.devices.otherWay),
				el("p", { class: "hint" }, texts.devices.otherWayLead),
				form,
			),
		),
	);
	const dispose = () => {
		ending.abort();
		camera.stop();
	};
	return { title, element: result, dispose };
}

/**
 * The link that the new device opens.
 * @param {import('../core/approver.js').Approver} approver
 * @param {AbortSignal} signal
 * @param {(device: NewDevice, decline: () => Promise<void>) => void} found
 */
function offering(approver, signal, found) {
	const card = el("div", { class: "card card-body enrol" }, waiting());
	const show = async () => {
		try {
			const offer = await approver.inviteDevice();
			if (signal.aborted) return;
			const { link, expiresAt } = offer;
			fill(
				card,
				qrView(link, texts.devices.qrLabel),
				copyField(link, texts.devices.offerLink),
				expiring(expiresAt, texts.enrol.renew, show),
				waitingLine(texts.devices.offerWaiting),
			);
			const device = await offer.device(signal);
			if (device && !signal.aborted) found(device, offer.decline);
		} catch (thrown) {
			fill(
				card,
				note("bad", errorText(thrown)),
				button(texts.tryAgain, { on: show }),
			);
		}
	};
	show();
	return card;
}

/**
 * @param {import('../core/approver.js').Approver} approver
 * @param {NewDevice} device
 * @param {() => Promise<void>} [decline]
 */
function compare(approver, device, decline) {
	const place = el("div", null);
	const no = button(texts.devices.deny);
	if (decline) no.addEventListener("click", () => busy(no, place, decline));
	const deny = decline ? no : linkButton(texts.devices.deny, "#/devices");
	const result = el("div", null);
	const add = button(texts.devices.confirm, {
		kind: "primary",
		on: () =>
			busy(
				add,
				place,
				async () => {
					const problems = await approver.addDevice(device);
					history.replaceState(null, "", "#/device");
					result.replaceChildren(added(device, problems));
					result.querySelector("h1")?.focus();
				},
				texts.devices.adding,
			),
	});
	result.append(
		page(
			texts.devices.compareTitle,
			{
				lead: device.digits
					? texts.devices.compareDigits
					: texts.devices.compareText,
			},
			el(
				"div",
				{ class: "card card-body" },
				facts([
					[
						texts.devices.name,
						el("strong", { class: "compare" }, markedName(device.name)),
					],
					device.digits
						? [
								texts.devices.digits,
								el("code", { class: "compare" }, device.digits),
							]
						: [
								texts.devices.id,
								el("code", { class: "compare" }, device.deviceId),
							],
				]),
				place,
				el("div", { class: "row" }, settling(add), deny),
			),
		),
	);
	return result;
}

/**
 * @param {NewDevice} device
 * @param {Problem[]} problems
 */
function added(device, problems) {
	return el(
		"div",
		{ class: "card empty" },
		el("div", { class: "sign good" }, icon("check")),
		el("h1", { tabindex: "-1" }, texts.devices.addedDone(device.name)),
		el("p", null, texts.devices.addedText),
		problems.map(problemNote),
		linkButton(texts.devices.done, "#/devices", "primary"),
	);
}
