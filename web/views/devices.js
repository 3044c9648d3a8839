// The devices of this approver, as this one judges them.

import { texts } from "../texts.js";
import { toast } from "../ui/announce.js";
import { ago } from "../ui/clock.js";
import { confirmDialog } from "../ui/dialog.js";
import { el, fill } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { visibleText } from "../ui/marked.js";
import {
	busy,
	button,
	field,
	linkButton,
	note,
	page,
	problemNote,
	waiting,
} from "../ui/parts.js";

/** @typedef {import('../core/problem.js').Problem} Problem */
/** @typedef {import('../core/types.js').Device} Device */

/** @type {Record<Device['standing'], string>} */
const KINDS = {
	own: "accent",
	trusted: "good",
	unverified: "warn",
	revoked: "bad",
	ended: "bad",
};

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {import('../ui/view.js').View}
 */
export function view({ approver, enrolled }) {
	const content = el("div", { class: "stack" }, waiting());
	const load = async (/** @type {Problem[]} */ problems = []) => {
		try {
			const devices = await approver.devices();
			fill(content, problems.map(problemNote), show(devices));
		} catch (thrown) {
			fill(
				content,
				[...problems, thrown].map(problemNote),
				button(texts.tryAgain, { on: () => load(problems) }),
			);
		}
	};

	const show = (/** @type {Device[]} */ devices) => {
		const names = new Map(
			devices.map((device) => [device.deviceId, nameOf(device)]),
		);
		const former = devices.filter((device) => !device.isInForce);
		const entry = (/** @type {Device} */ device) =>
			deviceEntry(
				device,
				names,
				() => askToRename(device),
				() => askToRevoke(device, devices),
			);
		return [
			devices.some((device) => device.standing === "unverified") &&
				note(
					"warn",
					el("strong", null, texts.devices.unverifiedTitle),
					texts.devices.unverifiedText,
				),
			el(
				"div",
				{ class: "card" },
				el(
					"ul",
					{ class: "list" },
					devices.filter((device) => device.isInForce).map(entry),
				),
			),
			former.length > 0 &&
				el(
					"details",
					{ class: "card details" },
					el("summary", null, texts.devices.former(former.length)),
					el("ul", { class: "list" }, former.map(entry)),
				),
		];
	};

	const askToRename = (/** @type {Device} */ device) => {
		const input = el("input", {
			class: "input",
			value: nameOf(device),
			maxlength: 64,
			autocomplete: "off",
		});
		confirmDialog(
			{
				title: texts.devices.renameTitle(visibleText(nameOf(device))),
				text: [texts.devices.renameText, field(texts.devices.name, input)],
				action: texts.devices.save,
			},
			async (place, control) => {
				let isDone = false;
				await busy(control, place, async () => {
					await approver.renameDevice(device.deviceId, input.value.trim());
					isDone = true;
				});
				if (isDone) load();
				return isDone;
			},
		);
	};

	const askToRevoke = (
		/** @type {Device} */ device,
		/** @type {Device[]} */ listed,
	) => {
		const name = visibleText(nameOf(device));
		const added = listed.filter(
			(other) =>
				other.addedBy === device.deviceId && other.standing === "trusted",
		);
		confirmDialog(
			{
				title: texts.devices.revokeTitle(name),
				text: [
					device.standing === "own"
						? texts.devices.revokeOwnText
						: texts.devices.revokeText,
					el("code", null, device.deviceId),
					...added.map((other) =>
						texts.devices.addedStays(
							visibleText(nameOf(other)),
							other.deviceId,
						),
					),
				],
				action: texts.devices.revoke,
				kind: "bad",
			},
			async (place, control) => {
				let isDone = false;
				/** @type {Problem[]} */
				let problems = [];
				await busy(control, place, async () => {
					problems = await approver.revokeDevice(device.deviceId);
					isDone = true;
				});
				if (!isDone) return false;
				toast(texts.devices.revoked(name));
				if (device.standing === "own") enrolled();
				load(problems);
				return true;
			},
		);
	};

	load();
	const actions = [
		linkButton(texts.devices.add, "#/device", "primary small", "plus"),
	];
	return {
		title: texts.devices.title,
		element: page(
			texts.devices.title,
			{ actions, lead: texts.devices.lead },
			content,
		),
	};
}

/** @param {Device} device */
function nameOf({ nickname, name }) {
	return nickname ?? name;
}

/**
 * @param {Device} device
 * @param {Map<string, string>} names
 * @param {() => void} rename
 * @param {() => void} revoke
 */
function deviceEntry(device, names, rename, revoke) {
	const by =
		device.addedBy === device.deviceId
			? texts.devices.itself
			: device.addedBy &&
				visibleText(names.get(device.addedBy) ?? device.addedBy);
	return el(
		"li",
		null,
		el(
			"div",
			{ class: "entry" },
			el(
				"span",
				{
					class: [
						"sign",
						device.standing === "unverified"
							? "warn"
							: !device.isInForce && "plain",
					],
				},
				icon("devices"),
			),
			el(
				"div",
				{ class: "entry-main" },
				el(
					"div",
					{ class: "row tight-row" },
					el("span", { class: "entry-title" }, visibleText(nameOf(device))),
					el(
						"span",
						{ class: `chip ${KINDS[device.standing]}` },
						texts.devices.standings[device.standing],
					),
				),
				device.nickname !== null &&
					el(
						"div",
						{ class: "entry-line" },
						texts.devices.joinedAs(visibleText(device.name)),
					),
				el("div", { class: "entry-line" }, el("code", null, device.deviceId)),
				el(
					"div",
					{ class: "entry-line" },
					device.revokedAt
						? el(
								"span",
								null,
								`${texts.devices.revokedAt} `,
								ago(device.revokedAt),
							)
						: device.addedAt &&
								el(
									"span",
									null,
									`${texts.devices.added} `,
									ago(device.addedAt),
									by && ` ${texts.devices.by} ${by}`,
								),
				),
			),
			device.isInForce && [
				button(texts.devices.rename, {
					kind: "small",
					on: rename,
					"aria-label": `${texts.devices.rename} ${visibleText(nameOf(device))}`,
				}),
				button(texts.devices.revoke, {
					kind: "small bad-quiet",
					on: revoke,
					"aria-label": `${texts.devices.revoke} ${visibleText(nameOf(device))}`,
				}),
			],
		),
	);
}
