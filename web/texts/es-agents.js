// The texts about agents, in Spanish.

import { counting } from "./count.js";

const { count } = counting("es");

/** @type {typeof import('./agents.js').agentTexts} */
export const agentTexts = {
	title: "Agentes",
	pair: "Vincular un agente",
	online: "En línea",
	offline: "Sin conexión",
	unknown: "Aún no visto",
	seen: "Visto por última vez",
	empty: {
		title: "Aún no hay agentes vinculados",
		text: "Ejecuta `countersign pair` en el equipo del agente y abre aquí su enlace o escanea su código QR.",
		action: "Vincular un agente",
	},
	sessions: "Sesiones",
	noSessions:
		"Aún no hay sesiones. Cada sesión aparece aquí con su primera solicitud.",
	snapshots: "Instantáneas",
	since: "Desde",
	updated: "Actualizada",
	ended: "Terminada",
	paired: "Vinculado",
	introducedBy: "Presentado por",
	host: "Equipo",
	workspace: "Espacio de trabajo",
	repo: "Repositorio",
	id: "ID",
	how: "Conexión",
	transports: {
		websocket: "WebSocket",
		sse: "flujo de eventos",
		poll: "sondeo",
	},
	reported: "Comunicado por el agente a través de la pasarela, sin verificar.",
	prompt: "Escribir a este agente",
	promptField: "Mensaje",
	promptHint:
		"Solo este agente puede leerlo. Recibe el mensaje en su próximo paso y decide qué hacer con él.",
	promptSession: "Sesión",
	anySession: "Cualquier sesión",
	send: "Enviar",
	sending: "Enviando…",
	promptReason: (reason) => ` Motivo (sin verificar): ${reason}`,
	promptStates: {
		queued: "Enviado. El agente aún no lo ha recogido.",
		delivered: "Entregado al agente.",
		rejected: "El agente no lo ha aceptado.",
		error: "El agente no ha podido usarlo.",
		expired: "Ha caducado antes de que el agente lo recogiera.",
	},
	orders: {
		queued:
			"Enviado. El equipo del agente lo confirma en la próxima llamada del agente.",
		delivered: "Confirmado por el equipo del agente.",
		forged:
			"La pasarela dice que se ha entregado, pero el equipo del agente no lo ha confirmado. Puede que alguien esté interfiriendo: avisa a quien administra tu pasarela.",
		rejected: "El equipo del agente lo ha rechazado.",
		error: "El equipo del agente no ha podido hacerlo.",
		expired: "Ha caducado antes de que el equipo del agente lo recogiera.",
	},
	pause: {
		title: "Pausar este agente",
		hint: "Mientras un agente está en pausa, todo lo que te preguntaría se deniega al momento y sus permisos no se aplican.",
		until: (time) => `En pausa desde este dispositivo hasta ${time}.`,
		lasting: "Cuánto tiempo",
		lasts: [
			[900, "15 minutos"],
			[3600, "1 hora"],
			[28800, "8 horas"],
			[86400, "24 horas"],
		],
		action: "Pausar",
		resume: "Reanudar",
	},
	permissions: {
		title: "Permisos",
		none: "Este dispositivo no conoce ningún permiso activo. Los dados en otros dispositivos aparecen allí.",
		given: "Dado con",
		until: (time) => `Válido hasta ${time}.`,
		session: (time) =>
			`Válido hasta que termine la sesión, como máximo hasta ${time}.`,
		unused:
			"Aún no se ha usado, según lo que ha comunicado el equipo del agente.",
		used: (n) => `Usado ${count(n, "vez", "veces")} según el equipo del agente`,
		last: "la última",
		end: "Terminar",
		ending: "Lo has terminado. El equipo del agente aún no lo ha confirmado.",
	},
	unpair: "Desvincular",
	unpairTitle: (who) => `¿Desvincular ${who}?`,
	unpairText:
		"Ya no podrás abrir ni aprobar sus solicitudes en este dispositivo. Puedes volver a vincularlo cuando quieras.",
	unpairTeam: (team) =>
		`Esto termina la vinculación para todos los miembros del equipo ${team}, no solo para ti. Un propietario puede volver a vincular el agente con el equipo.`,
	unpairMember: (team) =>
		`Ya no podrás abrir ni aprobar sus solicitudes en este dispositivo. El equipo ${team} sigue vinculado, así que el agente te seguirá preguntando: decide en otro dispositivo.`,
	unpaired: (who) => `${who} ya no está vinculado`,
	gone: {
		title: "Este agente no está vinculado",
		text: "Puede que se haya desvinculado en este dispositivo.",
		action: "Todos los agentes",
	},
};
