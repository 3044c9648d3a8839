// The text of each problem, and what to do about it, in Spanish.

import { counting } from "./count.js";
import { hindranceText } from "./notifications.js";
import { problemText, shown } from "./problems.js";

const { digits } = counting("es");

/** Each begins a sentence; its last letter agrees with "dañado" or "dañada". */
const THINGS = /** @type {Record<string, [string, "o" | "a"]>} */ ({
	artifact: ["El contenido", "o"],
	ciphertext: ["La solicitud cifrada", "a"],
	deviceBundle: ["La clave del dispositivo", "a"],
	deviceId: ["El ID del dispositivo", "o"],
	enforcerBundle: ["La clave del agente", "a"],
	signature: ["La firma", "a"],
	statement: ["La declaración sobre un dispositivo", "a"],
	endorsement: ["El enlace del dispositivo nuevo", "o"],
	decision: ["La decisión", "a"],
	introduction: ["La presentación de un agente", "a"],
	answer: ["La respuesta de la pasarela", "a"],
	key: ["La clave", "a"],
	random: ["El valor aleatorio", "o"],
	record: ["El registro", "o"],
	outcome: ["La confirmación", "a"],
	rule: ["La regla", "a"],
	team: ["El equipo", "o"],
});

const SUBJECTS = /** @type {Record<string, string>} */ ({
	request: "otra solicitud",
	artifact: "otro contenido",
	repository: "otro repositorio",
});

const SENT =
	"Has firmado y enviado tu decisión, así que aún puede tener efecto.";

/** @type {(values: Record<string, unknown>) => string} */
const thing = (values) => THINGS[String(values.what)]?.[0] ?? "Algo";

/** @type {(values: Record<string, unknown>) => string} */
const damaged = (values) =>
	`${thing(values)} está dañad${THINGS[String(values.what)]?.[1] ?? "o"}`;

