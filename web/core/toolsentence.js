// The sentence for a call of a tool: known tools by a table, others by their name and the arguments
// that say most. `tool_headline.rs` has the same for the terminal.

import { cut, firstText, MOST_CHARS } from "./sentencetext.js";

/** @typedef {import('./types.js').JsonObject} JsonObject */
/** @typedef {import('./types.js').JsonValue} JsonValue */
/** @typedef {import('./sentencetext.js').Sentence} Sentence */
/** @typedef {import('./sentencetext.js').SentenceName} SentenceName */

/**
 * @param {JsonObject} members
 * @returns {Sentence | null}
 */
export function question(members) {
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
export function toolSentence(payload) {
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
