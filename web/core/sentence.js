// What a request would do, as the name of a sentence and its values. Pure: `texts/inbox.js` has the
// sentences, and `src/commands/approver/headline.rs` the same for the terminal;
// `tests/vectors/headlines.json` holds both to it. It only summarizes: the request itself is shown
// below it.

import { parseDiff } from "./diff.js";

/** @typedef {import('./types.js').Artifact} Artifact */
/** @typedef {import('./types.js').JsonObject} JsonObject */
/** @typedef {import('./types.js').JsonValue} JsonValue */
/** @typedef {Exclude<keyof typeof import('../texts/inbox.js').inboxTexts.sentences, 'moreFiles' | 'moreQuestions' | 'from'>} SentenceName */

/**
 * `more` is a number of further files or questions; null: there are some.
 * @typedef {object} Sentence
 * @property {SentenceName} name
 * @property {Record<string, string>} values the request's own words
 * @property {number | null} [more]
 * @property {string | null} [server] the MCP server that is called
 */

const MOST_CHARS = 120;
const MOST_COMMAND_CHARS = 240;
/** Of a longer patch only the beginning is read, and the list of its files. */
const MOST_PATCH_CHARS = 256 * 1024;
const MOST_MEMBERS = 5;

/**
 * @param {string} text
 * @param {number} most
 */
function cut(text, most) {
	const characters = [...text.slice(0, 2 * most + 2)];
	return characters.length > most
		? `${characters.slice(0, most).join("")}…`
		: text;
}

/** @param {string} text */
const linesOf = (text) =>
	text
		.split("\n")
		.map((line) => line.trim())
		.filter(Boolean);

/**
 * The first line, and a sign if there is more.
 * @param {string} text
 */
