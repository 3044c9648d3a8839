// One request, complete, and the decision about it.

import { Problem } from "../core/problem.js";
import { texts } from "../texts.js";
import { announce, toast } from "../ui/announce.js";
import { closeDialogs, isDialogOpen } from "../ui/dialog.js";
import { el, fill } from "../ui/dom.js";
import { finder } from "../ui/finder.js";
import { icon } from "../ui/icons.js";
import {
	copyButton,
	emptyPage,
	facts,
	iconButton,
	linkButton,
	waiting,
} from "../ui/parts.js";
import { saveFile } from "../ui/save.js";
import { artifactOf, byUrgency, kindOf, verdictText } from "../ui/summary.js";
import { contentView } from "./content.js";
import { decisionBar } from "./decide.js";
import { decisionFacts, outcomeBar } from "./outcome.js";
import { itemFacts, requestHead, unopened } from "./requestbody.js";
import { strangeDevices, warnings } from "./warnings.js";

/** @typedef {import('../core/types.js').Item} Item */
/** @typedef {import('../core/types.js').Artifact} Artifact */

/**
 * Nothing can be decided before it is shown, nor by the second half of a double click on what stood
 * here before.
 */
const SETTLE_MS = 500;
/** Entries of the history that are looked through at once. */
const PAGE = 200;

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {Promise<import('../ui/view.js').View>}
 */
export async function view({ approver, args, go }) {
	const [requestId, wanted] = args;
	const element = el("div", { class: "page request" });
	let isSettled = false;
	let turn = 0;
	/** @type {ReturnType<typeof setTimeout> | undefined} */
	let timer;
	/** @type {Item | null} */
	let shown = null;
	/** @type {import('./content.js').Content | null} */
	let content = null;
	/** @type {ReturnType<typeof decisionBar> | null} */
	let bar = null;
	const side = el("div", { class: "request-side" });
	const details = el("div", null);
	/** @type {Item | null} */
	let past = null;
	const find = finder(() => content?.searchable ?? null);
	const findButton = iconButton(texts.request.find, "search", find.open);

	const neighbour = (/** @type {number} */ step) => {
		const waits = approver.inbox.value.items
			.filter(
				(item) => item.state === "pending" || item.requestId === requestId,
			)
			.sort(byUrgency);
		const at = waits.findIndex((item) => item.requestId === requestId);
		const other = at >= 0 ? waits[at + step] : waits[0];
		return other ? `#/request/${encodeURIComponent(other.requestId)}` : null;
	};

	const update = () => {
		const item = approver.item(requestId) ?? past;
		if (item === shown && shown) return;
		if (!item) {
			if (!shown)
				fill(element, approver.inbox.value.isLoaded ? gone() : waiting());
			return;
		}
		showDetails(item);
		if (!shown || shown.content !== item.content) open(item);
		if (
			shown &&
			shown.state !== item.state &&
			item.state !== "pending" &&
			item.state !== "deciding"
		)
			announce(stateText(item));
		shown = item;
		showSide(item);
	};

	const showDetails = (/** @type {Item} */ item) =>
		fill(
			details,
			facts([
				...(content?.facts ?? []),
				...itemFacts(item, artifactOf(item)),
				...decisionFacts(item.decision, artifactOf(item)),
			]),
		);

	const open = (/** @type {Item} */ item) => {
		const artifact = artifactOf(item);
		content?.dispose();
		[content, bar, isSettled] = [null, null, false];
		findButton.hidden = true;
		turn += 1;
		closeDialogs();
		fill(side);
		const isLate =
			element.isConnected && document.activeElement === document.body;
		// The field in which somebody may be typing stays where it is, and keeps the focus.
		if (find.element.parentElement !== element)
			fill(element, find.element, side);
		for (const child of [...element.children])
			if (child !== find.element && child !== side) child.remove();
		find.element.before(
			requestHead(item, artifact, {
				back: backLink(),
				controls: [findButton],
			}),
		);
		// It came after the view: the focus waits for it.
		if (isLate) element.querySelector("h1")?.focus({ preventScroll: true });
		if (artifact) showArtifact(artifact, item);
		else {
			side.before(
				unopened(item),
				el("section", { class: "card card-body" }, details),
			);
			settle();
		}
	};

	const showArtifact = async (
		/** @type {Artifact} */ artifact,
		/** @type {Item} */ item,
	) => {
		const mine = turn;
		for (const warning of [strangeDevices(item), warnings(artifact)])
			if (warning) side.before(warning);
		const made = await contentView(artifact);
		if (mine !== turn) return made.dispose();
		content = made;
		showDetails(shown ?? item);
		if (item.state !== "pending") made.end();
		element.classList.toggle("roomy", made.wide);
		findButton.hidden = made.searchable === null;
		side.before(
			made.element,
			el(
				"details",
				{ class: "card details" },
				el("summary", null, texts.request.details),
				el(
					"div",
					{ class: "card-body" },
					details,
					el(
						"div",
						{ class: "row" },
						copyButton(made.text, texts.request.copyContent),
					),
				),
			),
		);
		made.start();
		settle();
	};

	const settle = () => {
		clearTimeout(timer);
		timer = setTimeout(() => {
			isSettled = true;
			bar?.element.removeAttribute("inert");
		}, SETTLE_MS);
	};

	const showSide = (/** @type {Item} */ item) => {
		// The buttons show that it is being sent, and stay if that fails.
		if (item.state === "deciding" && bar) return;
		element.classList.toggle("ended", item.state !== "pending");
		if (item.state !== "pending") {
			bar = null;
			content?.end();
			// The focus must not vanish with the buttons, or with the dialog in which it was
			// decided.
			const hadFocus =
				side.contains(document.activeElement) ||
				document.activeElement === document.body ||
				isDialogOpen();
			closeDialogs();
			const outcome = outcomeBar(
				item,
				item === past ? null : (neighbour(1) ?? neighbour(-1)),
				save,
			);
			fill(side, outcome);
			if (hadFocus && item !== past)
				requestAnimationFrame(() => outcome.focus({ preventScroll: true }));
			return;
		}
		if (bar) return;
		bar = decisionBar(
			item,
			(choice) => approver.decide(item, choice),
			() => content?.answers?.() ?? null,
		);
		bar.element.toggleAttribute("inert", !isSettled);
		// A button of a notification was pressed. It is only marked: nothing was shown then.
		if (wanted === "approve" || wanted === "reject")
			bar.element.classList.add(`wants-${wanted}`);
		fill(side, bar.element);
	};

	const save = async () => {
		const file = await approver.exportDecision(requestId);
		saveFile(file.name, file.text);
		toast(texts.history.saved(file.name));
	};
	const settled = (/** @type {() => void} */ act) => () => {
		if (isSettled && shown?.state === "pending") act();
	};
	if (!approver.item(requestId)) {
		past = await findPast(approver, requestId);
	}
	approver.attend(requestId);
	const end = approver.inbox.subscribe(update);
	const move = (/** @type {number} */ step) => {
		const other = neighbour(step);
		if (other) go(other);
	};
	return {
		title: shown ? kindOf(artifactOf(shown)).label : texts.kinds.other,
		element,
		wide: true,
		keys: {
			a: settled(() => bar?.approve()),
			r: settled(() => bar?.reject()),
			j: () => move(1),
			k: () => move(-1),
			u: () => go("#/inbox"),
			"/": () => {
				if (content?.searchable) find.open();
			},
		},
		dispose: () => {
			end();
			clearTimeout(timer);
			turn += 1;
			approver.attend(null);
			content?.dispose();
		},
	};
}

