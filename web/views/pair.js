// Pairing with an agent: by its link, by camera, or by its short code with digits to compare.

import { parseOperators } from "../core/operators.js";
import { texts } from "../texts.js";
import { cameraReader } from "../ui/camera.js";
import { el, fill } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { linkArgs } from "../ui/links.js";
import { markedName, visibleText } from "../ui/marked.js";
import {
	busy,
	button,
	errorText,
	facts,
	field,
	linkButton,
	note,
	page,
	segments,
	waiting,
} from "../ui/parts.js";
import { settling } from "../ui/settle.js";
import { agentName } from "../ui/who.js";

/** @typedef {import('../core/types.js').Agent} Agent */
/** @typedef {import('../core/types.js').Comparing} Comparing */

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {import('../ui/view.js').View}
 */
export function view(context) {
	const { approver, args } = context;
	const title = texts.pair.title;
	const element = el("div", null);
	let stop = () => {};
	let isLeft = false;
	/** @type {Comparing | null} */
	let open = null;
	const done = (/** @type {Agent} */ agent) => {
		stop();
		open = null;
		// The link has served, and its secret need not stay in the address.
		history.replaceState(null, "", "#/pair");
		element.replaceChildren(paired(agent));
		element.querySelector("h1")?.focus();
	};
	// Anything but a yes ends a pairing by code, also leaving.
	const dispose = () => {
		isLeft = true;
		stop();
		void open?.abort().catch(() => undefined);
	};
	if (args.length > 0) {
		element.replaceChildren(waiting());
		const back = { href: "#/agents", text: texts.agents.title };
		approver
			.readPairingLink(`#/pair/${args.join("/")}`)
			.then(
				(offer) => element.replaceChildren(fromLink(offer, done)),
				(thrown) =>
					element.replaceChildren(
						page(
							title,
							{ back },
							note("bad", errorText(thrown)),
							linkButton(texts.tryAgain, "#/pair"),
						),
					),
			)
			.then(() => element.querySelector("h1")?.focus());
		return { title, element, dispose };
	}
	const openLink = (/** @type {string} */ text) => {
		const link = linkArgs(text, "pair");
		if (link) context.go(`#/pair/${link}`);
		return link !== null;
	};
	const begun = (/** @type {Comparing} */ comparing) => {
		open = comparing;
		if (isLeft) return dispose();
		const ended = () => {
			open = null;
		};
		element.replaceChildren(compare(comparing, done, ended));
		element.querySelector("h1")?.focus();
	};
	const choice = el("div", { class: "stack" });
	const ways = {
		// Another kind of link is refused there, in words.
		link: () =>
			linkForm(async (text) => {
				if (!openLink(text)) await approver.readPairingLink(text);
			}),
		camera: () => {
			const reader = cameraReader(openLink);
			stop = reader.stop;
			return reader.element;
		},
		code: () =>
			codeForm(async (text, operators) =>
				begun(await approver.pairByCode(text, operators)),
			),
	};
	const choose = (/** @type {keyof typeof ways} */ way) => {
		stop();
		fill(choice, ways[way]());
	};
	const switcher = segments(
		texts.pair.how,
		[
			["link", texts.pair.byLink],
			["camera", texts.pair.byCamera],
			["code", texts.pair.byCode],
		],
		"link",
		choose,
	);
	choose("link");
	element.replaceChildren(
		page(
			title,
			{
				lead: texts.pair.lead,
				back: { href: "#/agents", text: texts.agents.title },
			},
			el("div", { class: "card card-body" }, switcher, choice),
		),
	);
	return { title, element, dispose };
}

/** @param {Agent} agent */
function paired(agent) {
	const title = texts.pair.done(agentName(agent));
	return el(
		"div",
		{ class: "card empty" },
		el("div", { class: "sign good" }, icon("check")),
		el("h1", { tabindex: "-1" }, title),
		el("p", null, texts.pair.doneText),
		el(
			"div",
			{ class: "row" },
			linkButton(
				texts.pair.toAgent,
				`#/agents/${encodeURIComponent(agent.enforcerId)}`,
			),
			linkButton(texts.join.toInbox, "#/inbox", "primary"),
		),
	);
}

/**
 * The enforcer that offers: its id first, which the link proves; then its label, which the gateway
 * says.
 * @param {{ enforcerId: string, label: string | null }} offer
 */
function whoOffers({ enforcerId, label }) {
	return facts([
		[
			texts.pair.agentId,
			el("code", { class: "compare" }, markedName(enforcerId)),
		],
		label !== null &&
			label !== enforcerId && [
				texts.pair.label,
				el("span", null, markedName(label)),
			],
	]);
}

/**
 * The consent that replacing a known agent's key needs.
 * @param {import('../core/types.js').OfferStanding} standing
 * @param {HTMLButtonElement} go what it makes usable
 */
function replacement(standing, go) {
	const box = el("input", { type: "checkbox" });
	if (standing !== "otherKey")
		return {
			box,
			element: standing === "known" ? note("info", texts.pair.known) : null,
		};
	go.disabled = true;
	box.addEventListener("change", () => {
		go.disabled = !box.checked;
	});
	const element = el(
		"div",
		{ class: "stack" },
		note(
			"bad",
			el("strong", null, texts.pair.otherKeyTitle),
			el("p", null, texts.pair.otherKeyText),
		),
		el("label", { class: "radio" }, box, el("span", null, texts.pair.replace)),
	);
	return { box, element };
}

