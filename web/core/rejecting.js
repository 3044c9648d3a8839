// Rejects every request of an agent, each with a signature of its own, and pauses the agent.

/** @typedef {import('./types.js').Item} Item */

/**
 * Rejects one after another. A request that cannot be rejected does not keep the others from it.
 * @param {import('./approver.js').Approver} approver
 * @param {Item[]} items
 * @param {{ reason: string, pausedId: string | null }} options `pausedId`: this agent is paused too
 * @param {(at: number) => void} progress
 * @returns {Promise<{ failed: { item: Item, thrown: unknown }[], pausedUntil: string | null }>}
 */
export async function rejectAll(
	approver,
	items,
	{ reason, pausedId },
	progress,
) {
	// First, so that nothing new is asked meanwhile.
	const pausedUntil =
		pausedId === null
			? null
			: await approver.orders(async (orders, session) => {
					await orders.pauseAgent(session, pausedId);
					return (await orders.readPauses(session))[pausedId] ?? null;
				});
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
			failed.push({ item, thrown });
		}
	}
	return { failed, pausedUntil };
}
