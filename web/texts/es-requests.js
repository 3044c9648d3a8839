// The texts about a request, its content, and the decision, in Spanish.

import { counting } from "./count.js";

const { count, digits } = counting("es");

/** @type {Record<string, string | undefined>} */
const MODES = {
	100755: "ejecutable",
	120000: "enlace simbólico",
	160000: "submódulo",
	100644: "no ejecutable",
};

/** @type {typeof import('./requests.js').requestTexts} */
export const requestTexts = {
	request: {
		gone: {
			title: "Esta solicitud está cerrada",
			text: "La pasarela dice que se decidió, se retiró o caducó antes de que esta página la viera.",
			action: "Ir a la bandeja de entrada",
		},
		facts: {
			who: "Solicitante",
			repo: "Repositorio",
			revision: "Revisión",
			session: "Sesión",
			asked: "Solicitada",
			ends: "Termina",
			directory: "Directorio",
			program: "Programa",
			id: "Solicitud",
			hash: "SHA-256",
			tool: "Herramienta",
			server: "Servidor MCP",
			file: "Archivo",
		},
		details: "Detalles",
		contentOf: (kind) => `Contenido: ${kind}`,
		copyContent: "Copiar como texto",
		also: "También en esta solicitud",
		unopened: "Esta solicitud no se puede aprobar",
		neverOpened:
			"Esta solicitud no se pudo abrir en este dispositivo, así que solo ves que se rechazó.",
		unopenedText: "No se muestra porque no es de fiar. Puedes rechazarla.",
		pairHint: "Vincular con este agente",
		notRejectable:
			"Está tan mal formada que ni siquiera se puede rechazar. Desaparecerá cuando caduque.",
		strangers: {
			revoked: (id) =>
				`El equipo de este agente aún obedece a tu dispositivo revocado ${id}. Debería enterarse en menos de un minuto. Si después sigues viendo esto, la pasarela se lo oculta, o el equipo no conoce el dispositivo que lo revocó: desvincula el agente.`,
			unknown: (id) =>
				`El equipo de este agente también obedece a ${id} como si fuera tuyo, pero este dispositivo no lo conoce. Compara el ID con los que muestran tus otros dispositivos. Si no es tuyo, alguien ha usado las claves de uno de tus dispositivos: revócalo en un terminal con «countersign devices revoke ${id}».`,
		},
		careful: "Mira con atención",
		marked: (n) =>
			`${count(n, "carácter es invisible o engañoso", "caracteres son invisibles o engañosos")}. Cada uno se muestra enmarcado y con su nombre.`,
		lookAlike: (n, signs, hasMore) =>
			`Donde cada carácter importa, ${count(n, "se parece a otro", "se parecen a otros")}: ${signs}${hasMore ? " …" : ""}. Cada uno está enmarcado y nombrado.`,
		longLine: (n) =>
			`La línea más larga tiene ${digits(n)} caracteres. Se muestra entera, en varias líneas.`,
		longLineMark: (n) => `${digits(n)} caracteres`,
		find: "Buscar en esta solicitud",
		found: (at, of) => (of ? `${at} de ${digits(of)}` : "Sin resultados"),
		findNext: "Resultado siguiente",
		findPrevious: "Resultado anterior",
		formatted: "Con formato",
		source: "Texto original",
		viewAs: "Mostrar como",
		largePlan: "Este texto es largo, así que se muestra sin formato.",
	},
	question: {
		verdicts: { approve: "Respondida", reject: "Sin responder" },
		send: "Enviar respuesta",
		several: "Puedes elegir varias.",
		other: "Otra cosa",
		words: "Tu respuesta",
		dismiss: "No responder",
		dismissTitle: "¿Dejar esta pregunta sin responder?",
		dismissHint:
			"El agente recibe tu motivo. Sin motivo, pregunta en su propio diálogo, en su equipo.",
	},
	patch: {
		unified: "Unificado",
		split: "En paralelo",
		layout: "Disposición",
		files: (n) => count(n, "archivo", "archivos"),
		added: (n) => count(n, "línea añadida", "líneas añadidas"),
		removed: (n) => count(n, "línea eliminada", "líneas eliminadas"),
		fileList: "Archivos de este parche",
		rows: "Líneas de este parche",
		fold: (path) => `Ocultar los cambios de ${path}`,
		unfold: (path) => `Mostrar los cambios de ${path}`,
		unchanged: (n) =>
			`Mostrar ${count(n, "línea sin cambios", "líneas sin cambios")}`,
		skipped: (n) =>
			`${count(n, "línea sin cambios", "líneas sin cambios")} fuera del parche`,
		binary: "Archivo binario: el parche no muestra su contenido",
		noLines: "No cambia ninguna línea de este archivo",
		outside: "Líneas fuera del parche:",
		broken:
			"Esta parte tiene menos líneas de las que dice. Los programas que aplican parches la rechazarán.",
		isBroken:
			"Una parte no es un parche normal. Se muestra todo, pero los programas podrían aplicarlo de otra forma.",
		raw: "Esto no es un diff unificado. Se muestra tal como está escrito.",
		isBinary: "binario",
		mode: (from, to) =>
			`${MODES[to] ?? "modo"}: ${from === null ? to : `${from} → ${to}`}`,
		change: {
			added: "nuevo",
			deleted: "eliminado",
			renamed: "renombrado",
			copied: "copiado",
			modified: "",
		},
		lineAdded: "añadida",
		lineRemoved: "eliminada",
		unnamed: "archivo sin nombre",
	},
	tree: {
		label: "Contenido",
		fold: "Plegar",
		unfold: "Desplegar",
		members: (n) => count(n, "campo", "campos"),
		items: (n) => count(n, "elemento", "elementos"),
	},

	rule: {
		people: (names) =>
			names.length < 2
				? names.join()
				: `${names.slice(0, -1).join(", ")} y ${names[names.length - 1]}`,
		otherTeam: "otro equipo",
		oneOf: (n, people) => `una de ${n} aprobaciones, de ${people}`,
		approvals: (n, people) =>
			n === 1
				? `una aprobación, de ${people}`
				: `${n} aprobaciones, de ${people}`,
		later: (time, people, _n) =>
			`después de ${time} se pregunta también a ${people}`,
		notBy: (people) => `no de ${people}`,
		rejections: (n) => `hacen falta ${n} rechazos para denegarla`,
		comment: {
			approve: "hace falta un comentario para aprobar",
			reject: "hace falta un comentario para rechazar",
			always: "hace falta un comentario para aprobar o rechazar",
		},
		field: "Comentario",
		required: "obligatorio",
		hint: "Cifrado para el equipo del agente y firmado con tu decisión.",
		approved:
			"Aprobada por ti. El agente espera hasta que la aprueben suficientes personas más.",
		rejected:
			"Rechazada por ti. El agente espera a los demás, porque un solo rechazo no basta.",
		allowedByOthers:
			"Confirmado por el equipo del agente: se ha permitido, porque la aprobaron suficientes personas más.",
		rejectedByOthers:
			"Confirmado por el equipo del agente: se ha denegado, porque otras personas la rechazaron.",
	},

	decide: {
		label: "Tu decisión",
		approve: "Aprobar",
		reject: "Rechazar",
		options: "Aprobar por más tiempo…",
		rejectTitle: "Rechazar esta solicitud",
		reason: "Motivo",
		optional: "opcional",
		reasonHint:
			"Cifrado para el agente, que después puede intentarlo de otra forma.",
		noReason:
			"Este agente no está vinculado, así que no se le puede cifrar un motivo.",
		quick: [
			"Ahora no.",
			"Demasiado arriesgado.",
			"Explica antes por qué.",
			"Hazlo de otra forma.",
		],
		quickLabel: "Motivos habituales",
		optionsTitle: "Aprobar por más tiempo",
		optionsLead:
			"Aprueba esta solicitud y otras como ella más adelante, sin volver a preguntarte.",
		scope: "Cuánto tiempo",
		lasts: [
			[900, "15 minutos"],
			[3600, "1 hora"],
			[14400, "4 horas"],
			[86400, "24 horas"],
		],
		session: "Hasta que termine la sesión",
		covers: "Cubre",
		same: "Lo mismo otra vez (el agente puede describirlo de otra forma)",
		words: "Comandos de este tipo",
		wordsHint:
			"Toca una palabra para permitir cualquier otra en su lugar. Las opciones y las palabras que deciden qué se ejecuta no cambian.",
		wordsLabel: "Palabras que deben coincidir",
		moreWords: "Pueden seguir más palabras",
		file: "Ediciones de este archivo, en esta sesión",
		files: "Ediciones de estos archivos, en esta sesión",
		project: "Ediciones en este proyecto, en esta sesión",
		grants: {
			unknown: "Un permiso dado en otro dispositivo",
			same: "La misma solicitud otra vez, aunque el agente la describa de otra forma",
			prefix: "Comandos que empiezan por",
			words: "Comandos de la forma",
			anyWord: "cualquier palabra",
			more: " y más palabras",
			file: "Todos los cambios, también el borrado, de",
			project: "Todos los cambios, también el borrado, en",
		},
		note: "Nota para el agente",
		summary: {
			lasts: (time, end) => `durante ${time}, hasta ${end}`,
			session: (end) =>
				`mientras dure la sesión del agente, también si se reanuda, como máximo hasta ${end}`,
			same: (time) => `Permite la misma solicitud otra vez, ${time}.`,
			covers: "Permite, sin volver a preguntarte: ",
			words: (time) =>
				`, ${time}. Se te seguirá preguntando por los comandos con tuberías, redirecciones o sustituciones.`,
			edits: (time) =>
				`, ${time}. Se te seguirá preguntando por los archivos que contienen secretos o que hacen que algo se ejecute más tarde.`,
		},
		approveLonger: "Aprobar",
		sending: "Enviando…",
		steps: { signed: "Firmada", decided: "Decidida", delivered: "Entregada" },
		decidedText:
			"La pasarela la ha aceptado. El equipo del agente aún no la ha confirmado.",
		outcomes: {
			unsigned:
				"La pasarela dice que el equipo del agente la ha recibido, pero este dispositivo no tiene una confirmación firmada.",
			allowed: "Confirmado por el equipo del agente: se ha permitido.",
			rejected: "Confirmado por el equipo del agente: se ha denegado.",
			missing:
				"Confirmado por el equipo del agente: se ha denegado porque la aprobaron muy pocas personas.",
			untrusted:
				"Confirmado por el equipo del agente: se ha denegado porque la decisión llegó tarde o allí no se confía en este dispositivo.",
			interrupted:
				"Confirmado por el equipo del agente: se ha denegado porque se interrumpió al agente.",
			changed:
				"Confirmado por el equipo del agente: se ha denegado porque un archivo ha cambiado o ya no se puede leer.",
			forged: "La pasarela dice que el equipo del agente la ha recibido.",
		},
		forged:
			"La pasarela muestra una confirmación que no es de esta decisión. Puede que alguien esté interfiriendo: avisa a quien administra tu pasarela.",
		elsewhere: (device) => `Decidida en otro dispositivo (${device}).`,
		notVerified:
			"Lo dice la pasarela, pero no lo ha firmado ningún dispositivo de confianza.",
		contradicted: (state) =>
			`La pasarela dice otra cosa: ${state}, sin esta decisión. Este dispositivo muestra lo que ha verificado. Puede que alguien esté interfiriendo: avisa a quien administra tu pasarela.`,
		notKept:
			"Se ha decidido, pero este navegador no ha podido guardarlo, así que falta en el historial.",
		expired: "La pasarela dice que nadie ha decidido a tiempo.",
		withdrawn: "La pasarela dice que el agente la ha retirado.",
		cancelled: "La pasarela dice que un administrador la ha cancelado.",
		withdrawnBecause: (reason) => `Motivo (sin verificar): ${reason}`,
		next: "Solicitud siguiente",
		toInbox: "Volver a la bandeja de entrada",
		reasonWas: (reason) => `Motivo: ${reason}`,
		choose:
			"El agente ofrece estas opciones. La primera palabra es lo que firmas; el resto son palabras del agente.",
		oddActions:
			"Las opciones del agente no se pueden mostrar como botones, así que decides sin ellas.",
	},
};