/**
 * @param {import('../core/types.js').PairingOffer} offer
 * @param {(agent: Agent) => void} done
 */
function fromLink(offer, done) {
	const place = el("div", null);
	const operators = operatorsField();
	const team = teamField(offer.teams);
	const accept = () =>
		offer.accept(box.checked, operators.read(), team?.read() ?? null);
	const go = button(texts.pair.action, {
		kind: "primary",
		on: () =>
			busy(go, place, async () => done(await accept()), texts.pair.pairing),
	});
	const { box, element } = replacement(offer.standing, go);
	return page(
		texts.pair.opened,
		{},
		el(
			"div",
			{ class: "card card-body" },
			whoOffers(offer),
			el("p", null, texts.pair.openedText),
			element,
			team?.element,
			operators.element,
			place,
			el(
				"div",
				{ class: "row" },
				settling(go),
				linkButton(texts.pair.notNow, "#/inbox", "plain"),
			),
		),
	);
}

/**
 * An owner may pair the agent with a team.
 * @param {import('../core/types.js').TeamState[]} teams
 */
function teamField(teams) {
	if (teams.length === 0) return null;
	const select = el(
		"select",
		{ class: "input" },
		el("option", { value: "" }, texts.pair.onlyMe),
		teams.map(({ teamId, name }) =>
			el("option", { value: teamId }, visibleText(name)),
		),
	);
	return {
		element: field(texts.pair.team, select, texts.pair.teamHint),
		read: () => teams.find(({ teamId }) => teamId === select.value) ?? null,
	};
}

/** Asks who works with the agent; without an answer nothing is said about it. */
function operatorsField() {
	const input = el("input", {
		class: "input",
		autocomplete: "off",
		autocapitalize: "none",
		spellcheck: "false",
	});
	const nobody = el("input", { type: "checkbox" });
	nobody.addEventListener("change", () => {
		input.disabled = nobody.checked;
	});
	const element = el(
		"div",
		{ class: "stack" },
		field(texts.pair.operators, input, texts.pair.operatorsHint),
		el(
			"label",
			{ class: "radio" },
			nobody,
			el("span", null, texts.pair.nobody),
		),
	);
	const read = () => (nobody.checked ? [] : parseOperators(input.value));
	return { element, read };
}

/** @param {(text: string) => Promise<void>} open */
function linkForm(open) {
	const input = el("input", {
		class: "input",
		autocomplete: "off",
		spellcheck: "false",
		required: true,
		placeholder: "https://…/#/pair/…",
	});
	return form(
		field(texts.pair.linkField, input, texts.pair.linkHint),
		texts.pair.reading,
		() => open(input.value.trim()),
	);
}

/** @param {(text: string, operators: string[] | null) => Promise<void>} begin */
function codeForm(begin) {
	const input = el("input", {
		class: "input code",
		autocomplete: "off",
		autocapitalize: "characters",
		spellcheck: "false",
		maxlength: 12,
		required: true,
		placeholder: "XXXX-XXXX",
	});
	const operators = operatorsField();
	return form(
		el(
			"div",
			{ class: "stack" },
			field(texts.pair.codeField, input, texts.pair.codeHint),
			operators.element,
		),
		texts.pair.comparing,
		async () => begin(input.value.trim(), operators.read()),
	);
}

/**
 * @param {HTMLElement} control
 * @param {string} busyText
 * @param {() => Promise<void>} work
 */
function form(control, busyText, work) {
	const place = el("div", null);
	const go = button(texts.pair.action, { kind: "primary", type: "submit" });
	const submit = (/** @type {Event} */ event) => {
		event.preventDefault();
		busy(go, place, work, busyText);
	};
	return el("form", { class: "stack", on: { submit } }, control, place, go);
}

/**
 * @param {Comparing} comparing
 * @param {(agent: Agent) => void} done
 * @param {() => void} ended it was aborted
 */
function compare(comparing, done, ended) {
	const place = el("div", null);
	const same = button(texts.pair.same, {
		kind: "primary",
		on: () =>
			busy(
				same,
				place,
				async () => done(await comparing.confirm(box.checked)),
				texts.pair.pairing,
			),
	});
	const { box, element } = replacement(comparing.standing, same);
	const differ = button(texts.pair.differ, {
		kind: "bad-quiet",
		on: () =>
			busy(differ, place, async () => {
				choice.remove();
				fill(place, note("warn", texts.pair.aborted));
				ended();
				await comparing.abort();
			}),
	});
	const choice = el(
		"div",
		{ class: "stack" },
		element,
		el("div", { class: "row" }, settling(same), differ),
	);
	return page(
		texts.pair.compareTitle,
		{ lead: texts.pair.compareText },
		el(
			"div",
			{ class: "card card-body" },
			whoOffers(comparing),
			el(
				"p",
				{ class: "digits" },
				comparing.digits.split(" ").map((group) => el("span", null, group)),
			),
			place,
			choice,
		),
	);
}
