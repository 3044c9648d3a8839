// The requests that wait for a decision, kept current: pushed over a channel, read again whenever
// something may have been missed, and polled where no channel can be opened.

import { uuidv7 } from "./bytes.js";
import { parse, Reader } from "./canonical.js";
import { Channel } from "./channel.js";
import { isHidden, loaded, sleep } from "./gateway.js";
import {
	inboxPages,
	isAboutSame,
	isStillUnopened,
	judgeContent,
	readItem,
	readMessage,
	strangersOf,
	wantsIntroduction,
} from "./item.js";
import { LiveValue } from "./live.js";
import { Problem } from "./problem.js";

/** @typedef {import('./json.js').Node} Node */
/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./store.js').DecisionRecord} DecisionRecord */
/** @typedef {import('./types.js').Choice} Choice */
/** @typedef {import('./types.js').Inbox} Inbox */
/** @typedef {import('./types.js').Item} Item */

const MAX_ITEMS = 200;
const MAX_FINISHED = 50;
/** It is read again anyway, and a person should soon see that what is shown is out of date. */
const PATIENCE_MS = 5_000;
/**
 * An acknowledgement counts for all devices of the approver: their channels get this much time to
 * push the message too.
 */
const ACK_AFTER_MS = 3_000;
const LOOK_PAUSE_MS = 2_000;
const WATCH_AFTER_MS = 500;
/** Nothing helps but a person. */
const REFUSALS = ["credential", "signInEnded", "signInRefused"];

export class InboxModel {
	/**
	 * @param {Session} session
	 * @param {() => void} learned called when another device has introduced an enforcer
	 */
	constructor(session, learned) {
		this.session = session;
		this.learned = learned;
		this.live = new LiveValue(
			/** @type {Inbox} */ ({
				isLoaded: false,
				connection: "connecting",
				problem: null,
				items: [],
				finished: [],
				hasMore: false,
			}),
		);
		/** @type {Map<string, Item>} */
		this.items = new Map();
		/** @type {Item[]} */
		this.finished = [];
		/**
		 * Decisions that this browser has not kept yet, or could not.
		 * @type {Map<string, DecisionRecord>}
		 */
		this.unkept = new Map();
		this.channel = new Channel(
			session.client,
			session.identity.approverId,
			() => this.ackOf(uuidv7(Date.now())),
			{
				opened: () => void this.refresh(),
				received: (text) => void this.received(text),
				interrupted: () => void this.refresh(),
			},
		);
		this.isRunning = false;
		this.stopping = new AbortController();
		/**
		 * The request that a person looks at.
		 * @type {string | null}
		 */
		this.attended = null;
		/** Which start this is: loops of an earlier one end. */
		this.run = 0;
		/** @type {Set<string>} */
		this.undelivered = new Set();
		/** @type {Promise<typeof import('./watching.js')> | null} */
		this.loading = null;
		/** @type {Promise<boolean> | null} */
		this.looking = null;
		this.lookedAt = 0;
		/** @type {Promise<void> | null} */
		this.reading = null;
		this.isStale = false;
		// A machine that slept, or a network that came back: what was missed is read at once,
		// whatever the channel believes.
		this.reopen = () => {
			this.channel.reopen();
			void this.refresh();
		};
		this.check = () => {
			if (isHidden()) return;
			this.channel.check();
			void this.refresh();
		};
	}

	start() {
		if (this.isRunning) return;
		this.isRunning = true;
		this.stopping = new AbortController();
		this.channel.start();
		globalThis.addEventListener?.("online", this.reopen);
		globalThis.addEventListener?.("offline", this.reopen);
		globalThis.document?.addEventListener("visibilitychange", this.check);
		this.run += 1;
		void this.watch(this.run);
		for (const { requestId, state } of this.finished)
			if (state === "decided") void this.watchDelivery(requestId);
	}

	/** Keeps the inbox current beside the channel. */
	watching() {
		this.loading ??= this.loadWatching();
		return this.loading;
	}

	/**
	 * After the first view, which does not need it.
	 * @returns {Promise<typeof import('./watching.js')>}
	 */
	async loadWatching() {
		for (;;) {
			await sleep(WATCH_AFTER_MS);
			try {
				return await loaded(import("./watching.js"));
			} catch (error) {
				if (!(error instanceof Problem)) throw error;
			}
		}
	}

	/** @param {number} run */
	async watch(run) {
		const { pollWhileClosed, waitForEnds, waitForIntroductions } =
			await this.watching();
		void waitForEnds(this, run);
		void pollWhileClosed(this, run);
		void waitForIntroductions(this, run);
	}

