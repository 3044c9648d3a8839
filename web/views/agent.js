// One agent: presence, sessions with snapshots, a prompt to it, its pause and permissions, and the
// end of the pairing.

import { sessionWord } from "../core/sessions.js";
import { texts } from "../texts.js";
import { toast } from "../ui/announce.js";
import { ago, dateTime } from "../ui/clock.js";
import { confirmDialog } from "../ui/dialog.js";
import { el, fill } from "../ui/dom.js";
import { marked, markedName, visibleText } from "../ui/marked.js";
import {
	busy,
	button,
	emptyPage,
	errorText,
	facts,
	field,
	linkButton,
	note,
	page,
	waiting,
} from "../ui/parts.js";
import { isRejectable } from "../ui/selection.js";
import { artifactOf, shortSession } from "../ui/summary.js";
import { agentName } from "../ui/who.js";
import { presenceChip, watchPresence } from "./agents.js";
import { pauseCard, permissionList } from "./permissions.js";
import { followSent } from "./sent.js";

/** @typedef {import('../core/types.js').Agent} Agent */
/** @typedef {import('../core/types.js').Session} Session */

const SESSIONS_MS = 30_000;
/** @type {Record<keyof typeof texts.sessionWords, string>} */
const SESSION_KINDS = {
	waiting: "warn",
	working: "accent",
	idle: "",
	failed: "bad",
	finished: "",
	quiet: "",
};

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {import('../ui/view.js').View}
 */
export function view(context) {
	const { approver, args } = context;
	const find = () =>
		approver.agents.value.find((agent) => agent.enforcerId === args[0]);
	const found = find();
	const back = { href: "#/agents", text: texts.agents.title };
	if (!found) {
		const { title, text, action } = texts.agents.gone;
		return {
			title,
			element: emptyPage(
				"agents",
				title,
				text,
				linkButton(action, "#/agents", "primary"),
			),
		};
	}
	const name = agentName(found);
	const about = el("section", { class: "card card-body" });
	const sessions = el("div", { class: "stack" }, waiting());
	const promptPlace = el("div", null);
	const chip = el("span", null);
	const render = () => {
		const agent = find() ?? found;
		fill(chip, presenceChip(agent));
		fill(about, agentFacts(agent));
	};
	/** @type {Session[]} */
	let known = [];
	const asking = () =>
		approver.inbox.value.items.filter(
			(item) => item.enforcerId === found.enforcerId,
		);
	const showSessions = () => {
		const waiting = new Set(
			asking().map((item) => artifactOf(item)?.sessionId ?? ""),
		);
		fill(
			sessions,
			known.length > 0
				? known.map((one) => sessionCard(one, waiting.has(one.sessionId)))
				: el("p", { class: "quiet" }, texts.agents.noSessions),
		);
	};
	const readSessions = async () => {
		known = await approver.sessions(found.enforcerId);
		showSessions();
	};
	readSessions().then(
		() => fill(promptPlace, promptForm(approver, found, known)),
		(thrown) => {
			fill(sessions, note("warn", errorText(thrown)));
			fill(promptPlace, promptForm(approver, found, []));
		},
	);
	const rejectable = () => asking().filter(isRejectable);
	const pause = pauseCard(approver, found.enforcerId);
	const rejectAll = button(texts.several.rejectAll, {
		kind: "bad-quiet",
		on: async () => {
			const { rejectAllDialog } = await import("./rejectall.js");
			const dialog = rejectAllDialog(approver, name, rejectable());
			dialog.addEventListener("close", pause.render);
		},
	});
	// A request that came or ended changes what its session does.
	let before = "";
	const follow = () => {
		const ids = asking().map(({ requestId }) => requestId);
		rejectAll.hidden = rejectable().length === 0;
		if (ids.join() === before) return;
		before = ids.join();
		// Without news, what was known before is shown.
		void readSessions().catch(() => {});
	};
	const timer = setInterval(() => {
		if (!document.hidden) void readSessions().catch(() => {});
	}, SESSIONS_MS);
	const ends = [
		approver.agents.subscribe(render),
		approver.inbox.subscribe(follow),
		watchPresence(approver),
		() => clearInterval(timer),
	];
	const unpairPlace = el("div", null);
	const unpair = button(texts.agents.unpair, {
		kind: "bad-quiet",
		on: () =>
			busy(unpair, unpairPlace, async () => {
				const teams = await approver.pairedTeams(found.enforcerId);
				askToUnpair(context, found, teams);
			}),
	});
	return {
		title: name,
		element: page(
			name,
			{ back, actions: [chip] },
			about,
			promptPlace,
			pause.element,
			el("h2", { class: "section" }, texts.agents.permissions.title),
			permissionList(approver, found.enforcerId),
			el("h2", { class: "section" }, texts.agents.sessions),
			sessions,
			unpairPlace,
			el("div", { class: "row" }, rejectAll, unpair),
		),
		dispose: () => {
			for (const end of ends) end();
		},
	};
}

