// The approver on this device: what views call. Errors are always a `Problem`. Modules that the
// inbox does not need load on demand.

/** @typedef {import('./types.js').Item} Item */
/** @typedef {import('./types.js').Inbox} Inbox */
/** @typedef {import('./types.js').Choice} Choice */
/** @typedef {import('./types.js').Device} Device */
/** @typedef {import('./types.js').Agent} Agent */
/** @typedef {import('./types.js').Session} Session */
/** @typedef {import('./types.js').HistoryEntry} HistoryEntry */
/** @typedef {import('./types.js').Identity} Identity */

import { listAgents } from "./agents.js";
import { readDevices, revokeDevice } from "./devices.js";
import { loaded } from "./gateway.js";
import { InboxModel } from "./inbox.js";
import { LiveValue } from "./live.js";
import { asProblem, Problem } from "./problem.js";
import { Session as Shared } from "./session.js";
import { Store } from "./store.js";

/**
 * Where the gateway is. By default it is where the page comes from; a page that is hosted elsewhere
 * names its nodes.
 * @typedef {object} Place
 * @property {string[]} [gateways] addresses of nodes or of a load balancer
 * @property {string} [page] the address of this page, for links to it
 */

/** @param {Place} place */
function placeOf({ gateways, page }) {
	const { origin, pathname } = globalThis.location;
	return {
		gateways: gateways ?? [origin],
		page: page ?? origin + pathname.replace(/[^/]*$/, ""),
	};
}

export class Approver {
	/**
	 * The approver whose keys this browser keeps. Null without keys: then an invitation is needed.
	 * @param {Place} [place]
	 * @returns {Promise<Approver | null>}
	 */
	static async open(place = {}) {
		const store = await Store.open();
		const profile = await store.profile();
		if (profile === null) {
			store.close();
			return null;
		}
		const session = await Shared.open(store, profile, placeOf(place));
		const approver = new Approver(session);
		await approver.listAgents();
		return approver;
	}

	/**
	 * Takes an invitation: its link or its code. Creates keys and keeps them before anything else
	 * happens. Go on with `enrol`.
	 * @param {string} invitation
	 * @param {string} deviceName
	 * @param {Place} [place]
	 * @returns {Promise<import('./types.js').Joined>}
	 */
	static async join(invitation, deviceName, place = {}) {
		const store = await Store.open();
		/** @type {Shared['invited']} */
		let invited = null;
		try {
			const { join } = await loaded(import("./join.js"));
			const joined = await join(
				store,
				placeOf(place).gateways,
				invitation,
				deviceName,
			);
			if (joined.role !== "approver") return joined;
			({ invited } = joined);
		} finally {
			store.close();
		}
		const approver = await Approver.open(place);
		if (approver === null)
			throw Problem.of("storage", { cause: "the keys are gone" });
		approver.session.invited = invited;
		return { role: "approver", approver };
	}

	/**
	 * The host at which people sign in here; null if they join by invitation only.
	 * @param {Place} [place]
	 * @returns {Promise<string | null>}
	 */
	static async signInHost(place = {}) {
		const { readSettings } = await loaded(import("./tokens.js"));
		const settings = await readSettings(placeOf(place).gateways);
		return settings && new URL(settings.issuer).host;
	}

	/**
	 * Where the person goes to sign in. The provider sends them back to this page, with an answer
	 * for `finishSignIn`.
	 * @param {string | null} deviceName of a new device; null: this device signs in again
	 * @param {Place} [place]
	 * @returns {Promise<string>}
	 */
	static async beginSignIn(deviceName, place = {}) {
		const { beginSignIn } = await loaded(import("./signin.js"));
		return beginSignIn(placeOf(place), deviceName);
	}

	/**
	 * Ends a sign-in: the first time keys are created, as by joining.
	 * @param {URLSearchParams} answer
	 * @param {Place} [place]
	 * @returns {Promise<{ isNew: boolean }>} true: this browser was no device before
	 */
	static async finishSignIn(answer, place = {}) {
		const store = await Store.open();
		try {
			const { finishSignIn } = await loaded(import("./signin.js"));
			return await finishSignIn(store, placeOf(place).gateways, answer);
		} finally {
			store.close();
		}
	}

	/** @param {Shared} session */
	constructor(session) {
		this.session = session;
		/** @type {Identity} */
		this.identity = session.identity;
		this.model = new InboxModel(session, () => void this.listAgents());
		/** @type {import('./types.js').Live<Inbox>} */
		this.inbox = this.model.live;
		/** Enforcers that this device has pinned, by label. */
		this.agents = new LiveValue(/** @type {Agent[]} */ ([]));
		/** True once the keys are gone: here, or by another tab. */
		this.isLoggedOut = new LiveValue(false);
		/** Whether the person signs in, rather than having joined by invitation. */
		this.isSignIn = session.isSignIn;
		session.tabs.onmessage = ({ data }) => {
			if (data === "logout") this.end();
			else if (data === "tokens") void this.tokensChanged();
			else void this.reload();
		};
	}