	stop() {
		this.isRunning = false;
		this.stopping.abort();
		this.channel.stop();
		globalThis.removeEventListener?.("online", this.reopen);
		globalThis.removeEventListener?.("offline", this.reopen);
		globalThis.document?.removeEventListener("visibilitychange", this.check);
	}

	/** @param {Partial<Inbox>} change */
	publish(change = {}) {
		const items = [...this.items.values()].sort(
			(one, other) => order(one) - order(other),
		);
		this.live.set({
			...this.live.value,
			items,
			finished: this.finished,
			...change,
		});
	}

	/**
	 * @param {string} requestId
	 * @returns {Item | null}
	 */
	find(requestId) {
		return (
			this.items.get(requestId) ??
			this.finished.find((item) => item.requestId === requestId) ??
			null
		);
	}

	/** Reads the inbox; once more if something has changed meanwhile. */
	async refresh() {
		if (this.reading !== null) {
			this.isStale = true;
			return this.reading;
		}
		this.reading = this.readUntilCurrent().finally(() => {
			this.reading = null;
		});
		return this.reading;
	}

	async readUntilCurrent() {
		do {
			this.isStale = false;
			try {
				await this.readAll();
				if (this.isRunning) this.channel.start();
				this.publish({
					isLoaded: true,
					problem: null,
					connection: this.channel.isOpen ? "live" : "polling",
				});
			} catch (error) {
				if (!(error instanceof Problem)) throw error;
				const isRefused = REFUSALS.includes(error.code);
				// Another gateway at this address refuses the key too, and the right one may come
				// back: it is asked now and then. A sign-in that has ended stays ended.
				if (error.code === "credential") this.channel.stop();
				else if (isRefused) this.stop();
				this.publish({
					problem: error,
					connection: isRefused ? "refused" : "offline",
				});
			}
		} while (this.isStale && this.isRunning);
	}

	async readAll() {
		const before = new Set(this.items.keys());
		let count = 0;
		for await (const { nodes, isLast } of inboxPages(
			this.session,
			PATIENCE_MS,
		)) {
			for (const node of nodes)
				before.delete((await this.take(node)).requestId);
			count += nodes.length;
			this.publish({ hasMore: !isLast });
			// A request that has left the inbox has ended. If there are more than were read, that
			// cannot be told.
			if (isLast)
				await Promise.all([...before].map((requestId) => this.ask(requestId)));
			else if (count >= MAX_ITEMS) return;
		}
	}

	/**
	 * Takes over a request, and opens it unless it is open. The caller publishes, after one or
	 * many.
	 * @param {Node} node
	 * @returns {Promise<Item>}
	 */
	async take(node) {
		const { requestId } = readMessage(node);
		const known = this.kept(requestId, node);
		if (known !== null)
			return wantsIntroduction(known) ? this.lookAgain(known) : known;
		let item = await readItem(this.session, node);
		if (wantsIntroduction(item) && (await this.look()))
			item = await readItem(this.session, node);
		if (await this.wasDecidedOtherwise(item))
			item = {
				...item,
				content: { opened: false, problem: Problem.of("replaced", {}) },
			};
		// Meanwhile it may have been opened or decided.
		const now = this.kept(requestId, node);
		if (now !== null) return now;
		const before = this.items.get(requestId);
		// A view that shows it need not be made anew.
		if (before !== undefined && isStillUnopened(before, item)) return before;
		this.items.set(requestId, item);
		const { content, enforcerId } = item;
		if (
			content.opened &&
			content.artifact.sessionId !== null &&
			enforcerId !== null
		) {
			const { sessionId, createdAt } = content.artifact;
			await this.session.store.keepSession({
				sessionId,
				enforcerId,
				seenAt: this.session.timestamp(),
				askedAt: createdAt,
			});
		}
		return item;
	}

	/**
	 * Whether this device knows a decision about another artifact under the same id.
	 * @param {Item} item
	 */
	async wasDecidedOtherwise({ requestId, artifactHash }) {
		const known = await this.session.store.decision(requestId);
		if (!known?.isVerified) return false;
		const { isDecisionAbout } = await loaded(import("./exchange.js"));
		return !isDecisionAbout(known, artifactHash);
	}

	/**
	 * The same item, with what is known now of its devices and teams.
	 * @param {Item} item
	 */
	async lookAgain(item) {
		await this.look();
		const strangers = await strangersOf(this.session, item.content);
		const judged = await judgeContent(
			this.session,
			item.enforcerId,
			item.content,
		);
		const isSameRule =
			judged.approvalProblem?.message === item.approvalProblem?.message;
		const isSame = strangers.length === item.strangers.length && isSameRule;
		if (isSame || this.items.get(item.requestId) !== item) return item;
		// Views show another content anew.
		const content = isSameRule ? item.content : { ...item.content };
		const now = { ...item, strangers, ...judged, content };
		this.items.set(item.requestId, now);
		return now;
	}

