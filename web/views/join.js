// Joining with an invitation, and bringing this device into force.

import { Approver } from "../core/approver.js";
import { texts } from "../texts.js";
import { toast } from "../ui/announce.js";
import { el, fill } from "../ui/dom.js";
import { expiring, waitingLine } from "../ui/expiring.js";
import {
	busy,
	button,
	copyField,
	empty,
	errorText,
	facts,
	field,
	linkButton,
	note,
	page,
	waiting,
} from "../ui/parts.js";
import { qrView } from "../ui/qrview.js";

/** A name that a person recognises in a list. */
export function suggestedName() {
	const agent = navigator.userAgent;
	const [browser] = [
		["Firefox/", "Firefox"],
		["Edg/", "Edge"],
		["Chrome/", "Chrome"],
		["Safari/", "Safari"],
	]
		.filter(([part]) => agent.includes(part))
		.map(([, name]) => name);
	const [system] = [
		["Android", "Android"],
		["iPhone", "iPhone"],
		["iPad", "iPad"],
		["Windows", "Windows"],
		["Mac OS", "Mac"],
		["Linux", "Linux"],
	]
		.filter(([part]) => agent.includes(part))
		.map(([, name]) => name);
	return texts.join.defaultName(
		browser ?? texts.join.aBrowser,
		system ?? texts.join.aComputer,
	);
}

/**
 * @param {import('../ui/view.js').Context} context
 * @returns {import('../ui/view.js').View}
 */
export function view(context) {
	const code = context.args.join("/");
	const ending = new AbortController();
	const dispose = () => ending.abort();
	if (context.approver) {
		const element = code
			? alreadyJoined(context.approver)
			: enrolment(context, context.approver, ending.signal);
		return {
			title: code ? texts.join.title : texts.enrol.title,
			element,
			dispose,
		};
	}
	const element = el(
		"div",
		null,
		joinForm(context, code, (approver) => {
			context.joined(approver);
			context.go("#/join", true);
		}),
	);
	return { title: texts.join.title, element, dispose };
}

/** @param {Approver} approver */
export function alreadyJoined(approver) {
	return el(
		"div",
		null,
		empty(
			"check",
			texts.join.already(approver.identity.approverId),
			texts.join.alreadyHint,
			el(
				"div",
				{ class: "row" },
				linkButton(texts.join.toSettings, "#/settings"),
				linkButton(texts.join.toInbox, "#/inbox", "primary"),
			),
		),
	);
}

/**
 * @param {import('../ui/view.js').Context} context
 * @param {string} code
 * @param {(approver: Approver) => void} done
 */
function joinForm(context, code, done) {
	const name = el("input", {
		class: "input",
		value: suggestedName(),
		maxlength: 64,
		required: true,
		autocomplete: "off",
	});
	const place = el("div", null);
	const go = button(texts.join.action, { kind: "primary", type: "submit" });
	const submit = (/** @type {Event} */ event) => {
		event.preventDefault();
		busy(
			go,
			place,
			async () => {
				const joined = await Approver.join(
					code,
					name.value.trim(),
					context.place,
				);
				if (joined.role === "approver") done(joined.approver);
				else fill(form, notForApprovers(joined.apiKey));
			},
			texts.join.joining,
		);
	};
	const form = el(
		"form",
		{ class: "card card-body", on: { submit } },
		field(texts.join.name, name, texts.join.nameHint),
		place,
		go,
	);
	return page(texts.join.title, { lead: texts.join.lead }, form);
}

/** @param {string} key */
function notForApprovers(key) {
	const { title, text, key: label } = texts.join.notApprover;
	return [note("warn", el("strong", null, title), text), copyField(key, label)];
}

/**
 * @param {import('../ui/view.js').Context} context
 * @param {Approver} approver
 * @param {AbortSignal} signal
 */
function enrolment(context, approver, signal) {
	const element = el("div", null, waiting());
	const show = async () => {
		try {
			const state = await approver.enrol();
			if (signal.aborted) return;
			if (state.state === "inForce") finish(texts.join.done);
			else
				element.replaceChildren(
					state.state === "waiting"
						? asking(state, show)
						: confirming(state, show),
				);
		} catch (thrown) {
			element.replaceChildren(
				page(
					texts.enrol.title,
					{},
					note("bad", errorText(thrown)),
					button(texts.tryAgain, { on: show }),
				),
			);
		}
	};
	const finish = (/** @type {string} */ text) => {
		context.enrolled();
		toast(text);
		context.go("#/inbox", true);
	};
	show()
		.then(() => approver.untilInForce(signal))
		.then((inForce) => {
			if (inForce && !signal.aborted) finish(texts.enrol.done);
		})
		.catch(() => {
			// The attempt to enrol has shown why.
		});
	return element;
}

/**
 * The device whose link was opened shows this one.
 * @param {Extract<import('../core/types.js').Enrolment, { state: 'confirming' }>} state
 * @param {() => void} renew
 */
function confirming({ name, digits, validUntil }, renew) {
	return page(
		texts.enrol.confirmTitle,
		{ lead: texts.enrol.confirmLead },
		el(
			"div",
			{ class: "card card-body enrol" },
			facts([
				[texts.enrol.name, el("strong", { class: "compare" }, name)],
				[texts.enrol.digits, el("code", { class: "compare" }, digits)],
			]),
			expiring(validUntil, texts.enrol.renew, renew),
			waitingLine(texts.enrol.waiting),
		),
	);
}

/**
 * @param {Extract<import('../core/types.js').Enrolment, { state: 'waiting' }>} state
 * @param {() => void} renew
 */
function asking(state, renew) {
	const code = qrView(state.link, texts.enrol.qrLabel);
	return page(
		texts.enrol.title,
		{ lead: texts.enrol.lead },
		el(
			"div",
			{ class: "card card-body enrol" },
			code ?? note("info", texts.enrol.noQr),
			facts([
				[texts.enrol.name, el("strong", null, state.name)],
				[texts.enrol.id, el("code", null, state.deviceId)],
			]),
			copyField(state.link, texts.enrol.link),
			expiring(state.validUntil, texts.enrol.renew, renew),
			waitingLine(texts.enrol.waiting),
		),
		el("p", { class: "hint" }, texts.enrol.terminal),
	);
}
