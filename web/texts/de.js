// German. People are addressed with "du".

import { counting } from "./count.js";
import { agentTexts } from "./de-agents.js";
import { inboxTexts } from "./de-inbox.js";
import { notificationTexts } from "./de-notifications.js";
import { problemTexts } from "./de-problems.js";
import { requestTexts } from "./de-requests.js";
import { signInTexts } from "./de-signin.js";
import { teamTexts } from "./de-teams.js";

const { count } = counting("de");

/** @type {import('../texts.js').Translation} */
export const texts = {
	notifications: notificationTexts,
	product: "Countersign",
	skip: "Zum Inhalt springen",
	mainNavigation: "Hauptmenü",
	nav: {
		inbox: "Eingang",
		agents: "Agenten",
		history: "Verlauf",
		devices: "Geräte",
		settings: "Einstellungen",
	},
	waitingBadge: (n) => count(n, "Anfrage wartet", "Anfragen warten"),
	title: (view, waiting) =>
		`${waiting ? `(${waiting}) ` : ""}${view} – Countersign`,
	loading: "Wird geladen…",
	cancel: "Abbrechen",
	close: "Schließen",
	copy: "Kopieren",
	copied: "Kopiert",
	notCopied:
		"Dieser Browser erlaubt das Kopieren hier nicht. Markiere den Text und kopiere ihn selbst.",
	tryAgain: "Erneut versuchen",
	defect: {
		title: "Etwas ist schiefgegangen",
		text: "Lade die Seite neu. Wenn das nicht hilft, melde es dem Betreiber des Gateways.",
		reload: "Neu laden",
	},
	noSuchPage: {
		title: "Seite nicht gefunden",
		text: "Der Link ist vielleicht unvollständig. Kopiere ihn ganz und versuche es erneut.",
		action: "Zum Eingang",
	},

	connection: {
		offline:
			"Offline. Diese Seite ist vielleicht veraltet und wird aktualisiert, sobald das Gateway wieder da ist.",
		refused:
			"Das Gateway akzeptiert die Zugangsdaten dieses Geräts nicht mehr. Bitte um eine neue Einladung, melde dich dann in den Einstellungen ab und tritt wieder bei.",
		waiting: "Bestätige dieses Gerät auf einem, das du schon verwendest.",
		finish: "So geht’s",
		revoked:
			"Dieses Gerät wurde gesperrt und kann nicht mehr entscheiden. Melde dich ab und tritt wieder bei.",
		settings: "Einstellungen",
	},

	welcome: {
		title: "Entscheide, was deine Agenten dürfen",
		lead: "Sieh, was ein Agent vorhat, bevor er es tut. Du genehmigst oder lehnst ab, mit einem Schlüssel, der diesen Browser nie verlässt.",
		field: "Einladungslink",
		hint: "Diesen Link bekommst du von deiner Administration. Er gilt einmal und läuft nach 24 Stunden ab.",
		placeholder: "https://…/#/join/…",
		action: "Weiter",
		joinFirst:
			"Der geöffnete Link braucht einen Browser, der schon beigetreten ist. Tritt zuerst bei und öffne ihn dann erneut.",
		points: [
			[
				"lock",
				"Anfragen sind für deine Geräte verschlüsselt. Das Gateway kann sie nicht lesen.",
			],
			[
				"check",
				"Nur deine Signatur zählt, und nur für das, was dir gezeigt wurde.",
			],
			[
				"devices",
				"Handy verloren? Sperre es von einem anderen deiner Geräte aus.",
			],
		],
	},
	join: {
		title: "Countersign beitreten",
		lead: "Dieser Browser erzeugt eigene Schlüssel. Sie verlassen ihn nie.",
		name: "Gerätename",
		nameHint: "Daran erkennst du dieses Gerät in deiner Liste.",
		action: "Beitreten",
		joining: "Schlüssel werden erzeugt…",
		already: (id) => `Dieser Browser ist schon als ${id} beigetreten.`,
		alreadyHint:
			"Um die neue Einladung hier zu verwenden, melde dich zuerst ab. Das löscht die Schlüssel dieses Browsers.",
		toInbox: "Zum Eingang",
		toSettings: "Zu den Einstellungen",
		done: "Du bist beigetreten",
		defaultName: (browser, system) => `${browser} auf ${system}`,
		aBrowser: "Browser",
		aComputer: "Computer",
		notApprover: {
			title: "Diese Einladung ist für ein Programm",
			text: "Sie hat Zugangsdaten für ein Programm erzeugt. Kopiere diesen Schlüssel jetzt: Er wird nur einmal angezeigt und hier nicht gespeichert.",
			key: "API-Schlüssel",
		},
	},
	enrol: {
		title: "Dieses Gerät hinzufügen",
		lead: "Öffne diesen Link auf einem Gerät, das du schon verwendest, oder scanne ihn mit dessen Kamera. Bestätige dort, wenn Name und ID übereinstimmen.",
		name: "Name",
		id: "ID",
		link: "Link dieses Geräts",
		qrLabel: "QR-Code mit dem Link dieses Geräts",
		noQr: "Der Link ist zu lang für einen QR-Code. Kopiere ihn auf das andere Gerät.",
		waiting: "Warten auf das andere Gerät…",
		terminal: "Oder im Terminal: countersign devices add LINK",
		valid: "Gültig bis",
		expired: "Dieser Link ist abgelaufen.",
		renew: "Neuen Link erstellen",
		done: "Dieses Gerät ist bereit",
		confirmTitle: "Bestätige auf deinem anderen Gerät",
		confirmLead:
			"Es zeigt jetzt dieses Gerät. Bestätige dort, wenn Name und Ziffern übereinstimmen.",
		digits: "Ziffern",
	},

	pair: {
		title: "Agenten koppeln",
		lead: "Führe auf dem Rechner des Agenten `countersign pair` aus. Es zeigt einen Link, einen QR-Code und einen Kurzcode.",
		how: "Art der Kopplung",
		byLink: "Link",
		byCamera: "Kamera",
		byCode: "Kurzcode",
		linkField: "Kopplungslink",
		linkHint:
			"Der sicherste Weg: Der Link beweist, wer auf der anderen Seite ist.",
		codeField: "Kurzcode",
		codeHint:
			"Acht Buchstaben und Ziffern. Danach vergleichst du fünfzehn Ziffern.",
		action: "Koppeln",
		opened: "Ein Agent möchte sich koppeln",
		openedText:
			"Der Link beweist, dass er von diesem Agenten stammt. Kopple nur, wenn du das selbst begonnen oder erwartet hast. Der Agent kann dich dann um Genehmigungen bitten.",
		agentId: "Agent",
		label: "Name (ungeprüft)",
		known:
			"Dieses Gerät ist schon mit diesem Agenten gekoppelt und hat denselben Schlüssel.",
		otherKeyTitle: "Der Schlüssel dieses Agenten hat sich geändert",
		otherKeyText:
			"Der neue Schlüssel ersetzt den alten. Anfragen mit dem alten Schlüssel lassen sich hier dann nicht mehr öffnen. Fahre nur fort, wenn der Agent neu eingerichtet wurde.",
		replace:
			"Der Agent wurde neu eingerichtet. Ersetze seinen Schlüssel auf diesem Gerät.",
		reading: "Link wird gelesen…",
		pairing: "Wird gekoppelt…",
		done: (who) => `Mit ${who} gekoppelt`,
		doneText:
			"Seine Anfragen erscheinen in deinem Eingang. Mehr ist nicht zu tun.",
		toAgent: "Agenten anzeigen",
		compareTitle: "Vergleiche diese Ziffern",
		compareText:
			"Ein Agent möchte sich koppeln. Auf seinem Bildschirm müssen dieselben fünfzehn Ziffern stehen. Bis du sie verglichen hast, ist sein Name ungeprüft.",
		same: "Sie stimmen überein",
		differ: "Sie stimmen nicht überein",
		comparing: "Ziffern werden berechnet…",
		aborted:
			"Nicht gekoppelt. Wenn die Ziffern nicht übereinstimmten, greift vielleicht jemand ein: Kopple über dieses Gateway erst wieder, wenn du den Grund kennst.",
		notNow: "Nicht jetzt",
		operators: "Wer arbeitet mit diesem Agenten? (freiwillig)",
		operatorsHint:
			"IDs von Genehmigenden, mit Kommas dazwischen. Wo eine Anfrage die Genehmigung von jemand anderem verlangt, können diese Personen sie nicht genehmigen.",
		team: "Team (optional)",
		teamHint: "Die Mitglieder des Teams werden gefragt, nicht du allein.",
		onlyMe: "Nur ich",
		nobody: "Niemand arbeitet mit ihm. Er läuft von selbst.",
	},
	camera: {
		start: "QR-Code scannen",
		label: "Kamerabild",
		aim: "Richte die Kamera auf den QR-Code.",
		missing:
			"Dieser Browser kann hier keine Kamera verwenden. Scanne den Code mit der Kamera-App deines Handys, die den Link hier öffnet, oder füge den Link ein.",
		denied:
			"Die Kamera ist nicht verfügbar. Erlaube sie für diese Seite in den Einstellungen des Browsers, oder füge den Link ein.",
		other: "Dieser QR-Code ist für etwas anderes.",
	},

	inbox: {
		title: "Eingang",
		filter: "Filtern",
		filterLabel: "Anfragen filtern",
		noMatch: "Keine passenden Anfragen.",
		more: "Es gibt weitere Anfragen. Sie erscheinen, während du entscheidest.",
		ended: "Gerade beendet",
		earlier: (n, names) =>
			`${count(n, "Anfrage kam", "Anfragen kamen")}, bevor dieses Gerät dabei war.${
				names.length > 0 ? ` Entscheide sie auf ${names.join(" oder ")}.` : ""
			}`,
		left: (who, state) => `${state}: eine Anfrage von ${who}`,
		arrived: (who, kind) => `Neue Anfrage: ${kind} von ${who}`,
		unpairedEmpty: {
			title: "Kopple deinen ersten Agenten",
			text: "Agenten können dich fragen, sobald sie mit diesem Gerät gekoppelt sind. Das dauert eine Minute.",
			action: "Agenten koppeln",
		},
		empty: {
			title: "Alles erledigt",
			text: "Neue Anfragen deiner Agenten erscheinen hier. Zum Ausprobieren führe auf dem Rechner eines Agenten aus:",
			command: "countersign run -- echo hello",
		},
	},
	who: {
		nobody: "unbekannt",
		asGatewaySays: "ungeprüft",
		notPaired: "nicht mit diesem Gerät gekoppelt",
	},
	kinds: {
		"command.review": "Befehl",
		"patch.review": "Patch",
		"plan.review": "Plan",
		"task.review": "Aufgabe",
		"checkpoint.review": "Zwischenstand",
		tool: "Tool-Aufruf",
		question: "Frage",
		other: "Anfrage",
		unknown: "Unlesbare Anfrage",
	},
	time: {
		none: "ohne Frist",
		expired: "abgelaufen",
		left: (time) => `noch ${time}`,
		days: (n) => count(n, "Tag", "Tage"),
		hours: (n) => `${n} Std.`,
		ago: {
			now: "gerade eben",
			minutes: (n) => `vor ${n} Min.`,
			hours: (n) => `vor ${n} Std.`,
			days: (n) => `vor ${count(n, "Tag", "Tagen")}`,
		},
	},
	states: {
		pending: "Wartet",
		deciding: "Wird gesendet…",
		decided: "Entschieden",
		delivered: "Zugestellt",
		expired: "Abgelaufen",
		withdrawn: "Zurückgezogen",
		cancelled: "Abgebrochen",
	},
	verdicts: { approve: "Genehmigt", reject: "Abgelehnt" },

	...inboxTexts,
	...requestTexts,
	signIn: signInTexts,
	teams: teamTexts,
	problems: problemTexts,
	agents: agentTexts,

	history: {
		title: "Verlauf",
		lead: "Entscheidungen, die dieses Gerät getroffen oder gesehen hat. Sie bleiben nur in diesem Browser.",
		empty: {
			title: "Noch keine Entscheidungen",
			text: "Deine Entscheidungen erscheinen hier. Du kannst jede als Datei sichern, die sie beweist.",
			action: "Zum Eingang",
		},
		byOther: (device) => `auf Gerät ${device}`,
		filterLabel: "Verlauf filtern",
		more: "Ältere anzeigen",
		save: "Als Datei sichern",
		saved: (name) => `Gesichert als ${name}`,
		saveHint:
			"Die Datei enthält die Anfrage unverschlüsselt. Prüfe sie überall mit: countersign verify FILE",
		unverified: "ungeprüft",
		scopes: {
			once: "diese Anfrage",
			timebox: "für eine Zeit",
			session: "für die Sitzung",
		},
		validUntil: "Gültig bis",
		scope: "Umfang",
		decision: "Entscheidung",
		device: "Gerät",
		noMatch: "Keine passenden Entscheidungen.",
		olderUses: "Ältere Verwendungen sind nicht aufgeführt.",
	},

	devices: {
		title: "Geräte",
		lead: "Jeder Browser und jedes Terminal, mit dem du entscheidest, hat eigene Schlüssel. Jedes davon kann entscheiden.",
		add: "Gerät hinzufügen",
		standings: {
			own: "Dieses Gerät",
			trusted: "Aktiv",
			unverified: "Ungeprüft",
			revoked: "Gesperrt",
			ended: "Vom Gateway entfernt",
		},
		added: "Hinzugefügt",
		by: "von",
		revokedAt: "Gesperrt",
		itself: "sich selbst",
		former: (n) => count(n, "früheres Gerät", "frühere Geräte"),
		unverifiedTitle: "Ein Gerät ist ungeprüft",
		unverifiedText:
			"Keines deiner vertrauten Geräte hat es hinzugefügt. Wenn du es nicht kennst, sperre es.",
		revoke: "Sperren",
		revokeTitle: (name) => `${name} sperren?`,
		addedStays: (name, id) =>
			`Es hat ${name} (${id}) hinzugefügt, das aktiv bleibt. Wenn du jenes Gerät nicht kennst, sperre es auch.`,
		revokeText:
			"Das lässt sich nicht rückgängig machen. Agenten lehnen seine Entscheidungen innerhalb einer Minute ab.",
		revokeOwnText:
			"Du verwendest dieses Gerät gerade. Es kann dann nicht mehr entscheiden. Das lässt sich nicht rückgängig machen.",
		revoked: (name) => `${name} wurde gesperrt`,
		addTitle: "Gerät hinzufügen",
		addLead:
			"Scanne diesen Code mit dem neuen Gerät, oder öffne dort den Link.",
		qrLabel: "QR-Code mit dem Link für das neue Gerät",
		offerLink: "Link für das neue Gerät",
		offerWaiting: "Warten auf das neue Gerät…",
		otherWay: "Das neue Gerät zeigt schon einen Link",
		otherWayLead:
			"Für den Fall, dass du dort mit einer Einladung beigetreten bist oder dich angemeldet hast.",
		signInLead:
			"Melde dich auf dem neuen Gerät an. Es zeigt dann einen QR-Code und einen Link.",
		digits: "Ziffern",
		compareDigits:
			"Sein Bildschirm muss denselben Namen und dieselben Ziffern zeigen. Danach kann es für dich entscheiden.",
		rename: "Umbenennen",
		renameTitle: (name) => `${name} umbenennen`,
		renameText:
			"Nur dieses Gerät zeigt den neuen Namen. Agenten und deine anderen Geräte behalten den Namen, mit dem es beigetreten ist.",
		joinedAs: (name) => `Beigetreten als ${name}`,
		save: "Speichern",
		linkField: "Link des neuen Geräts",
		linkHint: "Oder scanne seinen QR-Code.",
		continue: "Weiter",
		compareTitle: "Ist das dein neues Gerät?",
		compareText:
			"Auf seinem Bildschirm müssen derselbe Name und dieselbe ID stehen. Danach kann es für dich entscheiden.",
		confirm: "Ja, hinzufügen",
		deny: "Nein",
		adding: "Wird hinzugefügt…",
		addedDone: (name) => `${name} wurde hinzugefügt`,
		addedText:
			"Agenten akzeptieren es innerhalb einer Minute, und es kann Anfragen öffnen, die sie ab dann senden.",
		done: "Fertig",
		id: "ID",
		name: "Name",
	},

	settings: {
		title: "Einstellungen",
		identity: "Dieses Gerät",
		approver: "Person",
		tenant: "Mandant",
		name: "Name",
		id: "ID",
		joined: "Beigetreten",
		appearance: "Darstellung",
		theme: "Farbschema",
		themes: { system: "Automatisch", light: "Hell", dark: "Dunkel" },
		language: "Sprache",
		languageAutomatic: "Automatisch",
		keyboard: "Tastatur",
		keyboardText: "Alles geht auch ohne Maus.",
		showKeys: "Tastenkürzel anzeigen",
		logout: "Abmelden",
		logoutText:
			"Entfernt Schlüssel, Zugangsdaten und Verlauf aus diesem Browser. Um ihn wieder zu verwenden, brauchst du eine neue Einladung.",
		logoutTitle: "Von diesem Browser abmelden?",
		logoutRevoke:
			"Dieses Gerät auch sperren, damit seine Signatur nirgends mehr zählt",
		logoutLast:
			"Wenn das dein einziges Gerät ist, muss die Administration deine Geräte zurücksetzen, bevor du wieder beitreten kannst.",
		logoutAction: "Abmelden",
		loggedOut: "Abgemeldet. In diesem Browser sind keine Daten mehr von dir.",
		about: "Über diese Seite",
		aboutText:
			"Diese Seite kommt von deinem Gateway und läuft in deinem Browser. Anfragen werden hier entschlüsselt und Entscheidungen hier signiert, nicht auf dem Gateway.",
	},

	help: {
		title: "Tastenkürzel",
		keys: [
			["j", "Nächste Anfrage"],
			["k", "Vorige Anfrage"],
			["Enter", "Öffnen"],
			["a", "Genehmigen (in einer Anfrage)"],
			["r", "Ablehnen (in einer Anfrage)"],
			["x", "Auswählen (im Eingang)"],
			["/", "Filtern, oder in einer Anfrage suchen"],
			["u", "Zurück zum Eingang"],
			["g i", "Eingang"],
			["g a", "Agenten"],
			["g h", "Verlauf"],
			["g d", "Geräte"],
			["g s", "Einstellungen"],
			["?", "Diese Liste anzeigen"],
		],
	},
};
