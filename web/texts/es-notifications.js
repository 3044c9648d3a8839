// The texts about notifications, in Spanish.

/** @type {typeof import('./notifications.js').notificationTexts} */
export const notificationTexts = {
	title: "Notificaciones",
	on: "Recibirás una notificación en este dispositivo cuando llegue una solicitud, aunque la página esté cerrada.",
	off: "Recibe una notificación en este dispositivo cuando llegue una solicitud, aunque la página esté cerrada. Nunca contiene la solicitud.",
	failing: (why) =>
		`La última notificación no ha llegado: ${why}. Countersign sigue intentándolo. Si no se arregla, desactiva las notificaciones y vuelve a activarlas.`,
	turnOn: "Activar",
	turnOff: "Desactivar",
	test: "Enviar una prueba",
	tested:
		"La prueba está en camino. Si no aparece, revisa los ajustes de notificaciones de tu sistema para este navegador.",
	turnedOn: "Notificaciones activadas",
	turnedOff: "Notificaciones desactivadas",
	notices: {
		waiting: "Una solicitud espera tu decisión.",
		test: "Las notificaciones funcionan en este dispositivo.",
		changed: "Abre esta página una vez para seguir recibiendo notificaciones.",
		approve: "Aprobar…",
		reject: "Rechazar…",
	},
	hindrances: {
		unsupported: () =>
			"Este navegador no puede mostrar notificaciones aquí. Algunos navegadores no las permiten en una ventana privada o antes de instalar la página.",
		denied: () =>
			"Este navegador bloquea las notificaciones de esta página. Permítelas en los ajustes del navegador para este sitio y recarga la página.",
		dismissed: () =>
			"No has respondido a la pregunta del navegador, así que no ha cambiado nada.",
		insecure: () =>
			"Las notificaciones solo funcionan si la página se ha cargado por https.",
		homeScreen: () =>
			"En un iPhone o iPad, añade antes esta página a la pantalla de inicio (Compartir y «Añadir a pantalla de inicio») y ábrela desde allí.",
		gateway: (v) =>
			`Esta pasarela no envía notificaciones${v.reason ? `: ${v.reason}` : ""}. Pregunta a quien la administra.`,
		service: () =>
			"El servicio push del navegador no ha respondido. Comprueba tu conexión; algunos navegadores y redes lo bloquean.",
		failed: (v) => `La prueba no ha llegado: ${v.cause}.`,
	},
};