function backLink() {
	return el(
		"a",
		{ class: "back", href: "#/inbox" },
		icon("back", "small"),
		texts.inbox.title,
	);
}

/**
 * @param {import('../core/approver.js').Approver} approver
 * @param {string} requestId
 * @returns {Promise<Item | null>}
 */
async function findPast(approver, requestId) {
	/** @type {string | null} */
	let before = null;
	for (;;) {
		/** @type {import('../core/types.js').HistoryEntry[]} */
		const entries = await approver.history(before, PAGE).catch(() => []);
		const found = entries.find((one) => one.requestId === requestId);
		if (found)
			return { ...pastItem(found), teamNames: await namesOf(approver) };
		if (entries.length < PAGE) return null;
		before = entries[entries.length - 1].decidedAt;
	}
}

/**
 * For the rules of past requests.
 * @param {import('../core/approver.js').Approver} approver
 */
function namesOf(approver) {
	return approver
		.teams((core, session) => core.teamNames(session))
		.catch(() => ({}));
}

/**
 * A decision of the past, as an item.
 * @param {import('../core/types.js').HistoryEntry} entry
 * @returns {Item}
 */
function pastItem(entry) {
	const {
		requestId,
		state,
		enforcerId,
		label,
		artifactType,
		decision,
		artifact,
	} = entry;
	return {
		requestId,
		state,
		enforcerId,
		label,
		artifactType,
		decision,
		msgId: "",
		isPaired: true,
		artifactHash: artifact?.hash ?? null,
		repoRef: "",
		expiresAt: null,
		receivedAt: null,
		withdrawalReason: null,
		content: artifact
			? { opened: true, artifact }
			: { opened: false, problem: Problem.of("nothingToSave", {}) },
		strangers: [],
		approvalProblem: null,
	};
}

/** @param {Item} item */
function stateText(item) {
	return item.decision
		? `${verdictText(item.decision.verdict, artifactOf(item))}: ${texts.states[item.state]}`
		: texts.states[item.state];
}

function gone() {
	const { title, text, action } = texts.request.gone;
	return emptyPage(
		"inbox",
		title,
		text,
		linkButton(action, "#/inbox", "primary"),
	);
}
