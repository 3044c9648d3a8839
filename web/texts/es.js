// Spanish. People are addressed with "tú".

import { counting } from "./count.js";
import { agentTexts } from "./es-agents.js";
import { inboxTexts } from "./es-inbox.js";
import { notificationTexts } from "./es-notifications.js";
import { problemTexts } from "./es-problems.js";
import { requestTexts } from "./es-requests.js";
import { signInTexts } from "./es-signin.js";
import { teamTexts } from "./es-teams.js";

const { count } = counting("es");

/** @type {import('../texts.js').Translation} */
export const texts = {
	notifications: notificationTexts,
	product: "Countersign",
	skip: "Saltar al contenido",
	mainNavigation: "Principal",
	nav: {
		inbox: "Entrada",
		agents: "Agentes",
		history: "Historial",
		devices: "Dispositivos",
		settings: "Ajustes",
	},
	waitingBadge: (n) =>
		count(n, "solicitud pendiente", "solicitudes pendientes"),
	title: (view, waiting) =>
		`${waiting ? `(${waiting}) ` : ""}${view} – Countersign`,
	loading: "Cargando…",
	cancel: "Cancelar",
	close: "Cerrar",
	copy: "Copiar",
	copied: "Copiado",
	notCopied:
		"Este navegador no permite copiar aquí. Selecciona el texto y cópialo tú.",
	tryAgain: "Reintentar",
	defect: {
		title: "Algo ha fallado",
		text: "Recarga la página. Si no funciona, avisa a quien administra tu pasarela.",
		reload: "Recargar",
	},
	noSuchPage: {
		title: "Página no encontrada",
		text: "Puede que el enlace esté incompleto. Cópialo entero e inténtalo de nuevo.",
		action: "Ir a la bandeja de entrada",
	},

	connection: {
		offline:
			"Sin conexión. Puede que esta página no esté al día; se actualizará cuando vuelva la pasarela.",
		refused:
			"La pasarela ya no acepta la credencial de este dispositivo. Pide una invitación nueva, cierra la sesión en Ajustes y vuelve a unirte.",
		waiting: "Aprueba este dispositivo desde uno que ya uses.",
		finish: "Ver cómo",
		revoked:
			"Este dispositivo está revocado y no puede decidir. Cierra la sesión y vuelve a unirte.",
		settings: "Ajustes",
	},

	welcome: {
		title: "Decide qué pueden hacer tus agentes",
		lead: "Mira lo que un agente quiere hacer antes de que lo haga. Apruebas o rechazas con una clave que nunca sale de este navegador.",
		field: "Enlace de invitación",
		hint: "Te lo envía tu administrador. Sirve una sola vez y caduca a las 24 horas.",
		placeholder: "https://…/#/join/…",
		action: "Continuar",
		joinFirst:
			"El enlace que has abierto necesita un navegador que ya se haya unido. Únete primero y vuelve a abrirlo.",
		points: [
			[
				"lock",
				"Las solicitudes van cifradas para tus dispositivos. La pasarela no puede leerlas.",
			],
			["check", "Solo cuenta tu firma, y solo para lo que se te ha mostrado."],
			[
				"devices",
				"¿Has perdido el móvil? Revócalo desde cualquiera de tus otros dispositivos.",
			],
		],
	},
	join: {
		title: "Unirse a Countersign",
		lead: "Este navegador crea sus propias claves. Nunca salen de él.",
		name: "Nombre del dispositivo",
		nameHint: "Así lo reconocerás en tu lista.",
		action: "Unirse",
		joining: "Creando las claves…",
		already: (id) => `Este navegador ya se ha unido como ${id}.`,
		alreadyHint:
			"Para usar aquí la invitación nueva, cierra antes la sesión. Eso borra las claves de este navegador.",
		toInbox: "Ir a la bandeja de entrada",
		toSettings: "Ir a los ajustes",
		done: "Te has unido",
		defaultName: (browser, system) => `${browser} en ${system}`,
		aBrowser: "Navegador",
		aComputer: "ordenador",
		notApprover: {
			title: "Esta invitación es para un programa",
			text: "Ha creado una credencial para un programa. Copia esta clave ahora: solo se muestra una vez y esta página no la guarda.",
			key: "Clave de API",
		},
	},
	enrol: {
		title: "Añadir este dispositivo",
		lead: "Abre este enlace en un dispositivo que ya uses, o escanéalo con su cámara. Confirma allí si el nombre y el ID coinciden.",
		name: "Nombre",
		id: "ID",
		link: "Enlace de este dispositivo",
		qrLabel: "Código QR con el enlace de este dispositivo",
		noQr: "El enlace es demasiado largo para un código QR. Cópialo en el otro dispositivo.",
		waiting: "Esperando al otro dispositivo…",
		terminal: "O en un terminal: countersign devices add LINK",
		valid: "Válido hasta",
		expired: "Este enlace ha caducado.",
		renew: "Crear un enlace nuevo",
		done: "Este dispositivo está listo",
		confirmTitle: "Confirma en tu otro dispositivo",
		confirmLead:
			"Ahora muestra este dispositivo. Confirma allí si el nombre y las cifras coinciden.",
		digits: "Cifras",
	},

	pair: {
		title: "Vincular un agente",
		lead: "En el equipo del agente, ejecuta `countersign pair`. Muestra un enlace, un código QR y un código corto.",
		how: "Cómo vincular",
		byLink: "Enlace",
		byCamera: "Cámara",
		byCode: "Código corto",
		linkField: "Enlace de vinculación",
		linkHint: "Lo más seguro: el enlace demuestra quién está al otro lado.",
		codeField: "Código corto",
		codeHint: "Ocho letras y cifras. Después compararás quince cifras.",
		action: "Vincular",
		opened: "Un agente quiere vincularse",
		openedText:
			"El enlace demuestra que es de este agente. Vincúlalo solo si lo has iniciado tú o lo esperabas. Después el agente podrá pedirte aprobaciones.",
		agentId: "Agente",
		label: "Nombre (sin verificar)",
		known:
			"Este dispositivo ya está vinculado con este agente y tiene la misma clave.",
		otherKeyTitle: "La clave de este agente ha cambiado",
		otherKeyText:
			"La clave nueva sustituye a la antigua, y las solicitudes con la antigua ya no se podrán abrir aquí. Continúa solo si el agente se ha configurado de nuevo.",
		replace:
			"El agente se ha configurado de nuevo. Sustituir su clave en este dispositivo.",
		reading: "Leyendo el enlace…",
		pairing: "Vinculando…",
		done: (who) => `Vinculado con ${who}`,
		doneText:
			"Sus solicitudes aparecerán en tu bandeja de entrada. No tienes que hacer nada más.",
		toAgent: "Ver el agente",
		compareTitle: "Compara estas cifras",
		compareText:
			"Un agente quiere vincularse. Su pantalla debe mostrar las mismas quince cifras. Hasta que las compares, su nombre está sin verificar.",
		same: "Coinciden",
		differ: "No coinciden",
		comparing: "Calculando las cifras…",
		aborted:
			"No se ha vinculado. Si las cifras no coincidían, puede que alguien esté interfiriendo: no vuelvas a vincular a través de esta pasarela hasta saber por qué.",
		notNow: "Ahora no",
		operators: "¿Quién trabaja con este agente? (opcional)",
		operatorsHint:
			"ID de aprobadores, separados por comas. Cuando una solicitud exige la aprobación de otra persona, estas personas no pueden aprobarla.",
		team: "Equipo (opcional)",
		teamHint: "Se pregunta a los miembros del equipo, no solo a ti.",
		onlyMe: "Solo yo",
		nobody: "Nadie trabaja con él. Funciona solo.",
	},
	camera: {
		start: "Escanear un código QR",
		label: "Imagen de la cámara",
		aim: "Apunta la cámara al código QR.",
		missing:
			"Este navegador no puede usar una cámara aquí. Escanea el código con la aplicación de cámara del móvil, que abre el enlace aquí, o pega el enlace.",
		denied:
			"La cámara no está disponible. Permítela para esta página en los ajustes del navegador, o pega el enlace.",
		other: "Ese código QR es para otra cosa.",
	},

	inbox: {
		title: "Bandeja de entrada",
		filter: "Filtrar",
		filterLabel: "Filtrar solicitudes",
		noMatch: "No hay solicitudes que coincidan.",
		more: "Hay más solicitudes. Aparecerán a medida que decidas.",
		ended: "Recién terminadas",
		earlier: (n, names) =>
			`${count(n, "solicitud llegó", "solicitudes llegaron")} antes de añadir este dispositivo.${
				names.length > 0
					? ` ${n === 1 ? "Decídela" : "Decídelas"} en ${names.join(" o ")}.`
					: ""
			}`,
		left: (who, state) => `${state}: una solicitud de ${who}`,
		arrived: (who, kind) => `Solicitud nueva: ${kind} de ${who}`,
		unpairedEmpty: {
			title: "Vincula tu primer agente",
			text: "Los agentes pueden preguntarte cuando están vinculados con este dispositivo. Se tarda un minuto.",
			action: "Vincular un agente",
		},
		empty: {
			title: "Estás al día",
			text: "Las solicitudes nuevas de tus agentes aparecen aquí. Para probarlo, ejecuta en el equipo de un agente:",
			command: "countersign run -- echo hello",
		},
	},
	who: {
		nobody: "desconocido",
		asGatewaySays: "sin verificar",
		notPaired: "no vinculado con este dispositivo",
	},
	kinds: {
		"command.review": "Comando",
		"patch.review": "Parche",
		"plan.review": "Plan",
		"task.review": "Tarea",
		"checkpoint.review": "Punto de control",
		tool: "Llamada a herramienta",
		question: "Pregunta",
		other: "Solicitud",
		unknown: "Solicitud ilegible",
	},
	time: {
		none: "sin plazo",
		expired: "caducada",
		left: (time) => `tiempo restante: ${time}`,
		days: (n) => count(n, "día", "días"),
		hours: (n) => `${n} h`,
		ago: {
			now: "ahora mismo",
			minutes: (n) => `hace ${n} min`,
			hours: (n) => `hace ${n} h`,
			days: (n) => `hace ${count(n, "día", "días")}`,
		},
	},
	states: {
		pending: "Pendiente",
		deciding: "Enviando…",
		decided: "Decidida",
		delivered: "Entregada",
		expired: "Caducada",
		withdrawn: "Retirada",
		cancelled: "Cancelada",
	},
	verdicts: { approve: "Aprobada", reject: "Rechazada" },

	...inboxTexts,
	...requestTexts,
	signIn: signInTexts,
	teams: teamTexts,
	problems: problemTexts,
	agents: agentTexts,

	history: {
		title: "Historial",
		lead: "Decisiones que este dispositivo ha tomado o visto. Solo se guardan en este navegador.",
		empty: {
			title: "Aún no hay decisiones",
			text: "Tus decisiones aparecen aquí. Puedes guardar cada una como un archivo que la demuestra.",
			action: "Ir a la bandeja de entrada",
		},
		byOther: (device) => `en el dispositivo ${device}`,
		filterLabel: "Filtrar el historial",
		more: "Ver anteriores",
		save: "Guardar como archivo",
		saved: (name) => `Guardado como ${name}`,
		saveHint:
			"El archivo contiene la solicitud sin cifrar. Compruébalo donde quieras con: countersign verify FILE",
		unverified: "sin verificar",
		scopes: {
			once: "esta solicitud",
			timebox: "por un tiempo",
			session: "durante la sesión",
		},
		validUntil: "Válida hasta",
		scope: "Alcance",
		decision: "Decisión",
		device: "Dispositivo",
		noMatch: "No hay decisiones que coincidan.",
		olderUses: "Los usos anteriores no se muestran.",
	},

	devices: {
		title: "Dispositivos",
		lead: "Cada navegador o terminal con el que decides tiene sus propias claves. Cualquiera de ellos puede decidir.",
		add: "Añadir un dispositivo",
		standings: {
			own: "Este dispositivo",
			trusted: "Activo",
			unverified: "Sin verificar",
			revoked: "Revocado",
			ended: "Retirado por la pasarela",
		},
		added: "Añadido",
		by: "por",
		revokedAt: "Revocado",
		itself: "sí mismo",
		former: (n) => count(n, "dispositivo anterior", "dispositivos anteriores"),
		unverifiedTitle: "Hay un dispositivo sin verificar",
		unverifiedText:
			"No lo ha añadido ninguno de tus dispositivos de confianza. Si no lo conoces, revócalo.",
		revoke: "Revocar",
		revokeTitle: (name) => `¿Revocar ${name}?`,
		addedStays: (name, id) =>
			`Ha añadido ${name} (${id}), que sigue activo. Si no conoces ese dispositivo, revócalo también.`,
		revokeText:
			"Esto no se puede deshacer. Los agentes rechazan sus decisiones en menos de un minuto.",
		revokeOwnText:
			"Estás usando este dispositivo. Ya no podrá decidir. Esto no se puede deshacer.",
		revoked: (name) => `${name} se ha revocado`,
		addTitle: "Añadir un dispositivo",
		addLead:
			"Escanea este código con el dispositivo nuevo o abre el enlace allí.",
		qrLabel: "Código QR con el enlace para el dispositivo nuevo",
		offerLink: "Enlace para el dispositivo nuevo",
		offerWaiting: "Esperando al dispositivo nuevo…",
		otherWay: "El dispositivo nuevo ya muestra un enlace",
		otherWayLead:
			"Hazlo así si te uniste allí con una invitación o iniciaste sesión.",
		signInLead:
			"Inicia sesión en el dispositivo nuevo. Mostrará un código QR y un enlace.",
		digits: "Cifras",
		compareDigits:
			"Su pantalla debe mostrar el mismo nombre y las mismas cifras. Después podrá decidir por ti.",
		rename: "Cambiar nombre",
		renameTitle: (name) => `Cambiar el nombre de ${name}`,
		renameText:
			"Solo este dispositivo muestra el nombre nuevo. Los agentes y tus otros dispositivos conservan el nombre con el que se unió.",
		joinedAs: (name) => `Se unió como ${name}`,
		save: "Guardar",
		linkField: "Enlace del dispositivo nuevo",
		linkHint: "O escanea su código QR.",
		continue: "Continuar",
		compareTitle: "¿Es este tu dispositivo nuevo?",
		compareText:
			"Su pantalla debe mostrar el mismo nombre y el mismo ID. Una vez añadido, podrá decidir por ti.",
		confirm: "Sí, añadirlo",
		deny: "No",
		adding: "Añadiendo…",
		addedDone: (name) => `${name} se ha añadido`,
		addedText:
			"Los agentes lo aceptan en menos de un minuto, y puede abrir las solicitudes que envíen a partir de entonces.",
		done: "Listo",
		id: "ID",
		name: "Nombre",
	},

	settings: {
		title: "Ajustes",
		identity: "Este dispositivo",
		approver: "Persona",
		tenant: "Organización",
		name: "Nombre",
		id: "ID",
		joined: "Unido",
		appearance: "Apariencia",
		theme: "Tema",
		themes: { system: "Automático", light: "Claro", dark: "Oscuro" },
		language: "Idioma",
		languageAutomatic: "Automático",
		keyboard: "Teclado",
		keyboardText: "Todo funciona sin ratón.",
		showKeys: "Ver los atajos",
		logout: "Cerrar sesión",
		logoutText:
			"Borra las claves, la credencial y el historial de este navegador. Para volver a usarlo, necesitarás una invitación nueva.",
		logoutTitle: "¿Cerrar la sesión en este navegador?",
		logoutRevoke:
			"Revocar también este dispositivo, para que su firma ya no cuente en ningún sitio",
		logoutLast:
			"Si es tu único dispositivo, un administrador tendrá que restablecer tus dispositivos antes de que puedas volver a unirte.",
		logoutAction: "Cerrar sesión",
		loggedOut: "Sesión cerrada. En este navegador no quedan datos tuyos.",
		about: "Acerca de",
		aboutText:
			"Esta página viene de tu pasarela y se ejecuta en tu navegador. Aquí, y no en la pasarela, se descifran las solicitudes y se firman las decisiones.",
	},

	help: {
		title: "Atajos de teclado",
		keys: [
			["j", "Solicitud siguiente"],
			["k", "Solicitud anterior"],
			["Enter", "Abrir"],
			["a", "Aprobar (en una solicitud)"],
			["r", "Rechazar (en una solicitud)"],
			["x", "Seleccionar (en la bandeja)"],
			["/", "Filtrar, o buscar en una solicitud"],
			["u", "Volver a la bandeja de entrada"],
			["g i", "Bandeja de entrada"],
			["g a", "Agentes"],
			["g h", "Historial"],
			["g d", "Dispositivos"],
			["g s", "Ajustes"],
			["?", "Ver esta lista"],
		],
	},
};