	/**
	 * The item that stays, whatever the message says: one that has ended, or one that was opened. A
	 * person may be reading it, so nothing takes its place. If the message asks about something
	 * else, neither can be approved any more.
	 * @param {string} requestId
	 * @param {Node} node
	 * @returns {Item | null}
	 */
	kept(requestId, node) {
		const known = this.find(requestId);
		if (known === null || known.state !== "pending") return known;
		const { content } = known;
		if (!content.opened)
			return content.problem.code === "replaced" ? known : null;
		if (isAboutSame(node, known)) return known;
		/** @type {Item} */
		const disputed = {
			...known,
			content: { opened: false, problem: Problem.of("replaced", {}) },
		};
		this.items.set(requestId, disputed);
		return disputed;
	}

	/**
	 * Looks what other devices have signed since, once for all who ask meanwhile. A gateway that
	 * shows nothing withholds it.
	 */
	look() {
		if (this.looking === null && Date.now() - this.lookedAt < LOOK_PAUSE_MS)
			return false;
		this.looking ??= this.lookNow().finally(() => {
			this.looking = null;
		});
		return this.looking;
	}

	async lookNow() {
		this.lookedAt = Date.now();
		try {
			const { learnEnforcers } = await loaded(import("./introductions.js"));
			if (await learnEnforcers(this.session)) this.learned();
			return true;
		} catch (error) {
			if (error instanceof Problem) return false;
			throw error;
		}
	}

	/** @param {string} text */
	async received(text) {
		try {
			const node = parse("answer", text);
			const { msgId, msgType, requestId, body } = readMessage(node);
			if (msgType === "approval.request") {
				await this.take(node);
				this.publish();
			} else if (msgType === "exchange.withdrawn")
				await this.withdrawn(requestId, body);
			else return;
			setTimeout(
				() => this.channel.send(this.ackOf(msgId, requestId)),
				ACK_AFTER_MS,
			);
		} catch (error) {
			// An unreadable message is not for this list.
			if (!(error instanceof Problem)) throw error;
		}
	}

	/**
	 * @param {string} msgId
	 * @param {string} requestId
	 */
	ackOf(msgId, requestId = msgId) {
		const body = JSON.stringify({
			msgId,
			status: "processed",
			ackAt: this.session.timestamp(),
		});
		return this.session.envelope("ack.submit", requestId, body);
	}

	/**
	 * @param {string} requestId
	 * @param {Node} body
	 */
	async withdrawn(requestId, body) {
		const reader = new Reader("answer", body);
		const state = reader.oneOf(
			"state",
			/** @type {const} */ (["withdrawn", "cancelled"]),
		);
		const item = this.items.get(requestId);
		if (item !== undefined)
			this.settle({
				...item,
				state,
				withdrawalReason: reader.optionalString("reason"),
			});
	}

	/**
	 * The request has ended.
	 * @param {Item} item
	 */
	settle(item) {
		this.items.delete(item.requestId);
		const others = this.finished.filter(
			({ requestId }) => requestId !== item.requestId,
		);
		this.finished = [item, ...others].slice(0, MAX_FINISHED);
		this.publish();
	}

	/**
	 * Asks the gateway for the state of a request.
	 * @param {string} requestId
	 */
	async ask(requestId) {
		const { ask } = await loaded(import("./endings.js"));
		await ask(this, requestId);
	}

	/**
	 * Asks where a later call asks again anyway.
	 * @param {string} requestId
	 */
	async askQuietly(requestId) {
		try {
			await this.ask(requestId);
		} catch (error) {
			if (!(error instanceof Problem)) throw error;
		}
	}

	/**
	 * Decides what was shown, and nothing else that may have come under the same id.
	 * @param {Item} shown
	 * @param {Choice} choice
	 */
	async decide(shown, choice) {
		const { decideShown } = await loaded(import("./endings.js"));
		await decideShown(this, shown, choice);
	}

	/**
	 * Until the enforcer has confirmed that it got the decision.
	 * @param {string} requestId
	 */
	async watchDelivery(requestId) {
		if (this.undelivered.has(requestId)) return;
		this.undelivered.add(requestId);
		try {
			const { watchDelivery } = await this.watching();
			await watchDelivery(this, requestId);
		} finally {
			this.undelivered.delete(requestId);
		}
	}

	/** The one that a person looks at first. */
	pendingIds() {
		const ids = [...this.items.keys()];
		return ids.sort(
			(one, other) =>
				Number(other === this.attended) - Number(one === this.attended),
		);
	}
}

/** @param {Item} item */
function order({ receivedAt }) {
	return receivedAt === null ? 0 : Date.parse(receivedAt);
}
