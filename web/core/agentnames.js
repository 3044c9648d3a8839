// The agents by their proper names.

const NAMES = new Map(
	Object.entries({
		claude: "Claude Code",
		codex: "Codex",
		copilot: "GitHub Copilot CLI",
		cursor: "Cursor",
		gemini: "Gemini CLI",
		opencode: "OpenCode",
	}),
);

/**
 * The agent that an artifact names, if it is a known one.
 * @param {import('./types.js').Artifact | null} artifact
 * @returns {string | null}
 */
export function agentTitle(artifact) {
	const agent = artifact?.payload.agent;
	return (typeof agent === "string" && NAMES.get(agent)) || null;
}
