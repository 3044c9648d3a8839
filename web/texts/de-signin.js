// Signing in with the gateway's sign-in service, in German.

/** @type {typeof import('./signin.js').signInTexts} */
export const signInTexts = {
	title: "Anmelden",
	action: (host) => `Mit ${host} anmelden`,
	or: "Oder mit einer Einladung beitreten:",
	lead: "Melde dich mit deiner Organisation an. Dieser Browser erzeugt dann eigene Schlüssel, die ihn nie verlassen.",
	next: "Weiter zur Anmeldung",
	opening: "Der Anmeldedienst wird geöffnet…",
	finishing: "Du wirst angemeldet…",
	done: "Du bist angemeldet",
	ended:
		"Deine Anmeldung ist abgelaufen. Du bekommst keine neuen Anfragen und kannst nicht entscheiden. Dieses Gerät behält seine Schlüssel und Kopplungen.",
	again: "Erneut anmelden",
	againLead: (id) =>
		`Melde dich als ${id} an. Dieses Gerät behält seine Schlüssel und Kopplungen.`,
	as: "Angemeldet als",
	unnamed: "kein Name angegeben",
	logoutText:
		"Entfernt Schlüssel, Tokens und Verlauf aus diesem Browser. Um ihn wieder zu verwenden, melde dich an und füge ihn von einem anderen Gerät aus hinzu.",
	everywhere: "Auch vom Anmeldedienst abmelden",
};
