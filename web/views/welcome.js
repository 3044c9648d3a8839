// The view of a browser that has not joined.

import { Approver } from "../core/approver.js";
import { Problem } from "../core/problem.js";
import { problemText } from "../texts/problems.js";
import { texts } from "../texts.js";
import { el, fill } from "../ui/dom.js";
import { brand, icon } from "../ui/icons.js";
import { linkArgs } from "../ui/links.js";
import { button, field, linkButton, note } from "../ui/parts.js";

/**
 * @param {import('../ui/view.js').Context} context
 * @returns {import('../ui/view.js').View}
 */
export function view(context) {
	const input = el("input", {
		class: "input",
		placeholder: texts.welcome.placeholder,
		autocomplete: "off",
		spellcheck: "false",
	});
	const place = el("div", null);
	const submit = (/** @type {Event} */ event) => {
		event.preventDefault();
		const code = linkArgs(input.value, "join");
		if (code) context.go(`#/join/${code}`);
		else fill(place, note("bad", problemText(Problem.of("invitation", {}))));
	};
	const signIn = el("div", { class: "stack" });
	const next = button(texts.welcome.action, {
		kind: "primary",
		type: "submit",
	});
	Approver.signInHost(context.place)
		.then((host) => {
			if (!host) return;
			fill(
				signIn,
				linkButton(texts.signIn.action(host), "#/signin", "primary"),
				el("p", { class: "hint" }, texts.signIn.or),
			);
			next.classList.remove("primary");
		})
		.catch(() => {
			// An invitation may do. Signing in needs the gateway, which cannot be reached.
		});
	const points = texts.welcome.points.map(([name, text]) =>
		el(
			"li",
			{ class: "point" },
			icon(/** @type {import('../ui/icons.js').IconName} */ (name)),
			el("span", null, text),
		),
	);
	const element = el(
		"div",
		{ class: "page" },
		el("div", { class: "welcome-brand" }, brand(), texts.product),
		el("h1", { class: "display", tabindex: "-1" }, texts.welcome.title),
		el("p", { class: "welcome-lead" }, texts.welcome.lead),
		(context.args[0] === "pair" || context.args[0] === "device") &&
			note("info", texts.welcome.joinFirst),
		signIn,
		el(
			"form",
			{ class: "card card-body", on: { submit } },
			field(texts.welcome.field, input, texts.welcome.hint),
			place,
			next,
		),
		el("ul", { class: "points" }, points),
	);
	return { title: texts.product, element };
}
