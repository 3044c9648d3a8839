// Signing in with the gateway's sign-in service, in Spanish.

/** @type {typeof import('./signin.js').signInTexts} */
export const signInTexts = {
	title: "Iniciar sesión",
	action: (host) => `Iniciar sesión con ${host}`,
	or: "O únete con una invitación:",
	lead: "Inicia sesión con tu organización. Después este navegador crea sus propias claves, que nunca salen de él.",
	next: "Continuar para iniciar sesión",
	opening: "Abriendo el servicio de inicio de sesión…",
	finishing: "Iniciando sesión…",
	done: "Has iniciado sesión",
	ended:
		"Tu sesión ha caducado, así que no recibirás solicitudes nuevas ni podrás decidir. Este dispositivo conserva sus claves y vinculaciones.",
	again: "Iniciar sesión de nuevo",
	againLead: (id) =>
		`Inicia sesión como ${id}. Este dispositivo conserva sus claves y vinculaciones.`,
	as: "Sesión iniciada como",
	unnamed: "sin nombre",
	logoutText:
		"Borra las claves, los tokens y el historial de este navegador. Para volver a usarlo, inicia sesión y añádelo desde otro dispositivo.",
	everywhere: "Cerrar también la sesión en el servicio de inicio de sesión",
};
