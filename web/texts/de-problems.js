// The text of each problem, and what to do about it, in German.

import { counting } from "./count.js";
import { hindranceText } from "./notifications.js";
import { problemText, shown } from "./problems.js";

const { digits } = counting("de");

const THINGS = /** @type {Record<string, string>} */ ({
	artifact: "Der Inhalt",
	ciphertext: "Die verschlüsselte Anfrage",
	deviceBundle: "Der Schlüssel des Geräts",
	deviceId: "Die ID des Geräts",
	enforcerBundle: "Der Schlüssel des Agenten",
	signature: "Die Signatur",
	statement: "Die Aussage über ein Gerät",
	endorsement: "Der Link des neuen Geräts",
	decision: "Die Entscheidung",
	introduction: "Die Vorstellung eines Agenten",
	answer: "Die Antwort des Gateways",
	key: "Der Schlüssel",
	random: "Der Zufallswert",
	record: "Der Eintrag",
	outcome: "Die Bestätigung",
	rule: "Die Regel",
	team: "Das Team",
});

const SUBJECTS = /** @type {Record<string, string>} */ ({
	request: "eine andere Anfrage",
	artifact: "einen anderen Inhalt",
	repository: "ein anderes Repository",
});

const SENT =
	"Du hast deine Entscheidung signiert und gesendet, sie kann also noch wirken.";

/** @type {(values: Record<string, unknown>) => string} */
const thing = (values) => THINGS[String(values.what)] ?? "Etwas";

