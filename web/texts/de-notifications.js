// The texts about notifications, in German.

/** @type {typeof import('./notifications.js').notificationTexts} */
export const notificationTexts = {
	title: "Benachrichtigungen",
	on: "Du bekommst auf diesem Gerät eine Benachrichtigung, wenn eine Anfrage eintrifft, auch wenn die Seite geschlossen ist.",
	off: "Lass dich auf diesem Gerät benachrichtigen, wenn eine Anfrage eintrifft, auch wenn die Seite geschlossen ist. Die Benachrichtigung enthält nie die Anfrage selbst.",
	failing: (why) =>
		`Die letzte Benachrichtigung kam nicht an: ${why}. Countersign versucht es weiter. Wenn das so bleibt, schalte Benachrichtigungen aus und wieder ein.`,
	turnOn: "Einschalten",
	turnOff: "Ausschalten",
	test: "Test senden",
	tested:
		"Ein Test ist unterwegs. Wenn er nicht erscheint, prüfe die Benachrichtigungseinstellungen deines Systems für diesen Browser.",
	turnedOn: "Benachrichtigungen sind eingeschaltet",
	turnedOff: "Benachrichtigungen sind ausgeschaltet",
	notices: {
		waiting: "Eine Anfrage wartet auf deine Entscheidung.",
		test: "Benachrichtigungen funktionieren auf diesem Gerät.",
		changed:
			"Öffne diese Seite einmal, um weiter Benachrichtigungen zu bekommen.",
		approve: "Genehmigen…",
		reject: "Ablehnen…",
	},
	hindrances: {
		unsupported: () =>
			"Dieser Browser kann hier keine Benachrichtigungen anzeigen. Manche Browser erlauben sie nicht im privaten Fenster oder bevor die Seite installiert ist.",
		denied: () =>
			"Dieser Browser blockiert Benachrichtigungen dieser Seite. Erlaube sie in den Browsereinstellungen für diese Website und lade die Seite neu.",
		dismissed: () =>
			"Du hast die Frage des Browsers nicht beantwortet, deshalb hat sich nichts geändert.",
		insecure: () =>
			"Benachrichtigungen gehen nur, wenn die Seite über https geladen wurde.",
		homeScreen: () =>
			"Füge diese Seite auf einem iPhone oder iPad zuerst dem Home-Bildschirm hinzu (Teilen, dann „Zum Home-Bildschirm“) und öffne sie von dort.",
		gateway: (v) =>
			`Dieses Gateway sendet keine Benachrichtigungen${v.reason ? `: ${v.reason}` : ""}. Frage seinen Betreiber.`,
		service: () =>
			"Der Push-Dienst des Browsers hat nicht geantwortet. Prüfe deine Verbindung; manche Browser und Netze blockieren ihn.",
		failed: (v) => `Der Test kam nicht an: ${v.cause}.`,
	},
};