/** @param {Agent} agent */
function agentFacts(agent) {
	const { presence } = agent;
	return facts([
		[texts.agents.id, el("code", null, markedName(agent.enforcerId))],
		[texts.agents.paired, dateTime(agent.pairedAt)],
		agent.introducedBy !== null && [
			texts.agents.introducedBy,
			[
				visibleText(agent.introducedBy.name ?? ""),
				" ",
				el("code", null, agent.introducedBy.deviceId),
				agent.introducedBy.isRevoked &&
					el("span", { class: "chip bad" }, texts.devices.standings.revoked),
			],
		],
		presence?.workspaceName
			? [texts.agents.workspace, markedName(presence.workspaceName)]
			: null,
		presence && [texts.agents.how, texts.agents.transports[presence.transport]],
		presence && [texts.agents.seen, ago(presence.lastSeenAt)],
	]);
}

/**
 * @param {Session} session
 * @param {boolean} isWaiting a request of it is open
 */
function sessionCard(session, isWaiting) {
	const word = sessionWord(session, isWaiting, Date.now());
	const hasEnded = word === "finished";
	return el(
		"article",
		{ class: "card" },
		el(
			"div",
			{ class: "card-head" },
			el("h2", { class: "mono clip" }, visibleText(session.sessionId)),
			el(
				"span",
				{ class: ["chip", SESSION_KINDS[word]] },
				texts.sessionWords[word],
			),
		),
		el(
			"div",
			{ class: "card-body" },
			facts([
				session.agentHost !== null && [
					texts.agents.host,
					markedName(session.agentHost),
				],
				session.repoRef !== null && [
					texts.agents.repo,
					markedName(session.repoRef),
				],
				session.startedAt !== null && [
					texts.agents.since,
					dateTime(session.startedAt),
				],
				[
					hasEnded ? texts.agents.ended : texts.agents.updated,
					ago((hasEnded && session.endedAt) || session.updatedAt),
				],
				hasEnded &&
					session.reason !== null && [
						texts.decide.reason,
						marked(session.reason),
					],
			]),
			session.snapshots.length > 0 &&
				el(
					"div",
					{ class: "stack tight" },
					el("h3", null, texts.agents.snapshots),
					el(
						"ul",
						{ class: "snapshots" },
						session.snapshots.map((snapshot) =>
							el(
								"li",
								{ class: "row spread" },
								el(
									"span",
									{ class: "mono" },
									markedName(snapshot.snapshotType),
								),
								el("span", { class: "quiet fine" }, ago(snapshot.createdAt)),
							),
						),
					),
				),
			el("p", { class: "hint" }, texts.agents.reported),
		),
	);
}

/**
 * @param {import('../core/approver.js').Approver} approver
 * @param {Agent} agent
 * @param {Session[]} sessions
 */
function promptForm(approver, agent, sessions) {
	const text = el("textarea", { class: "input", rows: 3, required: true });
	const open = sessions.filter((session) => session.endedAt === null);
	const select = el(
		"select",
		{ class: "input" },
		el("option", { value: "" }, texts.agents.anySession),
		open.map((session) =>
			el(
				"option",
				{
					value: session.sessionId,
					title: visibleText(session.sessionId),
				},
				shortSession(session.sessionId),
			),
		),
	);
	const place = el("div", null);
	const send = button(texts.agents.send, {
		kind: "primary",
		type: "submit",
		icon: "send",
	});
	const submit = (/** @type {Event} */ event) => {
		event.preventDefault();
		busy(
			send,
			place,
			async () => {
				const sent = await approver.prompt(
					agent.enforcerId,
					text.value,
					select.value || null,
				);
				text.value = "";
				void followSent(sent, place, {
					said: texts.agents.promptStates,
					read: (now) => approver.promptStatus(now),
					stateOf: ({ status }) => status,
				});
			},
			texts.agents.sending,
		);
	};
	return el(
		"form",
		{ class: "card card-body", on: { submit } },
		el("h2", null, texts.agents.prompt),
		field(texts.agents.promptField, text, texts.agents.promptHint),
		open.length > 0 && field(texts.agents.promptSession, select),
		place,
		el("div", { class: "row" }, send),
	);
}

/**
 * @param {import('../core/types.js').PairedTeam[]} teams
 */
function unpairText(teams) {
	if (teams.length === 0) return texts.agents.unpairText;
	const said = teams.map(({ name, endsForAll }) => {
		const text = endsForAll ? "unpairTeam" : "unpairMember";
		return texts.agents[text](visibleText(name));
	});
	return said.join(" ");
}

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @param {Agent} agent
 * @param {import('../core/types.js').PairedTeam[]} teams
 */
function askToUnpair({ approver, go }, agent, teams) {
	const name = agentName(agent);
	confirmDialog(
		{
			title: texts.agents.unpairTitle(name),
			text: unpairText(teams),
			action: texts.agents.unpair,
			kind: "bad",
		},
		async (place, control) => {
			let isDone = false;
			await busy(control, place, async () => {
				await approver.unpair(agent.enforcerId);
				isDone = true;
			});
			if (isDone) {
				toast(texts.agents.unpaired(name));
				go("#/agents", true);
			}
			return isDone;
		},
	);
}
