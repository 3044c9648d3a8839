// Adding a new device: its link, then name and id to compare.

import { texts } from "../texts.js";
import { cameraReader } from "../ui/camera.js";
import { el } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { linkArgs } from "../ui/links.js";
import { markedName } from "../ui/marked.js";
import {
	busy,
	button,
	errorText,
	facts,
	field,
	linkButton,
	note,
	page,
	waiting,
} from "../ui/parts.js";
import { settling } from "../ui/settle.js";

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
	const element = page(
		title,
		{ lead: texts.devices.addLead, back },
		el(
			"form",
			{ class: "card card-body", on: { submit } },
			field(texts.devices.linkField, input, texts.devices.linkHint),
			place,
			el("div", { class: "row" }, next),
			camera.element,
		),
	);
	return { title, element, dispose: camera.stop };
}

/**
 * @param {import('../core/approver.js').Approver} approver
 * @param {NewDevice} device
 */
function compare(approver, device) {
	const place = el("div", null);
	const result = el("div", null);
	const add = button(texts.devices.confirm, {
		kind: "primary",
		on: () =>
			busy(
				add,
				place,
				async () => {
					await approver.addDevice(device);
					history.replaceState(null, "", "#/device");
					result.replaceChildren(added(device));
					result.querySelector("h1")?.focus();
				},
				texts.devices.adding,
			),
	});
	result.append(
		page(
			texts.devices.compareTitle,
			{ lead: texts.devices.compareText },
			el(
				"div",
				{ class: "card card-body" },
				facts([
					[
						texts.devices.name,
						el("strong", { class: "compare" }, markedName(device.name)),
					],
					[texts.devices.id, el("code", { class: "compare" }, device.deviceId)],
				]),
				place,
				el(
					"div",
					{ class: "row" },
					settling(add),
					linkButton(texts.devices.deny, "#/devices"),
				),
			),
		),
	);
	return result;
}

/** @param {NewDevice} device */
function added(device) {
	return el(
		"div",
		{ class: "card empty" },
		el("div", { class: "sign good" }, icon("check")),
		el("h1", { tabindex: "-1" }, texts.devices.addedDone(device.name)),
		el("p", null, texts.devices.addedText),
		linkButton(texts.devices.done, "#/devices", "primary"),
	);
}
