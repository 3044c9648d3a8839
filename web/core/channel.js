// The gateway's push channel, over a WebSocket. A channel that breaks or falls silent is opened
// again, at any node.

import { jittered, MAX_ANSWER_BYTES } from "./gateway.js";
import { Problem } from "./problem.js";

/** @typedef {import('./gateway.js').GatewayClient} GatewayClient */

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
const OPEN_WITHIN_MS = 15_000;
/**
 * How often the gateway is asked whether it is still there. A page does not see the pings of
 * WebSockets.
 */
const PROBE_MS = 30_000;
const ANSWER_WITHIN_MS = 10_000;
/** A person looks at the page again, and should not wait long. */
const CHECK_WITHIN_MS = 3_000;

/**
 * @typedef {object} Listener
 * @property {() => void} opened at first or again: what was missed meanwhile has to be read
 *   elsewhere
 * @property {(text: string) => void} received the same message may come again
 * @property {() => void} interrupted it is opened again by itself
 */

export class Channel {
	/**
	 * @param {GatewayClient} client
	 * @param {string} approverId
	 * @param {() => string} probe a frame that the gateway answers
	 * @param {Listener} listener
	 */
	constructor(client, approverId, probe, listener) {
		this.client = client;
		this.approverId = approverId;
		this.probe = probe;
		this.listener = listener;
		this.isWanted = false;
		/** @type {WebSocket | null} */
		this.socket = null;
		this.pauseMs = 0;
		this.timer = 0;
		/** Which attempt to open it this is. */
		this.turn = 0;
	}

	start() {
		if (this.isWanted) return;
		this.isWanted = true;
		void this.open();
	}

	stop() {
		this.isWanted = false;
		this.drop();
	}

	/** Finds out soon whether it is dead: a machine that slept does not notice. */
	check() {
		const { socket } = this;
		if (!this.isWanted || socket?.readyState !== WebSocket.OPEN) {
			this.reopen();
			return;
		}
		this.send(this.probe());
		this.within(CHECK_WITHIN_MS, () => {
			this.interrupt(socket);
			this.reopen();
		});
	}

	/** Opens the channel at once, when the network has come or gone. */
	reopen() {
		if (!this.isWanted) return;
		this.drop();
		this.pauseMs = 0;
		void this.open();
	}

	get isOpen() {
		return this.socket?.readyState === WebSocket.OPEN;
	}

	/**
	 * Nothing is sent while the channel is not open.
	 * @param {string} text
	 */
	send(text) {
		if (this.isOpen) this.socket?.send(text);
	}

	drop() {
		clearTimeout(this.timer);
		this.turn += 1;
		const { socket } = this;
		this.socket = null;
		socket?.close();
	}

	/**
	 * Each time with a credential that counts now: the gateway closes a channel when its token
	 * ends.
	 */
	async open() {
		const turn = ++this.turn;
		// Set before it opens, and reset only by a message: a channel that opens and breaks at once
		// is not opened in a tight loop.
		this.pauseMs = Math.min(
			Math.max(this.pauseMs * 2, FIRST_PAUSE_MS),
			LONGEST_PAUSE_MS,
		);
		/** @type {string | null} */
		let credential = null;
		try {
			credential = await this.client.present();
		} catch (error) {
			if (!(error instanceof Problem)) throw error;
		}
		if (turn !== this.turn || !this.isWanted) return;
		if (credential === null) {
			this.within(jittered(this.pauseMs), () => void this.open());
			this.listener.interrupted();
			return;
		}
		const protocols = ["countersign", `bearer.${credential}`];
		/** @type {WebSocket} */
		let socket;
		try {
			socket = new WebSocket(
				this.client.channelUrl(this.approverId),
				protocols,
			);
		} catch {
			// A credential that cannot be the name of a protocol, or an address that this page may
			// not reach.
			this.listener.interrupted();
			return;
		}
		this.socket = socket;
		this.within(OPEN_WITHIN_MS, () => this.interrupt(socket));
		socket.onopen = () => {
			if (this.socket !== socket) return;
			this.listen(socket);
			this.listener.opened();
		};
		socket.onmessage = ({ data }) => {
			if (this.socket !== socket) return;
			// No gateway sends such a thing.
			if (typeof data === "string" && data.length > MAX_ANSWER_BYTES)
				return this.interrupt(socket);
			this.pauseMs = 0;
			this.listen(socket);
			if (typeof data === "string") this.listener.received(data);
		};
		socket.onclose = () => this.interrupt(socket);
	}

	/**
	 * Asks after silence, and gives the channel up if no answer comes.
	 * @param {WebSocket} socket
	 */
	listen(socket) {
		this.within(PROBE_MS, () => {
			this.send(this.probe());
			this.within(ANSWER_WITHIN_MS, () => this.interrupt(socket));
		});
	}

	/**
	 * @param {number} milliseconds
	 * @param {() => void} act
	 */
	within(milliseconds, act) {
		clearTimeout(this.timer);
		this.timer = setTimeout(act, milliseconds);
	}

	/** @param {WebSocket} socket */
	interrupt(socket) {
		if (this.socket !== socket) return;
		this.drop();
		this.client.leaveNode();
		this.within(jittered(this.pauseMs), () => void this.open());
		this.listener.interrupted();
	}
}
