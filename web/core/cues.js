// Cues: rules that a request meets and that a person may want to know of. They are shown as what
// they are, and decide nothing: a request without a cue may be just as dangerous.

import { simpleCommands } from "./commandparts.js";
import { parseDiff } from "./diff.js";
import { commandWords } from "./sentence.js";
import { readableName } from "./toolsentence.js";

/** @typedef {import('./types.js').Artifact} Artifact */
/** @typedef {import('./types.js').JsonObject} JsonObject */
/** @typedef {keyof typeof import('../texts/inbox.js').inboxTexts.cues.rules} RuleName */
/** @typedef {{ kind: 'destroys' | 'leaves', rule: RuleName }} Cue */

/** More is not looked at for a cue. */
const MOST_CHARS = 64 * 1024;

/**
 * The program, its other words if that matters, and the rule.
 * @type {[Cue['kind'], RuleName, RegExp, RegExp?][]}
 */
const COMMANDS = [
	["destroys", "rmTree", /^rm$/, /(?:^| )(?:-\w*[rR]|--recursive\b)/],
	["destroys", "rm", /^(?:rm|rmdir|unlink|shred|srm)$/],
	["destroys", "findDelete", /^find$/, / -(?:delete|exec(?:dir)? rm)\b/],
	[
		"destroys",
		"gitForce",
		/^git$/,
		/\bpush\b.* (?:--force|-\w*f|\+\S)|\bpush\b.* --mirror/,
	],
	["destroys", "gitReset", /^git$/, /\breset\b.*--hard/],
	["destroys", "gitClean", /^git$/, /\bclean\b.* (?:-\w*f|--force)/],
	[
		"destroys",
		"gitDelete",
		/^git$/,
		/\b(?:branch|tag)\b.* (?:-[dD]\b|--delete)|\bpush\b.* (?:--delete|-d|:\S)/,
	],
	[
		"destroys",
		"gitRestore",
		/^git$/,
		/\brestore\b|\bcheckout\b.* (?:--|\.)( |$)/,
	],
	["destroys", "disk", /^(?:dd|mkfs(?:\..*)?|fdisk|parted|wipefs)$/],
	[
		"destroys",
		"infraDestroy",
		/^(?:terraform|tofu|pulumi|cdk)$/,
		/\bdestroy\b/,
	],
	[
		"destroys",
		"clusterDelete",
		/^(?:kubectl|oc|helm)$/,
		/\b(?:delete|drain|uninstall)\b/,
	],
	[
		"destroys",
		"containerDelete",
		/^(?:docker|podman|nerdctl|docker-compose)$/,
		/\b(?:prune|rmi?|down .*-v)\b/,
	],
	[
		"destroys",
		"rights",
		/^ch(?:mod|own|grp)$/,
		/(?:^| )(?:-\w*R|--recursive\b)/,
	],
	["destroys", "halt", /^(?:shutdown|reboot|poweroff|halt)$/],
	["destroys", "force", /./, /(?:^| )--force(?:$| |=|-)/],
	["leaves", "gitPush", /^git$/, /\bpush\b/],
	["leaves", "gitServer", /^git$/, /\b(?:clone|fetch|pull|ls-remote)\b/],
	[
		"leaves",
		"transferTool",
		/^(?:curl|wget|aria2c|xh|https?|httpie|lftp|ftp)$/,
	],
	[
		"leaves",
		"remoteShell",
		/^(?:ssh|scp|sftp|mosh|telnet|nc|ncat|netcat|socat|rsh)$/,
	],
	["leaves", "remoteShell", /^rsync$/, /\S:|rsync:/],
	[
		"leaves",
		"publish",
		/^(?:npm|pnpm|yarn|bun|cargo|poetry|uv|hatch|flit|vsce)$/,
		/\bpublish\b/,
	],
	["leaves", "publish", /^(?:gem|docker|podman|helm|nuget)$/, /\bpush\b/],
	[
		"leaves",
		"publish",
		/^(?:twine|mvn|gradle)$/,
		/\b(?:upload|deploy|publish)\b/,
	],
	[
		"leaves",
		"install",
		/^(?:npm|pnpm|yarn|bun|pip3?|cargo|gem|go|apt|apt-get|dnf|brew|uv|poetry|composer)$/,
		/(?:^| )(?:install|i|ci|add|get|update|upgrade|sync|require)\b/,
	],
	["leaves", "install", /^(?:npx|pnpx|bunx|uvx|pipx)$/],
	["leaves", "infraApply", /^(?:terraform|tofu)$/, /\bapply\b/],
	["leaves", "infraApply", /^(?:pulumi|cdk)$/, /\b(?:up|deploy)\b/],
	["leaves", "cluster", /^(?:kubectl|oc|helm)$/],
	[
		"leaves",
		"cloud",
		/^(?:aws|gcloud|gsutil|az|gh|glab|fly|flyctl|heroku|vercel|netlify|doctl|wrangler|supabase|stripe)$/,
	],
	["leaves", "mail", /^(?:mail|mailx|sendmail|mutt|swaks)$/],
];

const SQL =
	/\b(?:drop\s+(?:table|database|schema)|truncate\s+table|delete\s+from)\b/i;

/** Words before the program that a command is about. */
const WRAPPERS =
	/^(?:sudo|doas|env|nohup|time|nice|ionice|command|exec|xargs|timeout|setsid|stdbuf|builtin|do|then|else|if|while|until|!)$/;
