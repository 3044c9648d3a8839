// Teams: joining one, its members, and standing in, in Spanish.

import { counting } from "./count.js";

const { count } = counting("es");

/** @type {(names: string[]) => string} */
const list = (names) => names.join(", ");

/** @type {typeof import('./teams.js').teamTexts} */
export const teamTexts = {
	title: "Equipos",
	lead: "Los miembros de un equipo aprueban solicitudes juntos. Sus propietarios lo cambian en un terminal.",
	show: "Ver equipos",
	none: {
		title: "No estás en ningún equipo",
		text: "El propietario de un equipo te invita con un enlace. Ábrelo aquí.",
	},
	invited: "Te han invitado a un equipo",
	joinText:
		"Si te unes, los agentes de este equipo podrán pedirte aprobaciones. Únete solo si esperabas esta invitación.",
	join: "Unirse",
	joining: "Uniéndote…",
	asked: "Has aceptado la invitación",
	askedText: "Contará cuando lo confirme la persona que te invitó.",
	owners: "Propietarios",
	owner: "Propietario",
	changes: "Propietarios necesarios para un cambio",
	minimum: "Cada solicitud necesita",
	id: "ID",
	approvals: (n) => `al menos ${count(n, "aprobación", "aprobaciones")}`,
	rejections: (n) =>
		`como máximo ${count(n, "rechazo", "rechazos")} para denegarla`,
	separate: "no aprueba nadie que trabaje con el agente",
	notMember: "Ahora no tienes un puesto en este equipo.",
	forget: "Olvidar este equipo",
	forgetTitle: (name) => `¿Olvidar el equipo ${name}?`,
	forgetText:
		"Este navegador dejará de mostrarlo. Para volver a unirte, necesitas una nueva invitación.",
	notOnSeat:
		"Este dispositivo no está en el equipo, así que no puede aprobar por él. Abre esta página en otro de tus dispositivos para añadirlo.",
	forked:
		"Hay dos versiones de este equipo que se contradicen, así que aquí no cuenta. Puede que alguien esté interfiriendo: avisa a sus propietarios. Pueden volver a invitarte.",
	stale: (missing, revoked) =>
		[
			missing.length > 0 && `Todavía no están en el equipo: ${list(missing)}.`,
			revoked.length > 0 &&
				`Revocados, pero aún en el equipo: ${list(revoked)}.`,
		]
			.filter(Boolean)
			.join(" "),
	update: "Actualizar el equipo",
	standsIn: (from, until) => `sustituye desde ${from} hasta ${until}`,
	nameStandIn: "Nombrar sustituto",
	standInText:
		"Durante este tiempo, esta persona también decide en tu puesto, que sigue contando una vez.",
	standIn: "Sustituto",
	time: "Durante",
	endStandIn: "Terminar la sustitución",
	endTitle: (who) => `¿Terminar la sustitución por ${who}?`,
	endText:
		"Esta persona ya no podrá decidir por ti, y sus aprobaciones para solicitudes abiertas no contarán. Para que alguien vuelva a sustituirte, necesitas un nuevo enlace.",
	standInEnded: "Tu sustituto ya no puede decidir",
	standInHint: "El ID con el que aprueba esa persona.",
	invite: "Crear un enlace",
	link: "Enlace para tu sustituto",
	linkText:
		"Envía este enlace solo a tu sustituto y deja esta página abierta hasta que lo acepte.",
	waiting: "Esperando a que tu sustituto acepte…",
	confirm: "Sí, esta persona me sustituye",
	devices: "Dispositivos",
};
