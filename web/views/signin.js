// Signing in with the gateway's sign-in service: before the person goes there, and when they come
// back.

import { Approver } from "../core/approver.js";
import { texts } from "../texts.js";
import { toast } from "../ui/announce.js";
import { el, fill } from "../ui/dom.js";
import {
	busy,
	button,
	errorText,
	field,
	linkButton,
	note,
	page,
	waiting,
} from "../ui/parts.js";
import { alreadyJoined, suggestedName } from "./join.js";

/**
 * @param {import('../ui/view.js').Context} context
 * @returns {import('../ui/view.js').View}
 */
export function view(context) {
	const { title } = texts.signIn;
	const answer = context.answer();
	if (answer !== null) {
		const element = el(
			"div",
			null,
			page(texts.signIn.finishing, {}, waiting()),
		);
		finish(context, answer).catch((thrown) => {
			fill(
				element,
				page(
					title,
					{},
					note("bad", errorText(thrown)),
					el(
						"div",
						{ class: "row" },
						button(texts.tryAgain, {
							kind: "primary",
							on: () => context.go("#/signin"),
						}),
					),
				),
			);
			element.querySelector("h1")?.focus();
		});
		return { title, element };
	}
	if (context.approver && !context.approver.isSignIn)
		return { title, element: alreadyJoined(context.approver) };
	return { title, element: form(context) };
}

/**
 * @param {import('../ui/view.js').Context} context
 * @param {URLSearchParams} answer
 */
async function finish(context, answer) {
	const { isNew } = await Approver.finishSignIn(answer, context.place);
	if (!isNew) {
		toast(texts.signIn.done);
		context.go("#/inbox", true);
		return;
	}
	const approver = await Approver.open(context.place);
	if (approver) context.joined(approver);
	context.go("#/join", true);
}

/** @param {import('../ui/view.js').Context} context */
function form(context) {
	const { approver } = context;
	const name = el("input", {
		class: "input",
		value: suggestedName(),
		maxlength: 64,
		required: true,
		autocomplete: "off",
	});
	const place = el("div", null);
	const go = button(approver ? texts.signIn.again : texts.signIn.next, {
		kind: "primary",
		type: "submit",
	});
	const submit = (/** @type {Event} */ event) => {
		event.preventDefault();
		busy(
			go,
			place,
			async () => {
				location.assign(
					await Approver.beginSignIn(
						approver ? null : name.value.trim(),
						context.place,
					),
				);
			},
			texts.signIn.opening,
		);
	};
	const lead = approver
		? texts.signIn.againLead(approver.identity.approverId)
		: texts.signIn.lead;
	return page(
		texts.signIn.title,
		{ lead },
		el(
			"form",
			{ class: "card card-body", on: { submit } },
			!approver && field(texts.join.name, name, texts.join.nameHint),
			place,
			el(
				"div",
				{ class: "row" },
				go,
				!approver && linkButton(texts.cancel, "#/welcome"),
			),
		),
	);
}
