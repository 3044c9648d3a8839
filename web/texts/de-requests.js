// The texts about a request, its content, and the decision, in German.

import { counting } from "./count.js";

const { count, digits } = counting("de");

/** @type {Record<string, string | undefined>} */
const MODES = {
	100755: "ausführbar",
	120000: "symbolischer Link",
	160000: "Submodul",
	100644: "nicht ausführbar",
};

/** @type {typeof import('./requests.js').requestTexts} */
export const requestTexts = {
	request: {
		gone: {
			title: "Diese Anfrage ist geschlossen",
			text: "Das Gateway sagt, dass sie entschieden oder zurückgezogen wurde oder abgelaufen ist, bevor diese Seite sie gesehen hat.",
			action: "Zum Eingang",
		},
		facts: {
			who: "Angefragt von",
			repo: "Repository",
			revision: "Revision",
			session: "Sitzung",
			asked: "Angefragt",
			ends: "Endet",
			directory: "Verzeichnis",
			program: "Programm",
			id: "Anfrage",
			hash: "SHA-256",
			tool: "Tool",
			server: "MCP-Server",
			file: "Datei",
		},
		details: "Details",
		contentOf: (kind) => `Inhalt: ${kind}`,
		copyContent: "Als Text kopieren",
		also: "Auch in dieser Anfrage",
		unopened: "Diese Anfrage lässt sich nicht genehmigen",
		neverOpened:
			"Diese Anfrage ließ sich auf diesem Gerät nicht öffnen. Du siehst nur, dass sie abgelehnt wurde.",
		unopenedText:
			"Sie wird nicht angezeigt, weil ihr nicht zu trauen ist. Du kannst sie ablehnen.",
		pairHint: "Mit diesem Agenten koppeln",
		notRejectable:
			"Sie ist so fehlerhaft, dass sie sich nicht einmal ablehnen lässt. Sie verschwindet, wenn sie abläuft.",
		strangers: {
			revoked: (id) =>
				`Der Rechner dieses Agenten gehorcht noch deinem gesperrten Gerät ${id}. Er sollte innerhalb einer Minute davon erfahren. Wenn du das danach noch siehst, hält das Gateway es zurück, oder der Rechner kennt das Gerät nicht, das es gesperrt hat: Entkopple den Agenten.`,
			unknown: (id) =>
				`Der Rechner dieses Agenten gehorcht auch ${id} als deinem Gerät, aber dieses Gerät kennt es nicht. Vergleiche die ID mit denen, die deine anderen Geräte anzeigen. Wenn es nicht deines ist, hat jemand die Schlüssel eines deiner Geräte benutzt: Sperre es in einem Terminal mit „countersign devices revoke ${id}“.`,
		},
		careful: "Sieh genau hin",
		marked: (n) =>
			`${count(n, "Zeichen ist", "Zeichen sind")} unsichtbar oder irreführend. Jedes ist eingerahmt und mit seinem Namen gezeigt.`,
		lookAlike: (n, signs, hasMore) =>
			`Wo jedes Zeichen zählt, ${count(n, "sieht aus wie ein anderes", "sehen aus wie andere")}: ${signs}${hasMore ? " …" : ""}. Jedes ist eingerahmt und benannt.`,
		longLine: (n) =>
			`Die längste Zeile hat ${digits(n)} Zeichen. Sie wird ganz gezeigt, umbrochen.`,
		longLineMark: (n) => `${digits(n)} Zeichen`,
		find: "In dieser Anfrage suchen",
		found: (at, of) => (of ? `${at} von ${digits(of)}` : "Keine Treffer"),
		findNext: "Nächster Treffer",
		findPrevious: "Voriger Treffer",
		formatted: "Formatiert",
		source: "Quelltext",
		viewAs: "Anzeigen als",
		largePlan: "Dieser Text ist lang und wird deshalb unformatiert gezeigt.",
	},
	question: {
		verdicts: { approve: "Beantwortet", reject: "Nicht beantwortet" },
		send: "Antwort senden",
		several: "Du kannst mehrere wählen.",
		other: "Etwas anderes",
		words: "Deine Antwort",
		dismiss: "Nicht antworten",
		dismissTitle: "Diese Frage unbeantwortet lassen?",
		dismissHint:
			"Der Agent bekommt deine Begründung. Ohne Begründung fragt er in seinem eigenen Dialog auf seinem Rechner.",
	},
	patch: {
		unified: "Untereinander",
		split: "Nebeneinander",
		layout: "Anordnung",
		files: (n) => count(n, "Datei", "Dateien"),
		added: (n) => `${count(n, "Zeile", "Zeilen")} hinzugefügt`,
		removed: (n) => `${count(n, "Zeile", "Zeilen")} entfernt`,
		fileList: "Dateien in diesem Patch",
		rows: "Zeilen in diesem Patch",
		fold: (path) => `Änderungen an ${path} ausblenden`,
		unfold: (path) => `Änderungen an ${path} anzeigen`,
		unchanged: (n) =>
			`${count(n, "unveränderte Zeile", "unveränderte Zeilen")} anzeigen`,
		skipped: (n) =>
			`${count(n, "unveränderte Zeile", "unveränderte Zeilen")} nicht im Patch`,
		binary: "Binärdatei: Der Patch zeigt ihren Inhalt nicht",
		noLines: "In dieser Datei ändern sich keine Zeilen",
		outside: "Zeilen außerhalb des Patches:",
		broken:
			"Dieser Teil hat weniger Zeilen, als er angibt. Programme, die Patches anwenden, lehnen ihn ab.",
		isBroken:
			"Ein Teil davon ist kein regulärer Patch. Alles wird gezeigt, aber Programme wenden es vielleicht anders an.",
		raw: "Das ist kein Unified Diff. Es wird gezeigt, wie es geschrieben ist.",
		isBinary: "binär",
		mode: (from, to) =>
			`${MODES[to] ?? "Modus"}: ${from === null ? to : `${from} → ${to}`}`,
		change: {
			added: "neu",
			deleted: "gelöscht",
			renamed: "umbenannt",
			copied: "kopiert",
			modified: "",
		},
		lineAdded: "hinzugefügt",
		lineRemoved: "entfernt",
		unnamed: "Datei ohne Namen",
	},
	tree: {
		label: "Inhalt",
		fold: "Einklappen",
		unfold: "Ausklappen",
		members: (n) => count(n, "Feld", "Felder"),
		items: (n) => count(n, "Eintrag", "Einträge"),
	},

	rule: {
		people: (names) =>
			names.length < 2
				? names.join()
				: `${names.slice(0, -1).join(", ")} und ${names[names.length - 1]}`,
		otherTeam: "einem anderen Team",
		oneOf: (n, people) => `eine von ${n} Genehmigungen, von ${people}`,
		approvals: (n, people) =>
			n === 1
				? `eine Genehmigung, von ${people}`
				: `${n} Genehmigungen, von ${people}`,
		later: (time, people, n) =>
			`nach ${time} ${n === 1 ? "wird" : "werden"} auch ${people} gefragt`,
		notBy: (people) => `nicht von ${people}`,
		rejections: (n) => `erst ${n} Ablehnungen verhindern es`,
		comment: {
			approve: "zum Genehmigen ist ein Kommentar nötig",
			reject: "zum Ablehnen ist ein Kommentar nötig",
			always: "zum Genehmigen und zum Ablehnen ist ein Kommentar nötig",
		},
		field: "Kommentar",
		required: "erforderlich",
		hint: "Für den Rechner des Agenten verschlüsselt und mit deiner Entscheidung signiert.",
		approved:
			"Von dir genehmigt. Der Agent wartet, bis genug andere genehmigt haben.",
		rejected:
			"Von dir abgelehnt. Der Agent wartet auf die anderen, denn eine Ablehnung reicht nicht.",
		allowedByOthers:
			"Vom Rechner des Agenten bestätigt: Es wurde zugelassen, weil genug andere es genehmigt haben.",
		rejectedByOthers:
			"Vom Rechner des Agenten bestätigt: Es wurde abgelehnt, weil andere es abgelehnt haben.",
	},

	decide: {
		label: "Deine Entscheidung",
		approve: "Genehmigen",
		reject: "Ablehnen",
		options: "Länger genehmigen…",
		rejectTitle: "Diese Anfrage ablehnen",
		reason: "Begründung",
		optional: "optional",
		reasonHint:
			"Für den Agenten verschlüsselt, der dann einen anderen Weg versuchen kann.",
		noReason:
			"Dieser Agent ist nicht gekoppelt, also lässt sich keine Begründung für ihn verschlüsseln.",
		quick: [
			"Nicht jetzt.",
			"Zu riskant.",
			"Bitte erkläre zuerst, warum.",
			"Mach es anders.",
		],
		quickLabel: "Häufige Begründungen",
		optionsTitle: "Länger genehmigen",
		optionsLead:
			"Genehmigt diese Anfrage und spätere dieser Art, ohne dich noch einmal zu fragen.",
		scope: "Wie lange",
		lasts: [
			[900, "15 Minuten"],
			[3600, "1 Stunde"],
			[14400, "4 Stunden"],
			[86400, "24 Stunden"],
		],
		session: "Bis die Sitzung endet",
		covers: "Umfasst",
		same: "Dasselbe noch einmal (der Agent darf es anders beschreiben)",
		words: "Befehle dieser Art",
		wordsHint:
			"Tippe auf ein Wort, um an seiner Stelle jedes Wort zuzulassen. Optionen und Wörter, die bestimmen, was ausgeführt wird, bleiben gleich.",
		wordsLabel: "Wörter, die übereinstimmen müssen",
		moreWords: "Weitere Wörter dürfen folgen",
		file: "Änderungen an dieser Datei, in dieser Sitzung",
		files: "Änderungen an diesen Dateien, in dieser Sitzung",
		project: "Änderungen in diesem Projekt, in dieser Sitzung",
		grants: {
			unknown: "Eine Erlaubnis, die auf einem anderen Gerät erteilt wurde",
			same: "Dieselbe Anfrage noch einmal, auch wenn der Agent sie anders beschreibt",
			prefix: "Befehle, die beginnen mit",
			words: "Befehle der Form",
			anyWord: "beliebiges Wort",
			more: " und weitere Wörter",
			file: "Alle Änderungen, auch das Löschen, an",
			project: "Alle Änderungen, auch das Löschen, in",
		},
		note: "Notiz an den Agenten",
		summary: {
			lasts: (time, end) => `für ${time}, bis ${end}`,
			session: (end) =>
				`solange die Sitzung des Agenten dauert, auch wenn sie fortgesetzt wird, höchstens bis ${end}`,
			same: (time) => `Erlaubt dieselbe Anfrage noch einmal, ${time}.`,
			covers: "Erlaubt, ohne dich noch einmal zu fragen: ",
			words: (time) =>
				`, ${time}. Bei Befehlen mit Pipes, Umleitungen oder Ersetzungen wirst du weiter gefragt.`,
			edits: (time) =>
				`, ${time}. Bei Dateien, die Geheimnisse enthalten oder später etwas ausführen, wirst du weiter gefragt.`,
		},
		approveLonger: "Genehmigen",
		sending: "Wird gesendet…",
		steps: {
			signed: "Signiert",
			decided: "Entschieden",
			delivered: "Zugestellt",
		},
		decidedText:
			"Das Gateway hat sie angenommen. Der Rechner des Agenten hat sie noch nicht bestätigt.",
		outcomes: {
			unsigned:
				"Das Gateway sagt, dass der Rechner des Agenten sie bekommen hat, aber dieses Gerät hat keine signierte Bestätigung.",
			allowed: "Vom Rechner des Agenten bestätigt: Es wurde zugelassen.",
			rejected: "Vom Rechner des Agenten bestätigt: Es wurde abgelehnt.",
			missing:
				"Vom Rechner des Agenten bestätigt: Es wurde abgelehnt, weil zu wenige es genehmigt haben.",
			untrusted:
				"Vom Rechner des Agenten bestätigt: Es wurde abgelehnt, weil die Entscheidung zu spät kam oder dieses Gerät dort nicht vertraut ist.",
			interrupted:
				"Vom Rechner des Agenten bestätigt: Es wurde abgelehnt, weil der Agent unterbrochen wurde.",
			changed:
				"Vom Rechner des Agenten bestätigt: Es wurde abgelehnt, weil sich eine Datei geändert hat oder nicht mehr lesbar ist.",
			forged:
				"Das Gateway sagt, dass der Rechner des Agenten sie bekommen hat.",
		},
		forged:
			"Das Gateway zeigt eine Bestätigung, die nicht zu dieser Entscheidung gehört. Vielleicht greift jemand ein: Melde es dem Betreiber des Gateways.",
		elsewhere: (device) => `Auf einem anderen Gerät entschieden (${device}).`,
		notVerified:
			"Das Gateway sagt das, aber kein hier vertrautes Gerät hat es signiert.",
		contradicted: (state) =>
			`Das Gateway sagt etwas anderes: ${state}, ohne diese Entscheidung. Dieses Gerät zeigt, was es geprüft hat. Vielleicht greift jemand ein: Melde es dem Betreiber des Gateways.`,
		notKept:
			"Es wurde entschieden, aber dieser Browser konnte es nicht speichern. Es fehlt deshalb im Verlauf.",
		expired: "Das Gateway sagt, dass niemand rechtzeitig entschieden hat.",
		withdrawn: "Das Gateway sagt, dass der Agent sie zurückgezogen hat.",
		cancelled: "Das Gateway sagt, dass die Administration sie abgebrochen hat.",
		withdrawnBecause: (reason) => `Grund (ungeprüft): ${reason}`,
		next: "Nächste Anfrage",
		toInbox: "Zurück zum Eingang",
		reasonWas: (reason) => `Begründung: ${reason}`,
		choose:
			"Der Agent bietet diese Auswahl an. Das erste Wort ist, was du signierst; der Rest sind Worte des Agenten.",
		oddActions:
			"Die Auswahl des Agenten lässt sich nicht auf Knöpfen zeigen. Du entscheidest ohne sie.",
	},
};
