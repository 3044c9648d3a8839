// This device, appearance, keys, and logging out.

import {
	chooseLanguage,
	chosenLanguage,
	LANGUAGE_NAMES,
} from "../texts/language.js";
import { texts } from "../texts.js";
import { toast } from "../ui/announce.js";
import { dateTime } from "../ui/clock.js";
import { confirmDialog, helpDialog } from "../ui/dialog.js";
import { el, fill } from "../ui/dom.js";
import { visibleText } from "../ui/marked.js";
import {
	busy,
	button,
	facts,
	linkButton,
	page,
	problemNote,
	segments,
} from "../ui/parts.js";
import { chooseTheme, currentTheme } from "../ui/theme.js";
import { notificationSettings } from "./notifications.js";

/**
 * @param {import('../ui/view.js').JoinedContext} context
 * @returns {import('../ui/view.js').View}
 */
export function view(context) {
	const { identity } = context.approver;
	const { settings } = texts;
	const name = el("span", null, texts.signIn.unnamed);
	if (context.approver.isSignIn)
		context.approver.signedInName().then(
			(known) => known && fill(name, visibleText(known)),
			() => {},
		);
	const logoutText = context.approver.isSignIn
		? texts.signIn.logoutText
		: settings.logoutText;
	const themes = segments(
		settings.theme,
		[
			["system", settings.themes.system],
			["light", settings.themes.light],
			["dark", settings.themes.dark],
		],
		currentTheme(),
		chooseTheme,
	);
	const element = page(
		settings.title,
		{},
		section(
			settings.identity,
			facts([
				[settings.approver, el("strong", null, identity.approverId)],
				context.approver.isSignIn && [texts.signIn.as, name],
				[settings.tenant, identity.tenantId],
				[settings.name, identity.deviceName],
				[settings.id, el("code", null, identity.deviceId)],
				[settings.joined, dateTime(identity.joinedAt)],
			]),
			el(
				"div",
				{ class: "row" },
				linkButton(texts.teams.show, "#/teams", "small"),
			),
		),
		section(texts.notifications.title, notificationSettings(context.approver)),
		section(
			settings.appearance,
			el(
				"div",
				{ class: "row spread" },
				el("span", null, settings.theme),
				themes,
			),
			el(
				"label",
				{ class: "row spread" },
				el("span", null, settings.language),
				languages(),
			),
		),
		section(
			settings.keyboard,
			el(
				"div",
				{ class: "row spread" },
				el("span", { class: "quiet" }, settings.keyboardText),
				button(settings.showKeys, { kind: "small", on: helpDialog }),
			),
		),
		section(
			settings.logout,
			el("p", { class: "quiet" }, logoutText),
			el(
				"div",
				{ class: "row" },
				button(settings.logoutAction, {
					kind: "bad-quiet",
					on: () => askToLogOut(context),
				}),
			),
		),
		section(settings.about, el("p", { class: "quiet" }, settings.aboutText)),
	);
	return { title: settings.title, element };
}

/**
 * @param {string} title
 * @param {...import('../ui/dom.js').Child} children
 */
function section(title, ...children) {
	return el(
		"section",
		{ class: "card" },
		el("div", { class: "card-head" }, el("h2", null, title)),
		el("div", { class: "card-body" }, children),
	);
}

function languages() {
	const chosen = chosenLanguage() ?? "";
	const select = el(
		"select",
		{ class: "input" },
		[
			["", texts.settings.languageAutomatic],
			...Object.entries(LANGUAGE_NAMES),
		].map(([name, text]) =>
			el(
				"option",
				{ value: name, lang: name || null, selected: name === chosen },
				text,
			),
		),
	);
	select.addEventListener("change", () => {
		chooseLanguage(select.value || null);
		// The texts are put in place when the page starts.
		location.reload();
	});
	return select;
}

/** @param {import('../ui/view.js').JoinedContext} context */
function askToLogOut({ approver }) {
	const revoke = el("input", { type: "checkbox", checked: true });
	let isRevoked = false;
	const everywhere = el("input", { type: "checkbox", checked: true });
	confirmDialog(
		{
			title: texts.settings.logoutTitle,
			text: [
				approver.isSignIn ? texts.signIn.logoutText : texts.settings.logoutText,
				el(
					"label",
					{ class: "radio" },
					revoke,
					el("span", null, texts.settings.logoutRevoke),
				),
				texts.settings.logoutLast,
				approver.isSignIn &&
					el(
						"label",
						{ class: "radio" },
						everywhere,
						el("span", null, texts.signIn.everywhere),
					),
			],
			action: texts.settings.logoutAction,
			kind: "bad",
		},
		async (place, control) => {
			let isDone = false;
			/** @type {string | null} */
			let elsewhere = null;
			await busy(control, place, async () => {
				if (revoke.checked && !isRevoked) {
					const { deviceId } = approver.identity;
					const problems = await approver.revokeDevice(deviceId);
					isRevoked = true;
					revoke.disabled = true;
					// Logging out closes this view, so the person reads them before.
					if (problems.length > 0) {
						fill(place, problems.map(problemNote));
						return;
					}
				}
				elsewhere = await approver.logout();
				isDone = true;
			});
			if (!isDone) return false;
			localStorage.clear();
			toast(texts.settings.loggedOut);
			if (elsewhere !== null && everywhere.checked) location.assign(elsewhere);
			return true;
		},
	);
}
