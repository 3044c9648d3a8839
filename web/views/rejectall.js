// Asks before every request of an agent is rejected, and whether the agent is paused too.

import { rejectAll } from "../core/rejecting.js";
import { wantsComment } from "../core/rule.js";
import { texts } from "../texts.js";
import { toast } from "../ui/announce.js";
import { dateTime } from "../ui/clock.js";
import { openDialog } from "../ui/dialog.js";
import { el, fill } from "../ui/dom.js";
import { busy, button, errorText, note } from "../ui/parts.js";
import { artifactOf } from "../ui/summary.js";
import { sentenceOfItem, sentenceText } from "./inboxrow.js";
import { commentField } from "./rule.js";

/** @typedef {import('../core/types.js').Item} Item */

const LONGEST_REASON = 4000;

/**
 * @param {import('../core/approver.js').Approver} approver
 * @param {string} name
 * @param {Item[]} items
 */
export function rejectAllDialog(approver, name, items) {
	const { several } = texts;
	const reason = el("textarea", {
		class: "input",
		maxlength: LONGEST_REASON,
		rows: 3,
	});
	const comment = commentField(reason, several.reason, {
		isRequired: items.some(
			(item) =>
				item.isPaired && wantsComment(artifactOf(item)?.rule ?? null, "reject"),
		),
		hint: several.reasonHint,
	});
	const pause = el("input", { type: "checkbox" });
	const enforcerId = items.find(({ isPaired }) => isPaired)?.enforcerId ?? null;
	const place = el("div", null);
	const status = el("p", { class: "fine quiet", role: "status" });
	const go = button(several.rejectAllAction(items.length), {
		kind: "bad",
		type: "submit",
	});
	const send = () =>
		busy(
			go,
			place,
			async () => {
				const { failed, pausedUntil } = await rejectAll(
					approver,
					items,
					{
						reason: comment.read() ?? "",
						pausedId: pause.checked ? enforcerId : null,
					},
					(at) => {
						status.textContent = several.rejecting(at, items.length);
					},
				);
				status.textContent = "";
				const done = several.rejectedAll(items.length - failed.length);
				toast(
					pausedUntil === null
						? done
						: `${done}. ${texts.agents.pause.until(dateTime(pausedUntil))}`,
				);
				if (failed.length === 0) return dialog.close();
				go.hidden = true;
				fill(
					place,
					note(
						"bad",
						el("strong", null, several.someFailed(failed.length)),
						failed.map(({ item, thrown }) =>
							el("p", null, `${sentenceText(item)}: ${errorText(thrown)}`),
						),
					),
				);
			},
			texts.decide.sending,
		);
	const dialog = openDialog(several.rejectAllTitle(name), () => [
		el(
			"form",
			{
				class: "flat",
				on: {
					submit: (/** @type {Event} */ event) => {
						event.preventDefault();
						void send();
					},
				},
			},
			el("p", { class: "quiet" }, several.rejectAllText(items.length)),
			el(
				"ul",
				{ class: "dialog-subject" },
				items.map((item) =>
					el("li", { class: "sentence" }, sentenceOfItem(item)),
				),
			),
			comment.element,
			enforcerId !== null &&
				el(
					"label",
					{ class: "radio" },
					pause,
					el("span", null, several.pauseToo),
				),
			place,
			status,
			el(
				"div",
				{ class: "dialog-actions" },
				button(texts.close, { on: () => dialog.close() }),
				go,
			),
		),
	]);
	reason.focus();
	return dialog;
}
