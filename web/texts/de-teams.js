// Teams: joining one, its members, and standing in, in German.

import { counting } from "./count.js";

const { count } = counting("de");

/** @type {(names: string[]) => string} */
const list = (names) => names.join(", ");

/** @type {typeof import('./teams.js').teamTexts} */
export const teamTexts = {
	title: "Teams",
	lead: "Die Mitglieder eines Teams genehmigen Anfragen gemeinsam. Wem ein Team gehört, ändert es in einem Terminal.",
	show: "Teams anzeigen",
	none: {
		title: "Du bist in keinem Team",
		text: "Wem ein Team gehört, lädt dich mit einem Link ein. Öffne ihn hier.",
	},
	invited: "Du bist in ein Team eingeladen",
	joinText:
		"Wenn du beitrittst, können Agenten dieses Teams dich um Genehmigungen bitten. Tritt nur bei, wenn du diese Einladung erwartet hast.",
	join: "Beitreten",
	joining: "Du trittst bei…",
	asked: "Du hast die Einladung angenommen",
	askedText:
		"Es zählt, sobald es die Person bestätigt hat, die dich eingeladen hat.",
	owners: "Gehört",
	owner: "Leitung",
	changes: "So viele ändern es gemeinsam",
	minimum: "Jede Anfrage braucht",
	id: "ID",
	approvals: (n) => `mindestens ${count(n, "Genehmigung", "Genehmigungen")}`,
	rejections: (n) =>
		`höchstens ${count(n, "Ablehnung, die sie verhindert", "Ablehnungen, die sie verhindern")}`,
	separate: "niemand genehmigt, der mit dem Agenten arbeitet",
	notMember: "Du hast jetzt keinen Platz in diesem Team.",
	forget: "Team vergessen",
	forgetTitle: (name) => `Das Team ${name} vergessen?`,
	forgetText:
		"Dieser Browser zeigt es dann nicht mehr. Um wieder beizutreten, brauchst du eine neue Einladung.",
	notOnSeat:
		"Dieses Gerät ist nicht im Team und kann deshalb nicht dafür genehmigen. Öffne diese Seite auf einem anderen deiner Geräte, um es hinzuzufügen.",
	forked:
		"Von diesem Team gibt es zwei Fassungen, die sich widersprechen. Deshalb zählt es hier nicht. Vielleicht greift jemand ein: Sag es denen, denen das Team gehört. Sie können dich neu einladen.",
	stale: (missing, revoked) =>
		[
			missing.length > 0 && `Noch nicht im Team: ${list(missing)}.`,
			revoked.length > 0 && `Gesperrt, aber noch im Team: ${list(revoked)}.`,
		]
			.filter(Boolean)
			.join(" "),
	update: "Team aktualisieren",
	standsIn: (from, until) => `vertritt von ${from} bis ${until}`,
	nameStandIn: "Vertretung festlegen",
	standInText:
		"In dieser Zeit entscheidet auch diese Person auf deinem Platz. Er zählt weiterhin einmal.",
	standIn: "Vertretung",
	time: "Für",
	endStandIn: "Vertretung beenden",
	endTitle: (who) => `Vertretung durch ${who} beenden?`,
	endText:
		"Diese Person kann dann nicht mehr für dich entscheiden, und ihre Genehmigungen für offene Anfragen zählen nicht. Für eine neue Vertretung brauchst du einen neuen Link.",
	standInEnded: "Deine Vertretung kann nicht mehr entscheiden",
	standInHint: "Die ID, unter der diese Person genehmigt.",
	invite: "Link erstellen",
	link: "Link für deine Vertretung",
	linkText:
		"Schicke diesen Link nur deiner Vertretung, und lass diese Seite offen, bis er angenommen ist.",
	waiting: "Warten, bis deine Vertretung annimmt…",
	confirm: "Ja, diese Person vertritt mich",
	devices: "Geräte",
};
