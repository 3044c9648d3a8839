// The texts about agents, in German.

import { counting } from "./count.js";

const { digits } = counting("de");

/** @type {typeof import('./agents.js').agentTexts} */
export const agentTexts = {
	title: "Agenten",
	pair: "Agenten koppeln",
	online: "Online",
	offline: "Offline",
	unknown: "Noch nicht gesehen",
	seen: "Zuletzt gesehen",
	empty: {
		title: "Noch keine Agenten gekoppelt",
		text: "Führe auf dem Rechner des Agenten `countersign pair` aus. Öffne dann den Link hier oder scanne den QR-Code.",
		action: "Agenten koppeln",
	},
	sessions: "Sitzungen",
	noSessions:
		"Noch keine Sitzungen. Eine Sitzung erscheint hier mit ihrer ersten Anfrage.",
	snapshots: "Momentaufnahmen",
	since: "Seit",
	updated: "Aktualisiert",
	ended: "Beendet",
	paired: "Gekoppelt",
	introducedBy: "Vorgestellt von",
	host: "Rechner",
	workspace: "Arbeitsverzeichnis",
	repo: "Repository",
	id: "ID",
	how: "Verbindung",
	transports: {
		websocket: "WebSocket",
		sse: "Ereignisstrom",
		poll: "Abfrage",
	},
	reported: "Vom Agenten über das Gateway gemeldet, nicht geprüft.",
	prompt: "Diesem Agenten schreiben",
	promptField: "Nachricht",
	promptHint:
		"Nur dieser Agent kann sie lesen. Er bekommt die Nachricht bei seinem nächsten Schritt und entscheidet, was er damit macht.",
	promptSession: "Sitzung",
	anySession: "Beliebige Sitzung",
	send: "Senden",
	sending: "Wird gesendet…",
	promptReason: (reason) => ` Grund (ungeprüft): ${reason}`,
	promptStates: {
		queued: "Gesendet. Der Agent hat sie noch nicht abgeholt.",
		delivered: "Dem Agenten zugestellt.",
		rejected: "Der Agent hat sie nicht angenommen.",
		error: "Der Agent konnte sie nicht verwenden.",
		expired: "Sie ist abgelaufen, bevor der Agent sie abgeholt hat.",
	},
	orders: {
		queued:
			"Gesendet. Der Rechner des Agenten bestätigt es beim nächsten Aufruf des Agenten.",
		delivered: "Vom Rechner des Agenten bestätigt.",
		forged:
			"Das Gateway sagt, dass es zugestellt wurde, aber der Rechner des Agenten hat es nicht bestätigt. Vielleicht greift jemand ein: Melde es dem Betreiber des Gateways.",
		rejected: "Der Rechner des Agenten hat es abgelehnt.",
		error: "Der Rechner des Agenten konnte es nicht ausführen.",
		expired:
			"Es ist abgelaufen, bevor der Rechner des Agenten es abgeholt hat.",
	},
	pause: {
		title: "Diesen Agenten pausieren",
		hint: "Während ein Agent pausiert, wird alles, wonach er dich fragen würde, sofort abgelehnt, und seine Erlaubnisse gelten nicht.",
		until: (time) => `Von diesem Gerät aus pausiert bis ${time}.`,
		lasting: "Wie lange",
		lasts: [
			[900, "15 Minuten"],
			[3600, "1 Stunde"],
			[28800, "8 Stunden"],
			[86400, "24 Stunden"],
		],
		action: "Pausieren",
		resume: "Fortsetzen",
	},
	permissions: {
		title: "Erlaubnisse",
		none: "Dieses Gerät kennt keine aktiven Erlaubnisse. Auf anderen Geräten erteilte stehen dort.",
		given: "Erteilt mit",
		until: (time) => `Gültig bis ${time}.`,
		session: (time) => `Gültig, bis die Sitzung endet, höchstens bis ${time}.`,
		unused:
			"Noch nicht verwendet, soweit der Rechner des Agenten gemeldet hat.",
		used: (n) => `Laut dem Rechner des Agenten ${digits(n)}-mal verwendet`,
		last: "zuletzt",
		end: "Beenden",
		ending:
			"Du hast sie beendet. Der Rechner des Agenten hat das noch nicht bestätigt.",
	},
	unpair: "Entkoppeln",
	unpairTitle: (who) => `${who} entkoppeln?`,
	unpairText:
		"Du kannst seine Anfragen auf diesem Gerät dann nicht mehr öffnen oder genehmigen. Du kannst ihn jederzeit wieder koppeln.",
	unpairTeam: (team) =>
		`Damit endet die Kopplung für alle Mitglieder des Teams ${team}, nicht nur für dich. Wem das Team gehört, kann den Agenten wieder mit ihm koppeln.`,
	unpairMember: (team) =>
		`Du kannst seine Anfragen auf diesem Gerät dann nicht mehr öffnen oder genehmigen. Das Team ${team} bleibt gekoppelt, und der Agent fragt dich weiterhin: Entscheide auf einem anderen Gerät.`,
	unpaired: (who) => `${who} ist nicht mehr gekoppelt`,
	gone: {
		title: "Dieser Agent ist nicht gekoppelt",
		text: "Vielleicht wurde er auf diesem Gerät entkoppelt.",
		action: "Alle Agenten",
	},
};