/** @type {typeof import('./problems.js').problemTexts} */
export const problemTexts = {
	browser: () =>
		"Este navegador no puede guardar claves de forma segura (Ed25519 y X25519). Actualízalo, o usa un Chrome, Edge o Firefox actual.",
	storage: (v) =>
		`Este navegador no puede guardar claves: ${shown(v.cause)}. Sal de la navegación privada o libera espacio.`,
	unreachable: () =>
		"No se puede acceder a la pasarela. Comprueba tu conexión e inténtalo de nuevo.",
	slow: () =>
		"La pasarela ha tardado demasiado en responder. Inténtalo de nuevo.",
	refused: (v) =>
		`La pasarela lo ha rechazado: ${shown(v.message)} (${v.status} ${shown(v.code)}).`,
	answer: (v) =>
		`La respuesta de la pasarela no es válida. Se esperaba: ${shown(v.expected)}.`,
	credential: () =>
		"La pasarela ya no acepta la credencial de este dispositivo. Pide una invitación nueva, cierra la sesión y vuelve a unirte.",

	notNotified: (v) => hindranceText({ ...v, cause: shown(v.cause ?? "") }),

	alreadyJoined: () =>
		"Este navegador ya se ha unido. Para volver a unirte, cierra antes la sesión; eso borra sus claves.",
	invitation: () =>
		"Eso no es un enlace de invitación. Copia entero el enlace que te envió tu administrador.",
	noSuchInvitation: () =>
		"Esta invitación ya se ha usado, ha caducado o se ha retirado. Pide otra.",
	deviceName: () =>
		"Escribe un nombre de dispositivo de 1 a 64 caracteres visibles.",

	noSignIn: () =>
		"En esta pasarela no se puede iniciar sesión. Pide una invitación a tu administrador.",
	signInUnknown: () =>
		"Este inicio de sesión no empezó en esta pestaña o ya se ha usado. Inicia sesión de nuevo.",
	signInIssuer: () =>
		"La respuesta vino de otro servicio de inicio de sesión y se ha ignorado. Inicia sesión de nuevo y avisa a tu administrador si vuelve a pasar.",
	signInDenied: (v) =>
		`El servicio de inicio de sesión lo ha rechazado: ${shown(v.description) || shown(v.error)}.`,
	signInEnded: () =>
		"Tu sesión ha caducado. Iníciala de nuevo; este dispositivo conserva sus claves y vinculaciones.",
	signInRefused: () =>
		"La pasarela no acepta tu inicio de sesión. Inténtalo de nuevo. Si no funciona, pide a tu administrador que revise la audiencia y los claims de tu token.",
	notAnApprover: () =>
		"Has iniciado sesión, pero tu token no dice quién eres aquí. Pide a tu administrador que añada los claims de rol e ID.",
	otherPerson: (v) =>
		`Has iniciado sesión como ${shown(v.approverId)}, pero las claves de este navegador son de ${shown(v.expected)}. Inicia sesión como ${shown(v.expected)}, o cierra antes la sesión aquí.`,
	provider: (v) =>
		`La respuesta del servicio de inicio de sesión no es válida. Se esperaba: ${shown(v.expected)}.`,
	providerIssuer: (v) =>
		`El servicio de inicio de sesión se llama ${shown(v.found)}, pero la pasarela espera ${shown(v.expected)}.`,
	providerAway: (v) =>
		`No se puede acceder al servicio de inicio de sesión ${shown(v.host)}. Inténtalo de nuevo.`,

	pairingLink: () =>
		"Eso no es un enlace de vinculación. Copia el enlace entero.",
	pairingCode: () =>
		"Un código corto tiene ocho letras y cifras, como K7QM-2X9P.",
	noSuchCode: () =>
		"Este código ha caducado o ya se ha usado. Empieza de nuevo la vinculación en el equipo del agente.",
	enforcerKey: () =>
		"El agente no ha enviado ninguna clave. Puede que allí no funcione Countersign.",
	fingerprint: () =>
		"La clave del agente no es la del enlace. Puede que alguien esté interfiriendo: empieza de nuevo la vinculación, y no uses esta pasarela si vuelve a pasar.",
	replacesKey: (v) =>
		`${shown(v.enforcerId)} ya está vinculado con otra clave. Confirma antes que su clave debía cambiar.`,

	deviceNotInForce: () =>
		"Este dispositivo no está activo, así que su firma no cuenta. Apruébalo desde uno que ya uses.",
	refusedAfterSigning: () =>
		`La pasarela dice que la firma de este dispositivo no cuenta. ${SENT}`,
	deviceRevoked: () =>
		"Este dispositivo está revocado. Cierra la sesión y vuelve a unirte con una invitación nueva o iniciando sesión.",
	noDeviceInForce: () =>
		"Todos tus dispositivos están revocados, así que ninguno puede aprobar este. Pide a un administrador que los restablezca.",
	endorsementLink: () =>
		"Eso no es el enlace de un dispositivo nuevo. Copia el enlace entero.",
	otherApprover: () =>
		"Esto es para otra persona u otra organización, no para ti.",
	notAsked: () =>
		"El dispositivo nuevo no ha preguntado a este. Crea allí un enlace nuevo y ábrelo en un dispositivo activo.",
	inviterUnknown: () =>
		"La pasarela no conoce el dispositivo que creó este enlace. Crea allí un enlace nuevo.",
	deviceProof: () =>
		"Las claves del dispositivo nuevo se cambiaron por el camino. Puede que alguien esté interfiriendo: empieza de nuevo y no uses esta pasarela si vuelve a pasar.",
	nameTaken: () =>
		"Otro dispositivo tiene este nombre. Elige uno que los distinga.",
	possession: () =>
		"El dispositivo nuevo no ha firmado su solicitud, así que puede que las claves no sean suyas.",
	statementSignature: () =>
		"La firma de una declaración sobre un dispositivo no es válida.",
	unknownDevice: (v) =>
		`Este dispositivo no conoce el dispositivo ${shown(v.deviceId)}. Añádelo desde uno de los tuyos.`,
	revokedDevice: (v) =>
		`El dispositivo ${shown(v.deviceId)} está revocado. Cierra la sesión en él y vuelve a unirte.`,
	deviceIdTaken: (v) =>
		`El dispositivo ${shown(v.deviceId)} ya se conoce con otras claves.`,
	tooManyDevices: (v) =>
		`Puedes tener como máximo ${v.limit} dispositivos. Revoca antes uno.`,

	notPaired: () =>
		"Este dispositivo no está vinculado con el agente, así que no puede saber si la solicitud es auténtica.",
	endedHere: () =>
		"Has desvinculado este agente en este dispositivo. Vincúlalo de nuevo para abrir sus solicitudes.",
	disagreement: () =>
		"Tus dispositivos tienen claves distintas de este agente, así que puede que alguien esté interfiriendo. Vincula este dispositivo con él directamente y revisa tu lista de dispositivos.",
	otherKey: () =>
		"No se abre con la clave del agente en este dispositivo, y otro de tus dispositivos tiene otra clave. Vincula de nuevo este dispositivo con el agente.",
	notEncrypted: () =>
		"No está cifrada, así que la pasarela podría haberla escrito o cambiado.",
	notARecipient: () =>
		"No está cifrada para este dispositivo. Se añadió más tarde, o el agente aún no lo conoce.",
	repeatedRecipient: () => "Nombra dos veces a un destinatario.",
	tooManyRecipients: (v) =>
		`Está cifrada para más de ${v.limit} destinatarios.`,
	keyNotOpened: () =>
		"No se abre: no es del agente vinculado, no es para esta solicitud, o se ha alterado.",
	contentNotOpened: () =>
		"Su contenido no se abre: se ha alterado por el camino.",
	contentHash: () => "Su contenido no coincide con su hash.",
	mismatch: (v) =>
		`${shown(v.member)} en el contenido cifrado no es lo que dice la pasarela.`,
	base64: (v) => `${damaged(v)}: no es base64url.`,
	length: (v) => `${damaged(v)}: debería tener ${v.expected} bytes.`,
	json: (v) => `${damaged(v)}: no es JSON estricto.`,
	member: (v) =>
		`${damaged(v)}. Se esperaba${v.pointer ? ` en ${shown(v.pointer)}` : ""}: ${shown(v.expected)}.`,
	notCanonical: (v) =>
		`${thing(v)} no está en forma canónica. El cliente que lo ha creado tiene un error.`,
	version: (v) =>
		`${thing(v)} tiene una versión que esta página no conoce. Recarga la página, o pide una pasarela más nueva.`,
	weakKey: (v) =>
		`${thing(v)} es débil o no es correcta. Hay que crear claves nuevas.`,

	notApprovable: (v) =>
		`Esto no se puede aprobar. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	notRejectable: () => "No se puede rechazar porque no tiene hash.",
	ruleOfOther: () =>
		"Su regla es para otro agente. Puede que alguien esté interfiriendo: avisa a quien administra tu pasarela.",
	excludedByRule: () =>
		"Según su regla, tu aprobación no cuenta, por ejemplo porque trabajas con este agente. Puedes rechazarla.",
	otherSeat: (v) =>
		`La decisión se le pide a ${shown(v.seat)}, no a ti. Puedes rechazarla.`,
	notInRule: () =>
		"Según su regla, se pregunta a otras personas, no a ti. Puedes rechazarla.",
	teamLink: () => "No es una invitación a un equipo. Copia el enlace completo.",
	teamState: () =>
		"El gateway muestra un equipo que no se firmó así. Puede que alguien esté interfiriendo: avisa a sus propietarios.",
	teamFork: (v) =>
		`Hay dos versiones del equipo ${shown(v.team)} que se contradicen, así que no cuenta. Puede que alguien esté interfiriendo: avisa a sus propietarios.`,
	teamWithheld: (v) =>
		`El gateway retiene cambios del equipo ${shown(v.team)}. Inténtalo de nuevo y avisa al operador del gateway si sigue así.`,
	teamUnknown: () =>
		"Este dispositivo no está en el equipo al que se pregunta. Únete al equipo o decide en otro dispositivo.",
	notOnSeat: (v) =>
		`El equipo ${shown(v.team)} no conoce este dispositivo. Abre «Equipos» en otro de tus dispositivos para añadirlo.`,
	teamsUnread: (v) =>
		`Puede que los equipos a los que te has unido en otro dispositivo todavía cuenten el revocado. Abre «Equipos» allí y actualízalos. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	teamNotJoined: (v) =>
		`El gateway dice que estás en el equipo ${shown(v.team)}, al que no se ha unido ningún dispositivo en el que este confíe. Si lo hizo otro de los tuyos, repítelo allí. Si lo hizo uno revocado, el equipo todavía lo cuenta: pide a un propietario que te quite.`,
	notVouched: (v) =>
		`Puede que los miembros de tus equipos ya no conozcan agentes que presentó el dispositivo revocado. Vuelve a vincular esos agentes con el equipo. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	deviceNotAdded: (v) =>
		`El equipo ${shown(v.team)} todavía no cuenta tu nuevo dispositivo. Abre «Equipos» e inténtalo de nuevo. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	deviceNotRemoved: (v) =>
		`El equipo ${shown(v.team)} todavía cuenta el dispositivo revocado. Abre «Equipos» en uno de tus dispositivos activos e inténtalo de nuevo, o pide a un propietario que te quite y vuelva a invitarte. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	seatNotCleared: (v) =>
		`Puede que un sustituto o un dispositivo que no es tuyo todavía decida en tu puesto del equipo ${shown(v.team)}. Abre «Equipos» en un dispositivo que esté en el equipo y termina la sustitución, o pide a un propietario que te quite y vuelva a invitarte. ${v.problem ? problemText(v.problem) : ""}`.trim(),
	teamHidden: (v) =>
		`El gateway ya no te muestra el equipo ${shown(v.team)}, así que puede que todavía cuente el dispositivo revocado. Si no lo has dejado, pide a un propietario que te quite y vuelva a invitarte. Si lo has dejado, abre «Equipos» y olvídalo.`,
	lastDevice: (v) =>
		`El equipo ${shown(v.team)} todavía cuenta el dispositivo revocado, porque es el último que tienes allí. Pide a un propietario que te quite.`,
	deviceDropped: (v) =>
		`En tu puesto del equipo ${shown(v.team)} también estaba ${shown(v.device)} (${shown(v.deviceId)}), que este dispositivo no conoce. Se ha quitado.`,
	standInEnded: (v) =>
		`${shown(v.approverId)} ya no te sustituye en el equipo ${shown(v.team)}, porque un dispositivo que ya no es tuyo podría haber nombrado a esta persona.`,
	standsInRevoked: (v) =>
		`Sustituyes a ${shown(v.member)} en el equipo ${shown(v.team)} con un dispositivo que has revocado, y allí todavía puede decidir. Pide a ${shown(v.member)} que termine la sustitución.`,
	alreadyInTeam: (v) =>
		`${shown(v.approverId)} ya está en este equipo. Elige a alguien que no lo esté.`,
	belowMinimum: (v) =>
		`Su regla pide menos que el equipo ${shown(v.team)}. Avisa a sus propietarios.`,
	operators: () =>
		"Indica los ID de 16 aprobadores como máximo, separados por comas.",
	commentMissing: () => "Escribe antes un comentario. La regla lo exige.",
	ruleOnce: () =>
		"Según la regla, solo puedes aprobar esta solicitud, no otras parecidas más adelante.",
	alreadyDecided: () =>
		`La pasarela dice que esto ya se ha decidido, quizá en otro dispositivo. ${SENT}`,
	replaced: () =>
		"Ha llegado otra solicitud con el mismo ID mientras esta estaba abierta, así que ninguna se puede aprobar. Puede que alguien esté interfiriendo: avisa a quien administra tu pasarela.",
	loggedOut: () => "Has cerrado la sesión, así que no se ha firmado nada.",
	noLongerPending: () => "Esta solicitud ya no espera una decisión.",
	goneAfterSigning: () =>
		`La pasarela dice que esta solicitud ya no está pendiente. ${SENT}`,
	outcomeSignature: () =>
		"La confirmación no está firmada por el equipo del agente, o es de otra decisión.",
	expired: () => `La pasarela dice que esta solicitud ha caducado. ${SENT}`,
	onceHasNoTime: () => "Solo las aprobaciones más largas tienen duración.",
	grantTooLong: () => "Un permiso dura como máximo 24 horas.",
	grantIncomplete: () => "Elige qué cubre el permiso y cuánto dura.",
	grantWords: () =>
		"Un permiso para comandos tiene de 1 a 64 palabras sin caracteres de control.",
	grantNotPlain: () =>
		"No es un comando simple, así que no se puede permitir por sus primeras palabras. Aprueba exactamente lo mismo otra vez, o solo esta solicitud.",
	grantRunsAnother: () =>
		"Este comando ejecuta otro que se nombra más adelante, así que no se puede permitir por sus primeras palabras.",
	grantOther: () =>
		"El comando no empieza por estas palabras, así que el agente ignoraría este permiso.",
	grantChooses: () =>
		"Una palabra posterior elige un programa, un archivo, un directorio o una configuración. Elige más palabras, o exactamente lo mismo otra vez.",
	grantFree: () =>
		"Una palabra que puede variar decidiría qué se ejecuta, o elegiría un archivo, un directorio o una configuración. Deja esa palabra como está.",
	grantNoEdit: () =>
		"Esta edición no se puede permitir por más tiempo: no pertenece a ninguna sesión, o sus archivos no están en el proyecto.",
	editsForSession: () =>
		"Las ediciones solo se pueden permitir durante una sesión.",
	actionOpposite: () => "Esta opción es para la decisión contraria.",
	actionUnknown: () => "La solicitud no ofrece esta opción.",
	oddAnswers: () =>
		"Responde primero a todas las preguntas. Una respuesta puede tener hasta 4.000 caracteres.",
	longReason: (v) =>
		`Un motivo puede tener como máximo ${digits(Number(v.limit))} caracteres. Acórtalo.`,
	longAction: () => "El ID de esta opción es demasiado largo.",
	hintsForNobody: () =>
		"Este agente no está vinculado, así que no se le puede cifrar un motivo. Rechaza sin motivo.",
	decisionSignature: () => "La firma de la decisión no es válida.",
	otherSubject: (v) =>
		`La decisión es sobre ${SUBJECTS[v.what] ?? shown(v.what)}.`,
	nothingToSave: () =>
		"Solo se pueden guardar decisiones sobre solicitudes que se pudieron abrir.",

	emptyPrompt: () => "Escribe antes un mensaje.",
	longPrompt: (v) =>
		`Un mensaje puede tener como máximo ${Math.floor(Number(v.limit) / 1024)} KiB. Acórtalo.`,
};