function line(text) {
	const [first = "", ...others] = linesOf(text);
	const shown = cut(first.replace(/^#+ +/, ""), MOST_CHARS);
	return others.length > 0 && !shown.endsWith("…") ? `${shown} …` : shown;
}

/**
 * All lines of a command: the first one alone may say nothing.
 * @param {string} text
 */
const commandLine = (text) =>
	cut(linesOf(text).join(" ⏎ "), MOST_COMMAND_CHARS);

/** @param {string} path */
function lastName(path) {
	return path.split("/").filter(Boolean).pop() ?? path;
}

/**
 * Words of a command, if the payload has nothing else that claims to be the command.
 * @param {JsonObject} payload
 * @returns {string[] | null}
 */
export function commandWords(payload) {
	const { argv } = payload;
	if (
		payload.kind !== "command" ||
		"command" in payload ||
		!Array.isArray(argv) ||
		argv.length === 0
	)
		return null;
	return argv.every((word) => typeof word === "string") ? argv : null;
}

/**
 * @param {Artifact} artifact
 * @param {(words: string[]) => string} shellLine
 * @returns {Sentence}
 */
export function sentenceOf(artifact, shellLine) {
	const { payload } = artifact;
	switch (payload.kind) {
		case "command":
			return commandSentence(payload, shellLine) ?? other(artifact);
		case "patch":
			return patchSentence(payload);
		case "plan":
			return planSentence(artifact);
		case "tool":
			return toolSentence(payload);
		case "question":
			return question(payload) ?? other(artifact);
		default:
			return other(artifact);
	}
}

/**
 * @param {JsonObject} payload
 * @param {(words: string[]) => string} shellLine
 * @returns {Sentence | null}
 */
function commandSentence(payload, shellLine) {
	const { argv, ...one } = payload;
	const words = commandWords(payload);
	const other =
		"command" in payload && "argv" in payload
			? commandWords({ kind: "command", argv })
			: null;
	if (other && typeof one.command === "string") {
		const command = commandLine(one.command);
		const values = { command, other: commandLine(shellLine(other)) };
		return { name: "runEither", values };
	}
	const text = words
		? shellLine(words)
		: "argv" in payload
			? null
			: payload.command;
	if (typeof text !== "string") return null;
	const command = commandLine(text);
	const { directory } = payload;
	return typeof directory === "string" && directory !== ""
		? {
				name: "runIn",
				values: { command, place: cut(lastName(directory), MOST_CHARS) },
			}
		: { name: "run", values: { command } };
}

/** @typedef {'create' | 'edit' | 'delete' | 'rename' | 'change'} FileChange */

/**
 * @param {JsonObject} payload
 * @returns {Sentence}
 */
function patchSentence(payload) {
	const patch = typeof payload.patch === "string" ? payload.patch : "";
	const isWhole = patch.length <= MOST_PATCH_CHARS;
	const [changed, named] = [
		changedFiles(patch.slice(0, MOST_PATCH_CHARS)),
		namedFiles(payload),
	];
	const isListed = named.length > 0 && !(isWhole && changed.length > 0);
	const found = isListed ? named : changed;
	const [first] = found;
	if (first === undefined) return { name: "patch", values: {} };
	const path = cut(first.path, MOST_CHARS);
	if (!isWhole && !isListed)
		return { name: "changeMore", values: { path }, more: null };
	if (found.length === 1)
		return first.change === "rename"
			? { name: "rename", values: { from: cut(first.from, MOST_CHARS), path } }
			: { name: first.change, values: { path } };
	const isAlike = found.every(({ change }) => change === first.change);
	const change = isAlike && first.change !== "rename" ? first.change : "change";
	return {
		name: `${change}More`,
		values: { path },
		more: found.length - 1,
	};
}

/**
 * @param {string} patch
 * @returns {{ change: FileChange, path: string, from: string }[]}
 */
function changedFiles(patch) {
	/** @type {Record<string, FileChange>} */
	const words = {
		added: "create",
		copied: "create",
		deleted: "delete",
		renamed: "rename",
	};
	const found = parseDiff(patch).files.map((file) => ({
		change: words[file.change] ?? "edit",
		path: file.newPath ?? file.oldPath ?? "",
		from: file.oldPath ?? "",
	}));
	return found.filter(({ path }) => path !== "");
}

/**
 * The files that an agent's machine lists.
 * @param {JsonObject} payload
 * @returns {{ change: FileChange, path: string, from: string }[]}
 */
function namedFiles({ files, directory }) {
	if (!Array.isArray(files)) return [];
	const base = typeof directory === "string" ? `${directory}/` : "/";
	return files.flatMap((file) => {
		const path = file?.path;
		if (typeof path !== "string" || path === "") return [];
		const isInside = base !== "/" && path.startsWith(base);
		/** @type {FileChange} */
		const change = file.sha256 === null ? "create" : "change";
		return [
			{ change, path: isInside ? path.slice(base.length) : path, from: "" },
		];
	});
}

/**
 * @param {Artifact} artifact
 * @returns {Sentence}
 */
function planSentence({ artifactType, payload }) {
	const title = firstText(payload, ["title", "text"]);
	const name =
		artifactType === "task.review"
			? "task"
			: artifactType === "checkpoint.review"
				? "checkpoint"
				: "plan";
	return title === null
		? { name: `${name}Bare`, values: {} }
		: { name, values: { title } };
}

/**
 * The first of these members that is a text, or a number.
 * @param {JsonObject} members
 * @param {string[]} names
 * @returns {string | null}
 */
function firstText(members, names) {
	for (const name of names) {
		const value = Object.hasOwn(members, name) ? members[name] : null;
		const text = typeof value === "number" ? String(value) : value;
		if (typeof text === "string" && text.trim() !== "") return line(text);
	}
	return null;
}

/**
 * A payload of no known kind.
 * @param {Artifact} artifact
 * @returns {Sentence}
 */
function other({ artifactType, payload }) {
	const title = firstText(payload, [
		"title",
		"name",
		"summary",
		"question",
		"text",
		"description",
	]);
	if (artifactType === "task.review" || artifactType === "checkpoint.review") {
		const name = artifactType === "task.review" ? "task" : "checkpoint";
		return title === null
			? { name: `${name}Bare`, values: {} }
			: { name, values: { title } };
	}
	if (title !== null) return { name: "review", values: { title } };
	const names = Object.keys(payload).sort();
	const shown = names.slice(0, MOST_MEMBERS).join(", ");
	const members = names.length > MOST_MEMBERS ? `${shown} …` : shown;
	return {
		name: "reviewBare",
		values: { members: members === "" ? "{}" : cut(members, MOST_CHARS) },
	};
}

/**
 * @param {JsonObject} members
 * @returns {Sentence | null}
 */
function question(members) {
	const list = Array.isArray(members.questions) ? members.questions : [];
	const first = list.length > 0 ? list[0] : members;
	const text =
		first !== null && typeof first === "object"
			? firstText(/** @type {JsonObject} */ (first), ["question", "text"])
			: null;
	if (text === null) return null;
	return list.length > 1
		? { name: "askMore", values: { question: text }, more: list.length - 1 }
		: { name: "ask", values: { question: text } };
}

/**
 * Tools of the agents, in lower case without signs: the sentence, its value, and the members of the
 * input that may have it, the first one present.
 * @type {Record<string, [SentenceName, string, string[]]>}
 */
const TOOLS = {
	webfetch: ["fetch", "url", ["url"]],
	fetch: ["fetch", "url", ["url"]],
	websearch: ["search", "query", ["query"]],
	googlewebsearch: ["search", "query", ["query"]],
	task: ["subagent", "task", ["description", "prompt"]],
	agent: ["subagent", "task", ["description", "prompt"]],
	spawnagent: ["subagent", "task", ["message", "prompt", "description"]],
	notebookedit: ["notebook", "path", ["notebook_path", "path"]],
	read: ["read", "path", ["file_path", "filePath", "path"]],
	readfile: ["read", "path", ["file_path", "absolute_path", "path"]],
	view: ["read", "path", ["path", "file_path"]],
	ls: ["list", "path", ["path"]],
	list: ["list", "path", ["path"]],
	listdirectory: ["list", "path", ["dir_path", "path"]],
	glob: ["find", "pattern", ["pattern"]],
	grep: ["find", "pattern", ["pattern"]],
	searchfilecontent: ["find", "pattern", ["pattern"]],
	skill: ["skill", "skill", ["skill", "name", "command"]],
	killshell: ["stop", "id", ["shell_id"]],
	killbash: ["stop", "id", ["shell_id"]],
	bashoutput: ["output", "id", ["bash_id"]],
	slashcommand: ["slash", "command", ["command"]],
	savememory: ["remember", "fact", ["fact"]],
	viewimage: ["image", "path", ["path"]],
};
const TODO_TOOLS = ["todowrite", "writetodos", "updateplan"];
const QUESTION_TOOLS = ["askuserquestion", "askuser", "question"];

/**
 * @param {JsonObject} payload
 * @returns {Sentence}
 */
function toolSentence(payload) {
	const { input, mcp } = payload;
	const members =
		input !== null && typeof input === "object" && !Array.isArray(input)
			? /** @type {JsonObject} */ (input)
			: {};
	const whole = typeof payload.tool === "string" ? payload.tool : "";
	const called = serverTool(mcp, whole);
	if (called !== null)
		return { ...calledSentence(called.tool, members), server: called.server };
	const name = whole.toLowerCase().replace(/[^a-z0-9]/g, "");
	if (QUESTION_TOOLS.includes(name)) {
		const asked = question(members);
		if (asked !== null) return asked;
	}
	if (TODO_TOOLS.includes(name)) return { name: "todo", values: {} };
	if (name === "webfetch" && firstText(members, ["url"]) === null) {
		const prompt = firstText(members, ["prompt"]);
		if (prompt !== null) return { name: "fetchPrompt", values: { prompt } };
	}
	if (name === "readmcpresourcetool" || name === "readmcpresource") {
		const uri = firstText(members, ["uri"]);
		const server = firstText(members, ["server"]);
		if (uri !== null && server !== null)
			return { name: "resource", values: { uri, server } };
	}
	const known = Object.hasOwn(TOOLS, name) ? TOOLS[name] : undefined;
	const value = known && firstText(members, known[2]);
	return known && value
		? { name: known[0], values: { [known[1]]: value } }
		: calledSentence(whole, members);
}

/**
 * The server and the tool of an MCP call: `mcp` says so, or the name `mcp__server__tool`.
 * @param {JsonValue | undefined} mcp
 * @param {string} whole
 * @returns {{ server: string, tool: string } | null}
 */
function serverTool(mcp, whole) {
	if (mcp !== null && typeof mcp === "object" && !Array.isArray(mcp)) {
		const { server, tool } = /** @type {JsonObject} */ (mcp);
		if (typeof server === "string" && typeof tool === "string")
			return { server: cut(server, MOST_CHARS), tool };
	}
	const [start, server, ...tool] = whole.split("__");
	return start === "mcp" && server && tool.length > 0
		? { server: cut(server, MOST_CHARS), tool: tool.join("__") }
		: null;
}

/**
 * `create_issue` and `createIssue` as "Create issue".
 * @param {string} name
 */
export function readableName(name) {
	const words = name
		.replace(/([a-z0-9])([A-Z])/g, "$1 $2")
		.split(/[\s_\-./:]+/)
		.filter(Boolean)
		.map((word) => (/^[A-Z0-9]{2,}$/.test(word) ? word : word.toLowerCase()));
	const text = words.join(" ");
	return cut(text.slice(0, 1).toUpperCase() + text.slice(1), MOST_CHARS);
}

const SUBJECTS = [
	..."title subject name summary query q question url uri path file_path filePath key id".split(
		" ",
	),
	..."sql command text message body content prompt description".split(" "),
];
const PLACES =
	"repository repo project channel workspace database table bucket".split(" ");
const RECIPIENTS = "to recipient email".split(" ");

/**
 * A tool without a sentence of its own: its name, and what says most about the call.
 * @param {string} tool
 * @param {JsonObject} input
 * @returns {Sentence}
 */
function calledSentence(tool, input) {
	const action = readableName(tool) || "?";
	const money = moneySentence(action.toLowerCase().split(" "), input);
	if (money !== null) return money;
	const subject = firstText(input, SUBJECTS);
	const owner = firstText(input, ["owner"]);
	const named = firstText(input, PLACES);
	const place =
		owner !== null && firstText(input, ["repo"]) === named && named !== null
			? `${owner}/${named}`
			: named;
	const target = firstText(input, RECIPIENTS);
	/** @type {Record<string, string>} */
	const values = { action };
	if (subject !== null) values.subject = subject;
	if (target !== null) {
		values.target = target;
		return { name: subject === null ? "callTo" : "callWithTo", values };
	}
	if (place !== null) {
		values.place = place;
		return { name: subject === null ? "callIn" : "callWithIn", values };
	}
	return { name: subject === null ? "call" : "callWith", values };
}

/** @type {[string, 'refund' | 'charge' | 'pay' | 'transfer'][]} */
const MONEY_VERBS = [
	["refund", "refund"],
	["charge", "charge"],
	["pay", "pay"],
	["payment", "pay"],
	["payout", "pay"],
	["transfer", "transfer"],
];
const MINOR_AMOUNTS = [
	"amount_cents",
	"amountCents",
	"amount_in_cents",
	"amount_minor",
];
const MONEY_TARGETS =
	"order order_id invoice charge payment_intent payment customer account".split(
		" ",
	);
/** @type {Record<string, string>} */
const SIGNS = { EUR: "€", GBP: "£", USD: "$" };

/**
 * @param {string[]} words
 * @param {JsonObject} input
 * @returns {Sentence | null}
 */
function moneySentence(words, input) {
	const verb = MONEY_VERBS.find(([word]) => words.includes(word))?.[1];
	const amount = amountOf(input);
	if (verb === undefined || amount === null) return null;
	const recipient = firstText(input, RECIPIENTS);
	const object = MONEY_TARGETS.find(
		(name) => firstText(input, [name]) !== null,
	);
	const target =
		recipient ??
		(object === undefined
			? null
			: `${object.replace(/_id$/, "").replaceAll("_", " ")} ${firstText(input, [object])}`);
	return target === null
		? { name: verb, values: { amount } }
		: { name: `${verb}To`, values: { amount, target } };
}

/**
 * An amount with its currency. A whole number is left as it is: some services count cents, others
 * do not.
 * @param {JsonObject} input
 * @returns {string | null}
 */
function amountOf(input) {
	const currency = (firstText(input, ["currency"]) ?? "").toUpperCase();
	const withCurrency = (/** @type {string} */ text) =>
		Object.hasOwn(SIGNS, currency)
			? `${SIGNS[currency]}${text}`
			: `${text} ${currency}`.trim();
	for (const name of MINOR_AMOUNTS) {
		const minor = input[name];
		if (typeof minor === "number" && Number.isSafeInteger(minor) && minor >= 0)
			return withCurrency(
				`${Math.floor(minor / 100)}.${String(minor % 100).padStart(2, "0")}`,
			);
	}
	const { amount } = input;
	if (typeof amount === "number" && !Number.isInteger(amount))
		return withCurrency(amount.toFixed(2));
	if (typeof amount === "string" && /^[0-9]+\.[0-9]{2}$/.test(amount))
		return withCurrency(amount);
	const raw = firstText(input, ["amount"]);
	return raw === null ? null : `${raw} ${currency}`.trim();
}

/**
 * The agent's own reason, if it gives one beside what it would do.
 * @param {Artifact} artifact
 * @returns {string | null}
 */
export function agentReason({ payload }) {
	const { options, description } = payload;
	const given =
		options !== null && typeof options === "object" && !Array.isArray(options)
			? /** @type {JsonObject} */ (options).description
			: undefined;
	const reason = given ?? description;
	return typeof reason === "string" && reason.trim() !== "" ? reason : null;
}