/** Options of those, their values, and assignments. */
const BESIDE = /^(?:-.*|[0-9.]+[smhd]?|[A-Za-z_][A-Za-z0-9_]*=.*)$/;
const SHELLS = /^(?:ba|z|da|k|fi)?sh$/;

/** @param {string} word */
function nameOf(word) {
	return (word.split("/").pop() ?? "").replace(/\.exe$/i, "");
}

/**
 * Where it is not certain what a shell makes of it, everything that could be a command counts.
 * @param {string} text
 * @returns {string[][]}
 */
function possibleCommands(text) {
	return text
		.split(/[\n;&|()`"'{}]+|\$\(/)
		.map((part) => part.trim().split(/\s+/).filter(Boolean))
		.filter((words) => words.length > 0);
}

/**
 * @param {string[]} words
 * @param {Set<RuleName>} found
 */
function judgeWords(words, found) {
	let at = 0;
	while (
		at < words.length - 1 &&
		(WRAPPERS.test(nameOf(words[at])) || (at > 0 && BESIDE.test(words[at])))
	)
		at += 1;
	const program = nameOf(words[at] ?? "");
	const rest = words.slice(at + 1);
	// A word with spaces is a text, such as a message.
	const line = rest
		.map((word) => (/\s/.test(word) ? " …" : ` ${word}`))
		.join("");
	for (const [, rule, name, others] of COMMANDS)
		if (name.test(program) && (others === undefined || others.test(line)))
			found.add(rule);
	// A command within a word of another.
	if (SHELLS.test(program) || program === "eval" || program === "ssh")
		for (const word of rest)
			if (/\s/.test(word))
				for (const inner of possibleCommands(word)) judgeWords(inner, found);
}

/**
 * @param {string} command
 * @param {Set<RuleName>} found
 */
function judgeCommand(command, found) {
	const text = command.slice(0, MOST_CHARS);
	for (const words of simpleCommands(text) ?? possibleCommands(text))
		judgeWords(words, found);
	if (SQL.test(text)) found.add("dropData");
}

/**
 * @param {JsonObject} payload
 * @param {Set<RuleName>} found
 */
function judgeTool(payload, found) {
	const tool = typeof payload.tool === "string" ? payload.tool : "";
	const name = tool.toLowerCase().replace(/[^a-z0-9]/g, "");
	if (name === "webfetch" || name === "fetch") found.add("webFetch");
	if (name === "websearch" || name === "googlewebsearch")
		found.add("webSearch");
	const input = JSON.stringify(payload.input ?? null).slice(0, MOST_CHARS);
	if (SQL.test(input)) found.add("dropData");
	const isServer = payload.mcp !== undefined || tool.startsWith("mcp__");
	if (!isServer) return;
	const words = readableName(tool.split("__").pop() ?? "")
		.toLowerCase()
		.split(" ");
	const has = (/** @type {string} */ list) =>
		list.split(" ").some((word) => words.includes(word));
	if (has("delete remove drop destroy purge truncate revoke cancel wipe"))
		found.add("toolDelete");
	if (
		has(
			"send post publish create update push upload deploy merge refund charge pay transfer email comment reply invite submit write set add delete remove",
		)
	)
		found.add("toolSend");
	if (has("fetch download browse navigate request")) found.add("webFetch");
}

/** @type {Map<RuleName, Cue['kind']>} */
const KINDS = new Map([
	.../** @type {[RuleName, Cue['kind']][]} */ (
		COMMANDS.map(([kind, rule]) => [rule, kind])
	),
	["dropData", "destroys"],
	["patchDelete", "destroys"],
	["toolDelete", "destroys"],
	["webFetch", "leaves"],
	["webSearch", "leaves"],
	["toolSend", "leaves"],
]);

/** Rules that say all that another one says. */
const INSTEAD = /** @type {[RuleName, RuleName][]} */ ([
	["rmTree", "rm"],
	["gitForce", "force"],
	["gitClean", "force"],
	["clusterDelete", "cluster"],
]);

/** @type {WeakMap<Artifact, Cue[]>} */
const known = new WeakMap();

/**
 * @param {Artifact} artifact
 * @returns {Cue[]} destructive ones first
 */
export function cuesOf(artifact) {
	const before = known.get(artifact);
	if (before) return before;
	const { payload } = artifact;
	/** @type {Set<RuleName>} */
	const found = new Set();
	const words = commandWords(payload);
	if (words) {
		judgeWords(words, found);
		if (SQL.test(words.join(" "))) found.add("dropData");
	} else if (typeof payload.command === "string")
		judgeCommand(payload.command, found);
	if (payload.kind === "tool") judgeTool(payload, found);
	if (payload.kind === "patch" && typeof payload.patch === "string") {
		const { files } = parseDiff(payload.patch.slice(0, MOST_CHARS));
		const isDeleted = files.some(({ change }) => change === "deleted");
		if (isDeleted || /^\*\*\* Delete File: /m.test(payload.patch))
			found.add("patchDelete");
	}
	for (const [rule, other] of INSTEAD) if (found.has(rule)) found.delete(other);
	const cues = [...found].map((rule) => ({
		rule,
		kind: KINDS.get(rule) ?? /** @type {const} */ ("leaves"),
	}));
	cues.sort((one, other) => one.kind.localeCompare(other.kind));
	known.set(artifact, cues);
	return cues;
}