	/**
	 * Brings this device into force, or says what it takes. It can be called again at any time.
	 * @returns {Promise<import('./types.js').Enrolment>}
	 */
	async enrol() {
		const { enrol } = await loaded(import("./enrol.js"));
		const enrolment = await enrol(this.session);
		if (enrolment.state === "inForce") void this.share();
		return enrolment;
	}

	/**
	 * Waits until another device has added this one. False if `signal` ended it before.
	 * @param {AbortSignal} signal
	 * @returns {Promise<boolean>}
	 */
	async untilInForce(signal) {
		const enrolment = await loaded(import("./enrol.js"));
		const isInForce = await enrolment.untilInForce(this.session, signal);
		if (isInForce) void this.share();
		return isInForce;
	}

	/** Opens the channel to the gateway and keeps `inbox` current, until `stop`. */
	start() {
		this.model.start();
	}

	stop() {
		this.model.stop();
	}

	/**
	 * The request that a person looks at: it is waited for before others. Null: none.
	 * @param {string | null} requestId
	 */
	attend(requestId) {
		this.model.attended = requestId;
	}

	/**
	 * An item that waits or has ended while the page was open.
	 * @param {string} requestId
	 * @returns {Item | null}
	 */
	item(requestId) {
		return this.model.find(requestId);
	}

	/**
	 * Signs and sends a decision about what was shown; refused if that is not what waits now.
	 * Resolves once the gateway has accepted it; the item is then `decided`, and later `delivered`.
	 * @param {Item} shown
	 * @param {Choice} choice
	 * @returns {Promise<void>}
	 */
	async decide(shown, choice) {
		if (this.isLoggedOut.value) throw Problem.of("loggedOut", {});
		await this.model.decide(shown, choice);
	}

	/**
	 * Reads a pairing link, and whom it authenticates. Nothing is paired before `accept`.
	 * @param {string} link
	 * @returns {Promise<import('./types.js').PairingOffer>}
	 */
	async readPairingLink(link) {
		const pairing = await loaded(import("./pair.js"));
		const { accept, ...offer } = await pairing.readPairingLink(
			this.session,
			link,
		);
		return {
			...offer,
			accept: async (replaces, operators, team) =>
				this.paired((await accept(replaces, operators, team)).enforcerId),
		};
	}

	/**
	 * Begins a pairing by its typed code. Exactly one of `confirm` and `abort` ends it.
	 * @param {string} code
	 * @param {string[] | null} operators
	 * @returns {Promise<import('./types.js').Comparing>}
	 */
	async pairByCode(code, operators) {
		const pairing = await loaded(import("./pair.js"));
		const { confirm, ...comparing } = await pairing.pairByCode(
			this.session,
			code,
			operators,
		);
		return {
			...comparing,
			confirm: async (replaces) =>
				this.paired((await confirm(replaces)).enforcerId),
		};
	}

	/**
	 * Ends a pairing, here and at the gateway, there for all devices, and for teams as `pairedTeams`
	 * says. Here it ends even if the gateway cannot be told; then that is the problem.
	 * @param {string} enforcerId
	 * @returns {Promise<void>}
	 */
	async unpair(enforcerId) {
		try {
			const { unpair } = await loaded(import("./unpair.js"));
			await unpair(this.session, enforcerId);
		} finally {
			await this.listAgents();
		}
	}

	/**
	 * The teams through which an agent asks this person.
	 * @param {string} enforcerId
	 * @returns {Promise<import('./types.js').PairedTeam[]>}
	 */
	async pairedTeams(enforcerId) {
		const { pairedTeams } = await loaded(import("./unpair.js"));
		return pairedTeams(this.session, enforcerId);
	}

	/**
	 * Reads the presence of the agents again.
	 * @returns {Promise<void>}
	 */
	async refreshAgents() {
		this.agents.set(await listAgents(this.session, true));
	}

	/**
	 * The sessions of an agent from which this device has seen requests, newest first.
	 * @param {string} enforcerId
	 * @returns {Promise<Session[]>}
	 */
	async sessions(enforcerId) {
		const { readSessions } = await loaded(import("./sessions.js"));
		return readSessions(this.session, enforcerId);
	}

	/**
	 * Sends a text to an agent, encrypted.
	 * @param {string} enforcerId
	 * @param {string} text
	 * @param {string | null} [sessionId]
	 * @returns {Promise<import('./types.js').SentPrompt>}
	 */
	async prompt(enforcerId, text, sessionId = null) {
		const { sendPrompt } = await loaded(import("./prompts.js"));
		return sendPrompt(this.session, enforcerId, text, sessionId);
	}