/** @type {typeof import('./problems.js').problemTexts} */
export const problemTexts = {
	browser: () =>
		"Dieser Browser kann Schlüssel nicht sicher aufbewahren (Ed25519 und X25519). Aktualisiere ihn, oder verwende ein aktuelles Chrome, Edge oder Firefox.",
	storage: (v) =>
		`Dieser Browser kann keine Schlüssel speichern: ${shown(v.cause)}. Verlasse das private Fenster, oder schaffe Speicherplatz.`,
	unreachable: () =>
		"Das Gateway ist nicht erreichbar. Prüfe deine Verbindung und versuche es erneut.",
	slow: () =>
		"Das Gateway hat zu lange für die Antwort gebraucht. Versuche es erneut.",
	refused: (v) =>
		`Das Gateway hat das abgelehnt: ${shown(v.message)} (${v.status} ${shown(v.code)}).`,
	answer: (v) =>
		`Die Antwort des Gateways ist ungültig. Erwartet: ${shown(v.expected)}.`,
	credential: () =>
		"Das Gateway akzeptiert die Zugangsdaten dieses Geräts nicht mehr. Bitte um eine neue Einladung, melde dich dann ab und tritt wieder bei.",

	notNotified: (v) => hindranceText({ ...v, cause: shown(v.cause ?? "") }),

	alreadyJoined: () =>
		"Dieser Browser ist schon beigetreten. Um wieder beizutreten, melde dich zuerst ab; das löscht seine Schlüssel.",
	invitation: () =>
		"Das ist kein Einladungslink. Kopiere den ganzen Link, den du von deiner Administration bekommen hast.",
	noSuchInvitation: () =>
		"Diese Einladung wurde schon verwendet, ist abgelaufen oder wurde zurückgezogen. Bitte um eine neue.",
	deviceName: () =>
		"Gib einen Gerätenamen mit 1 bis 64 sichtbaren Zeichen ein.",

	noSignIn: () =>
		"An diesem Gateway kannst du dich nicht anmelden. Bitte deine Administration um eine Einladung.",
	signInUnknown: () =>
		"Diese Anmeldung wurde nicht in diesem Tab begonnen oder schon verwendet. Melde dich erneut an.",
	signInIssuer: () =>
		"Die Antwort kam von einem anderen Anmeldedienst und wurde nicht beachtet. Melde dich erneut an, und sag deiner Administration Bescheid, wenn es wieder passiert.",
	signInDenied: (v) =>
		`Der Anmeldedienst hat abgelehnt: ${shown(v.description) || shown(v.error)}.`,
	signInEnded: () =>
		"Deine Anmeldung ist abgelaufen. Melde dich erneut an; dieses Gerät behält seine Schlüssel und Kopplungen.",
	signInRefused: () =>
		"Das Gateway akzeptiert deine Anmeldung nicht. Melde dich erneut an. Wenn das nicht hilft, bitte deine Administration, Audience und Claims deines Tokens zu prüfen.",
	notAnApprover: () =>
		"Du bist angemeldet, aber dein Token sagt nicht, wer du hier bist. Bitte deine Administration, die Claims für Rolle und ID hinzuzufügen.",
	otherPerson: (v) =>
		`Du hast dich als ${shown(v.approverId)} angemeldet, aber die Schlüssel dieses Browsers gehören ${shown(v.expected)}. Melde dich als ${shown(v.expected)} an, oder melde dich hier zuerst ab.`,
	provider: (v) =>
		`Die Antwort des Anmeldedienstes ist ungültig. Erwartet: ${shown(v.expected)}.`,
	providerIssuer: (v) =>
		`Der Anmeldedienst nennt sich ${shown(v.found)}, aber das Gateway erwartet ${shown(v.expected)}.`,
	providerAway: (v) =>
		`Der Anmeldedienst ${shown(v.host)} ist nicht erreichbar. Versuche es erneut.`,

	pairingLink: () => "Das ist kein Kopplungslink. Kopiere den ganzen Link.",
	pairingCode: () =>
		"Ein Kurzcode hat acht Buchstaben und Ziffern, zum Beispiel K7QM-2X9P.",
	noSuchCode: () =>
		"Dieser Code ist abgelaufen oder wurde schon verwendet. Beginne die Kopplung auf dem Rechner des Agenten neu.",
	enforcerKey: () =>
		"Der Agent hat keinen Schlüssel gesendet. Vielleicht läuft dort kein Countersign.",
	fingerprint: () =>
		"Der Schlüssel des Agenten ist nicht der aus dem Link. Vielleicht greift jemand ein: Beginne die Kopplung neu, und verwende dieses Gateway nicht, wenn es wieder passiert.",
	replacesKey: (v) =>
		`${shown(v.enforcerId)} ist schon mit einem anderen Schlüssel gekoppelt. Bestätige zuerst, dass sich der Schlüssel ändern sollte.`,

	deviceNotInForce: () =>
		"Dieses Gerät ist nicht aktiv, seine Signatur zählt also nicht. Bestätige es auf einem, das du schon verwendest.",
	refusedAfterSigning: () =>
		`Das Gateway sagt, dass die Signatur dieses Geräts nicht zählt. ${SENT}`,
	deviceRevoked: () =>
		"Dieses Gerät wurde gesperrt. Melde dich ab, und tritt mit einer neuen Einladung oder einer Anmeldung wieder bei.",
	noDeviceInForce: () =>
		"Alle deine Geräte wurden gesperrt, also kann keines dieses bestätigen. Bitte deine Administration, sie zurückzusetzen.",
	endorsementLink: () =>
		"Das ist nicht der Link eines neuen Geräts. Kopiere den ganzen Link.",
	otherApprover: () =>
		"Das ist für eine andere Person oder einen anderen Mandanten, nicht für dich.",
	notAsked: () =>
		"Das neue Gerät hat nicht dieses gefragt. Erstelle dort einen neuen Link, und öffne ihn auf einem aktiven Gerät.",
	inviterUnknown: () =>
		"Das Gateway kennt das Gerät nicht, das diesen Link erstellt hat. Erstelle dort einen neuen Link.",
	deviceProof: () =>
		"Die Schlüssel des neuen Geräts wurden unterwegs verändert. Vielleicht greift jemand ein: Fang noch einmal an, und verwende dieses Gateway nicht mehr, wenn es wieder passiert.",
	nameTaken: () =>
		"Ein anderes Gerät hat diesen Namen. Wähle einen, der sie unterscheidet.",
	possession: () =>
		"Das neue Gerät hat seine Anfrage nicht signiert. Die Schlüssel gehören vielleicht nicht ihm.",
	statementSignature: () =>
		"Die Signatur einer Aussage über ein Gerät ist ungültig.",
	unknownDevice: (v) =>
		`Dieses Gerät kennt das Gerät ${shown(v.deviceId)} nicht. Füge es von einem deiner Geräte aus hinzu.`,
	revokedDevice: (v) =>
		`Das Gerät ${shown(v.deviceId)} wurde gesperrt. Melde dich dort ab und tritt wieder bei.`,
	deviceIdTaken: (v) =>
		`Das Gerät ${shown(v.deviceId)} ist schon mit anderen Schlüsseln bekannt.`,
	tooManyDevices: (v) =>
		`Du kannst höchstens ${v.limit} Geräte haben. Sperre zuerst eines.`,

	notPaired: () =>
		"Dieses Gerät ist nicht mit dem Agenten gekoppelt und kann nicht erkennen, ob die Anfrage echt ist.",
	endedHere: () =>
		"Du hast diesen Agenten auf diesem Gerät entkoppelt. Kopple ihn wieder, um seine Anfragen zu öffnen.",
	disagreement: () =>
		"Deine Geräte haben verschiedene Schlüssel für diesen Agenten, vielleicht greift also jemand ein. Kopple dieses Gerät direkt mit ihm, und prüfe die Liste deiner Geräte.",
	otherKey: () =>
		"Die Anfrage lässt sich mit dem Schlüssel des Agenten auf diesem Gerät nicht öffnen, und ein anderes deiner Geräte hat einen anderen Schlüssel. Kopple dieses Gerät erneut mit dem Agenten.",
	notEncrypted: () =>
		"Die Anfrage ist nicht verschlüsselt. Das Gateway könnte sie geschrieben oder geändert haben.",
	notARecipient: () =>
		"Die Anfrage ist nicht für dieses Gerät verschlüsselt. Das Gerät kam später dazu, oder der Agent kennt es noch nicht.",
	repeatedRecipient: () => "Die Anfrage nennt einen Empfänger zweimal.",
	tooManyRecipients: (v) =>
		`Die Anfrage ist für mehr als ${v.limit} Empfänger verschlüsselt.`,
	keyNotOpened: () =>
		"Die Anfrage lässt sich nicht öffnen: Sie ist nicht vom gekoppelten Agenten, nicht für diese Anfrage, oder sie wurde verändert.",
	contentNotOpened: () =>
		"Der Inhalt lässt sich nicht öffnen: Er wurde unterwegs verändert.",
	contentHash: () => "Der Inhalt passt nicht zu seinem Hash.",
	mismatch: (v) =>
		`${shown(v.member)} im verschlüsselten Inhalt ist nicht das, was das Gateway sagt.`,
	base64: (v) => `${thing(v)} ist beschädigt: kein base64url.`,
	length: (v) =>
		`${thing(v)} ist beschädigt: ${v.expected} Bytes wären richtig.`,
	json: (v) => `${thing(v)} ist beschädigt: kein striktes JSON.`,
	member: (v) =>
		`${thing(v)} ist beschädigt. Erwartet${v.pointer ? ` bei ${shown(v.pointer)}` : ""}: ${shown(v.expected)}.`,
	notCanonical: (v) =>
		`${thing(v)} hat nicht die kanonische Form. Der Client, der das erzeugt hat, hat einen Fehler.`,
	version: (v) =>
		`${thing(v)} hat eine Version, die diese Seite nicht kennt. Lade die Seite neu, oder bitte um ein neueres Gateway.`,
	weakKey: (v) =>
		`${thing(v)} ist schwach oder fehlerhaft. Neue Schlüssel sind nötig.`,

	notApprovable: (v) =>
		`Das lässt sich nicht genehmigen. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	notRejectable: () =>
		"Die Anfrage lässt sich nicht ablehnen, weil sie keinen Hash hat.",
	ruleOfOther: () =>
		"Ihre Regel gilt für einen anderen Agenten. Vielleicht greift jemand ein: Melde es dem Betreiber des Gateways.",
	excludedByRule: () =>
		"Nach ihrer Regel zählt deine Genehmigung nicht, zum Beispiel weil du mit diesem Agenten arbeitest. Du kannst sie ablehnen.",
	otherSeat: (v) =>
		`Um die Entscheidung wird ${shown(v.seat)} gebeten, nicht du. Du kannst sie ablehnen.`,
	notInRule: () =>
		"Nach ihrer Regel werden andere gefragt, nicht du. Du kannst sie ablehnen.",
	teamLink: () =>
		"Das ist keine Einladung in ein Team. Kopiere den ganzen Link.",
	teamState: () =>
		"Das Gateway zeigt ein Team, das so nicht signiert wurde. Vielleicht greift jemand ein: Sag es denen, denen das Team gehört.",
	teamFork: (v) =>
		`Vom Team ${shown(v.team)} gibt es zwei Fassungen, die sich widersprechen. Deshalb zählt es nicht. Vielleicht greift jemand ein: Sag es denen, denen das Team gehört.`,
	teamWithheld: (v) =>
		`Das Gateway hält Änderungen des Teams ${shown(v.team)} zurück. Versuche es erneut, und melde es dem Betreiber des Gateways, wenn es so bleibt.`,
	teamUnknown: () =>
		"Dieses Gerät ist nicht in dem Team, das gefragt wird. Tritt dem Team bei, oder entscheide auf einem anderen Gerät.",
	notOnSeat: (v) =>
		`Das Team ${shown(v.team)} kennt dieses Gerät nicht. Öffne „Teams“ auf einem anderen deiner Geräte, um es hinzuzufügen.`,
	teamsUnread: (v) =>
		`Teams, denen du auf einem anderen Gerät beigetreten bist, zählen das gesperrte Gerät vielleicht noch. Öffne dort „Teams“ und aktualisiere sie. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	teamNotJoined: (v) =>
		`Das Gateway sagt, dass du im Team ${shown(v.team)} bist, dem kein Gerät beigetreten ist, dem dieses vertraut. War es ein anderes von dir, wiederhole dies dort. War es ein gesperrtes, zählt das Team es noch: Bitte die, denen das Team gehört, dich zu entfernen.`,
	notVouched: (v) =>
		`Mitglieder deiner Teams kennen vielleicht Agenten nicht mehr, die das gesperrte Gerät vorgestellt hat. Kopple diese Agenten erneut mit dem Team. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	deviceNotAdded: (v) =>
		`Das Team ${shown(v.team)} zählt dein neues Gerät noch nicht. Öffne „Teams“ und versuche es erneut. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	deviceNotRemoved: (v) =>
		`Das Team ${shown(v.team)} zählt das gesperrte Gerät noch. Öffne „Teams“ auf einem deiner aktiven Geräte und versuche es erneut, oder bitte die, denen das Team gehört, dich zu entfernen und neu einzuladen. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	seatNotCleared: (v) =>
		`Auf deinem Platz im Team ${shown(v.team)} kann vielleicht noch eine Vertretung oder ein fremdes Gerät entscheiden. Öffne „Teams“ auf einem Gerät, das im Team ist, und beende die Vertretung, oder bitte die, denen das Team gehört, dich zu entfernen und neu einzuladen. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	teamHidden: (v) =>
		`Das Gateway zeigt dir das Team ${shown(v.team)} nicht mehr. Vielleicht zählt es das gesperrte Gerät noch. Wenn du es nicht verlassen hast, bitte die, denen das Team gehört, dich zu entfernen und neu einzuladen. Sonst öffne „Teams“ und vergiss es.`,
	lastDevice: (v) =>
		`Das Team ${shown(v.team)} zählt das gesperrte Gerät noch, weil es dort dein letztes ist. Bitte die, denen das Team gehört, dich zu entfernen.`,
	deviceDropped: (v) =>
		`Auf deinem Platz im Team ${shown(v.team)} war auch ${shown(v.device)} (${shown(v.deviceId)}), das dieses Gerät nicht kennt. Es wurde entfernt.`,
	standInEnded: (v) =>
		`${shown(v.approverId)} vertritt dich im Team ${shown(v.team)} nicht mehr, weil ein Gerät, das dir nicht mehr gehört, diese Person festgelegt haben könnte.`,
	standsInRevoked: (v) =>
		`Du vertrittst ${shown(v.member)} im Team ${shown(v.team)} mit einem Gerät, das du gesperrt hast. Es kann dort noch entscheiden. Bitte ${shown(v.member)}, die Vertretung zu beenden.`,
	alreadyInTeam: (v) =>
		`${shown(v.approverId)} ist schon in diesem Team. Wähle jemanden, der es nicht ist.`,
	belowMinimum: (v) =>
		`Ihre Regel verlangt weniger als das Team ${shown(v.team)}. Sag es denen, denen das Team gehört.`,
	operators: () =>
		"Gib die IDs von höchstens 16 Genehmigenden an, mit Kommas dazwischen.",
	commentMissing: () =>
		"Schreibe zuerst einen Kommentar. Die Regel verlangt einen.",
	ruleOnce: () =>
		"Nach der Regel kannst du nur diese Anfrage genehmigen, keine späteren dieser Art.",
	alreadyDecided: () =>
		`Das Gateway sagt, dass das schon entschieden wurde, vielleicht auf einem anderen Gerät. ${SENT}`,
	replaced: () =>
		"Während diese Anfrage offen war, kam eine andere mit derselben ID. Keine von beiden lässt sich genehmigen. Vielleicht greift jemand ein: Melde es dem Betreiber des Gateways.",
	loggedOut: () => "Du bist abgemeldet, deshalb wurde nichts signiert.",
	noLongerPending: () =>
		"Diese Anfrage wartet nicht mehr auf eine Entscheidung.",
	goneAfterSigning: () =>
		`Das Gateway sagt, dass diese Anfrage nicht mehr wartet. ${SENT}`,
	outcomeSignature: () =>
		"Die Bestätigung ist nicht vom Rechner des Agenten signiert oder gilt einer anderen Entscheidung.",
	expired: () => `Das Gateway sagt, dass diese Anfrage abgelaufen ist. ${SENT}`,
	onceHasNoTime: () => "Nur längere Genehmigungen haben eine Dauer.",
	grantTooLong: () => "Eine Erlaubnis gilt höchstens 24 Stunden.",
	grantIncomplete: () =>
		"Wähle, was die Erlaubnis umfasst und wie lange sie gilt.",
	grantWords: () =>
		"Eine Erlaubnis für Befehle hat 1 bis 64 Wörter ohne Steuerzeichen.",
	grantNotPlain: () =>
		"Das ist kein einfacher Befehl und lässt sich nicht nach seinen ersten Wörtern erlauben. Genehmige genau dasselbe noch einmal, oder nur diese Anfrage.",
	grantRunsAnother: () =>
		"Dieser Befehl führt einen anderen aus, der weiter hinten steht. Er lässt sich nicht nach seinen ersten Wörtern erlauben.",
	grantOther: () =>
		"Der Befehl beginnt nicht mit diesen Wörtern. Der Agent würde diese Erlaubnis nicht beachten.",
	grantChooses: () =>
		"Ein späteres Wort wählt ein Programm, eine Datei, ein Verzeichnis oder eine Konfiguration. Wähle mehr Wörter, oder genau dasselbe noch einmal.",
	grantFree: () =>
		"Ein Wort, das sich ändern darf, würde bestimmen, was ausgeführt wird, oder eine Datei, ein Verzeichnis oder eine Konfiguration wählen. Lass dieses Wort, wie es ist.",
	grantNoEdit: () =>
		"Diese Änderung lässt sich nicht länger erlauben: Sie gehört zu keiner Sitzung, oder ihre Dateien liegen nicht im Projekt.",
	editsForSession: () =>
		"Änderungen an Dateien lassen sich nur für eine Sitzung erlauben.",
	actionOpposite: () =>
		"Diese Auswahl gehört zur entgegengesetzten Entscheidung.",
	actionUnknown: () => "Die Anfrage bietet diese Auswahl nicht an.",
	oddAnswers: () =>
		"Beantworte zuerst jede Frage. Eine Antwort darf bis zu 4.000 Zeichen haben.",
	longReason: (v) =>
		`Eine Begründung kann höchstens ${digits(Number(v.limit))} Zeichen haben. Kürze sie.`,
	longAction: () => "Die ID dieser Auswahl ist zu lang.",
	hintsForNobody: () =>
		"Dieser Agent ist nicht gekoppelt, also lässt sich keine Begründung für ihn verschlüsseln. Lehne ohne Begründung ab.",
	decisionSignature: () => "Die Signatur der Entscheidung ist ungültig.",
	otherSubject: (v) =>
		`Die Entscheidung betrifft ${SUBJECTS[v.what] ?? shown(v.what)}.`,
	nothingToSave: () =>
		"Nur Entscheidungen über Anfragen, die sich öffnen ließen, lassen sich sichern.",

	emptyPrompt: () => "Schreibe zuerst eine Nachricht.",
	longPrompt: (v) =>
		`Eine Nachricht kann höchstens ${Math.floor(Number(v.limit) / 1024)} KiB haben. Kürze sie.`,
};
