// Rejects every request of an agent, each with a signature of its own.

import { texts } from "../texts.js";
import { toast } from "../ui/announce.js";
import { openDialog } from "../ui/dialog.js";
import { el, fill } from "../ui/dom.js";
import { busy, button, errorText, field, note } from "../ui/parts.js";
import { sentenceOfItem, sentenceText } from "./inboxrow.js";

/** @typedef {import('../core/types.js').Item} Item */

const LONGEST_REASON = 4000;

/**
 * Rejects one after another. A request that cannot be rejected does not keep the others from it.
 * @param {import('../core/approver.js').Approver} approver
 * @param {Item[]} items
 * @param {string} reason
 * @param {(at: number) => void} progress
 */
export async function rejectEach(approver, items, reason, progress) {
	/** @type {{ item: Item, problem: string }[]} */
	const failed = [];
	for (const [at, item] of items.entries()) {
		progress(at + 1);
		try {
			await approver.decide(item, {
				verdict: "reject",
				// For an agent that is not paired it cannot be encrypted.
				reason: (item.isPaired && reason) || undefined,
			});
		} catch (thrown) {
			failed.push({ item, problem: errorText(thrown) });
		}
	}
	return failed;
}

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
				// First, so that nothing new is asked meanwhile.
				if (pause.checked && enforcerId !== null)
					await approver.orders((orders, session) =>
						orders.pauseAgent(session, enforcerId),
					);
				const failed = await rejectEach(
					approver,
					items,
					reason.value.trim(),
					(at) => {
						status.textContent = several.rejecting(at, items.length);
					},
				);
				status.textContent = "";
				toast(several.rejectedAll(items.length - failed.length));
				if (failed.length === 0) return dialog.close();
				go.hidden = true;
				fill(
					place,
					note(
						"bad",
						el("strong", null, several.someFailed(failed.length)),
						failed.map(({ item, problem }) =>
							el("p", null, `${sentenceText(item)}: ${problem}`),
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
			field(
				`${several.reason} (${texts.decide.optional})`,
				reason,
				texts.several.reasonHint,
			),
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
}