	/**
	 * The state of a prompt.
	 * @param {import('./types.js').SentPrompt} sent
	 * @returns {Promise<import('./types.js').SentPrompt>}
	 */
	async promptStatus(sent) {
		const { readPrompt } = await loaded(import("./prompts.js"));
		return readPrompt(this.session, sent);
	}

	/**
	 * Orders to enforcers, and the permissions that this device gave.
	 * @template T
	 * @param {(orders: typeof import('./orders.js'), session: Shared) => Promise<T>} act
	 * @returns {Promise<T>}
	 */
	async orders(act) {
		return act(await loaded(import("./orders.js")), this.session);
	}

	/**
	 * The teams of this person, and joining one.
	 * @template T
	 * @param {(teams: typeof import('./teams.js'), session: Shared) => Promise<T>} act
	 * @returns {Promise<T>}
	 */
	async teams(act) {
		return act(await loaded(import("./teams.js")), this.session);
	}

	/**
	 * The own seats in teams.
	 * @template T
	 * @param {(seats: typeof import('./teamseat.js'), session: Shared) => Promise<T>} act
	 * @returns {Promise<T>}
	 */
	async seats(act) {
		return act(await loaded(import("./teamseat.js")), this.session);
	}

	/** @returns {Promise<Device[]>} */
	async devices() {
		const { listed } = await readDevices(this.session);
		const nicknames = await this.session.store.nicknames();
		return listed.map((device) => ({
			...device,
			nickname: nicknames[device.deviceId] ?? null,
		}));
	}

	/**
	 * Calls a device by another name, on this device only: the name that it joined with is signed,
	 * and a gateway that could change it could pass one device off as another.
	 * @param {string} deviceId
	 * @param {string} name
	 */
	async renameDevice(deviceId, name) {
		const { renameDevice } = await loaded(import("./enrol.js"));
		await renameDevice(
			this.session.store,
			await this.devices(),
			deviceId,
			name,
		);
	}

	/**
	 * A link that a new device of this person opens.
	 * @returns {Promise<import('./types.js').DeviceOffer>}
	 */
	async inviteDevice() {
		const { inviteDevice } = await loaded(import("./invite.js"));
		return inviteDevice(this.session);
	}

	/**
	 * Reads the link of a new device. Nothing is believed or published before `addDevice`.
	 * @param {string} link
	 * @returns {Promise<import('./types.js').NewDevice>}
	 */
	async readNewDevice(link) {
		const { parseEndorsement } = await loaded(import("./endorsement.js"));
		const { bundle, at } = await parseEndorsement(link);
		return { deviceId: bundle.deviceId, name: bundle.name, at, link };
	}

	/**
	 * Adds a device, once a person has compared its name and id with its screen.
	 * @param {import('./types.js').NewDevice} device
	 * @returns {Promise<Problem[]>} why a team does not count it yet
	 */
	async addDevice(device) {
		const { parseEndorsement } = await loaded(import("./endorsement.js"));
		const { addDevice } = await loaded(import("./enrol.js"));
		const { addToSeats } = await loaded(import("./teamseat.js"));
		const request = await parseEndorsement(device.link);
		await addDevice(this.session, request);
		this.session.offer = null;
		void this.share();
		return addToSeats(this.session, [request.bundle]);
	}

	/**
	 * Revokes a device for ever. Of this very device too. A team that does not follow does not stop
	 * it.
	 * @param {string} deviceId
	 * @returns {Promise<Problem[]>} what a person should know of the own seats
	 */
	async revokeDevice(deviceId) {
		const { session } = this;
		const { learnTeams } = await loaded(import("./teams.js"));
		const { clearSeats } = await loaded(import("./teamseat.js"));
		const isOwn = deviceId === this.identity.deviceId;
		if (isOwn) await readDevices(session);
		// Before the word of that device counts for nothing.
		const notices = await learnTeams(session).catch((error) => [
			Problem.of("teamsUnread", { problem: asProblem(error) }),
		]);
		const clear = () => clearSeats(session, new Set([deviceId]));
		// A device that is revoked signs nothing any more, so it gives up its own seats first.
		if (isOwn) {
			notices.push(...(await clear()));
			await revokeDevice(session, deviceId);
			return notices;
		}
		const { vouchForOwn } = await loaded(import("./introductions.js"));
		// While the introductions by that device count.
		await vouchForOwn(session).catch((error) => {
			notices.push(Problem.of("notVouched", { problem: asProblem(error) }));
		});
		await revokeDevice(session, deviceId);
		// Another device may have added one since.
		await readDevices(session).catch(asProblem);
		return [...notices, ...(await clear())];
	}

	/**
	 * Decisions about this approver's requests, newest first, as this device has seen them.
	 * `before` is `decidedAt` of the last entry that is known.
	 * @param {string | null} [before]
	 * @param {number} [limit]
	 * @returns {Promise<HistoryEntry[]>}
	 */
	async history(before = null, limit = 50) {
		const { readHistory } = await loaded(import("./history.js"));
		return readHistory(this.session, before, limit);
	}

	/**
	 * The name and text of a file that `countersign verify` checks offline. It has the artifact in
	 * plain.
	 * @param {string} requestId
	 * @returns {Promise<{ name: string, text: string }>}
	 */
	async exportDecision(requestId) {
		const { exportDecision } = await loaded(import("./history.js"));
		return exportDecision(this.session, requestId);
	}

	/**
	 * Whether this device is notified of requests while the page is closed, or why it cannot be.
	 * @returns {Promise<import('./types.js').Notifications>}
	 */
	async notifications() {
		const { readNotifications } = await loaded(import("./notifications.js"));
		return readNotifications(this.session);
	}

	/** Lets this device be notified. The browser asks for permission. */
	async notifyHere() {
		const { notifyHere } = await loaded(import("./notifications.js"));
		await notifyHere(this.session);
	}

	async silenceHere() {
		const { silenceHere } = await loaded(import("./notifications.js"));
		await silenceHere(this.session);
	}

	/** @param {string} notificationId */
	async testNotification(notificationId) {
		const { testNotification } = await loaded(import("./notifications.js"));
		await testNotification(this.session, notificationId);
	}

	/**
	 * Registers for notifications anew, if that has become necessary. Nothing else depends on it.
	 */
	async renewNotifications() {
		const { renewNotifications } = await loaded(import("./notifications.js"));
		await renewNotifications(this.session);
	}

	/**
	 * Removes keys, credential and history from this browser. Tokens of a sign-in are ended too.
	 * @returns {Promise<string | null>} where the person is signed out at the provider as well, if
	 *   there is such a place
	 */
	async logout() {
		// The gateway may be away; then the subscription is gone, and the gateway learns of it when
		// it next uses it.
		await this.silenceHere().catch(() => {});
		const tokens = await this.session.store.tokens();
		const signOut = tokens
			? (await loaded(import("./signin.js"))).signOut
			: null;
		this.session.tabs.postMessage("logout");
		this.end();
		await Store.remove();
		return signOut && tokens ? signOut(tokens, this.session.page) : null;
	}

	/** The name of the person who has signed in, as the provider says. */
	async signedInName() {
		return (await this.session.store.tokens())?.name ?? null;
	}

	/** The person has signed in again, here or in another tab, or has to. */
	async tokensChanged() {
		const { credential } = this.session.client;
		if (typeof credential === "object") credential?.forget();
		if (this.model.isRunning) await this.model.refresh();
		else this.start();
	}

	end() {
		this.stop();
		this.session.store.close();
		this.session.tabs.close();
		this.isLoggedOut.set(true);
	}

	/** Another tab has paired, or ended a pairing. */
	async reload() {
		await this.session.reload();
		await this.listAgents();
		if (this.model.isRunning) await this.model.refresh();
	}

	/**
	 * A new pairing: requests that waited for it open, and the other devices learn of it.
	 * @param {string} enforcerId
	 * @returns {Promise<Agent>}
	 */
	async paired(enforcerId) {
		await this.listAgents();
		if (this.model.isRunning) void this.model.refresh();
		void this.share();
		const agent = this.agents.value.find(
			(known) => known.enforcerId === enforcerId,
		);
		if (agent === undefined) throw Problem.of("notPaired", {});
		return agent;
	}

	async listAgents() {
		const known = new Map(
			this.agents.value.map(({ enforcerId, presence }) => [
				enforcerId,
				presence,
			]),
		);
		const agents = await listAgents(this.session, false);
		this.agents.set(
			agents.map((agent) => ({
				...agent,
				presence: known.get(agent.enforcerId) ?? null,
			})),
		);
	}

	/**
	 * Takes over what other devices know of enforcers, and tells them what this one knows. The gateway
	 * is told of pairings that were ended here while it was away. Nothing else depends on it.
	 */
	async share() {
		const share = async () => {
			const { shareEnforcers } = await loaded(import("./introductions.js"));
			await shareEnforcers(this.session, () => this.listAgents());
		};
		const tell = async () => {
			const { tellUnpaired } = await loaded(import("./unpair.js"));
			await tellUnpaired(this.session);
		};
		// Learning an agent that another device has paired again forgets what was not told.
		for (const act of [tell, share])
			try {
				await act();
			} catch (error) {
				if (!(error instanceof Problem)) throw error;
			}
	}
}
