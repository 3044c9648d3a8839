//! The sentence for a call of a tool: known tools by a table, others by their name and the arguments
//! that say most.

use serde_json::{Map, Value};

use super::headline_text::{MAX_CHARS, cut, fenced, first_text};
use crate::visible;

type Members = Map<String, Value>;

/// Tools of the agents, in lower case without signs: the beginning of the sentence, and the members
/// of the input that may end it, the first one present.
const TOOLS: [(&str, &str, &[&str]); 24] = [
    ("webfetch", "Fetch ", &["url"]),
    ("fetch", "Fetch ", &["url"]),
    ("websearch", "Search the web for ", &["query"]),
    ("googlewebsearch", "Search the web for ", &["query"]),
    ("task", "Start a subagent: ", &["description", "prompt"]),
    ("agent", "Start a subagent: ", &["description", "prompt"]),
    (
        "spawnagent",
        "Start a subagent: ",
        &["message", "prompt", "description"],
    ),
    (
        "notebookedit",
        "Edit the notebook ",
        &["notebook_path", "path"],
    ),
    ("read", "Read ", &["file_path", "filePath", "path"]),
    ("readfile", "Read ", &["file_path", "absolute_path", "path"]),
    ("view", "Read ", &["path", "file_path"]),
    ("ls", "List ", &["path"]),
    ("list", "List ", &["path"]),
    ("listdirectory", "List ", &["dir_path", "path"]),
    ("glob", "Search files for ", &["pattern"]),
    ("grep", "Search files for ", &["pattern"]),
    ("searchfilecontent", "Search files for ", &["pattern"]),
    ("skill", "Use the skill ", &["skill", "name", "command"]),
    ("killshell", "Stop the background command ", &["shell_id"]),
    ("killbash", "Stop the background command ", &["shell_id"]),
    ("bashoutput", "Read the output of ", &["bash_id"]),
    ("slashcommand", "Run the slash command ", &["command"]),
    ("savememory", "Remember: ", &["fact"]),
    ("viewimage", "Look at the image ", &["path"]),
];
const TODO_TOOLS: [&str; 3] = ["todowrite", "writetodos", "updateplan"];
const QUESTION_TOOLS: [&str; 3] = ["askuserquestion", "askuser", "question"];

const SUBJECTS: [&str; 22] = [
    "title",
    "subject",
    "name",
    "summary",
    "query",
    "q",
    "question",
    "url",
    "uri",
    "path",
    "file_path",
    "filePath",
    "key",
    "id",
    "sql",
    "command",
    "text",
    "message",
    "body",
    "content",
    "prompt",
    "description",
];
const PLACES: [&str; 8] = [
    "repository",
    "repo",
    "project",
    "channel",
    "workspace",
    "database",
    "table",
    "bucket",
];
const RECIPIENTS: [&str; 3] = ["to", "recipient", "email"];

const MONEY_VERBS: [(&str, &str); 6] = [
    ("refund", "Refund"),
    ("charge", "Charge"),
    ("pay", "Pay"),
    ("payment", "Pay"),
    ("payout", "Pay"),
    ("transfer", "Transfer"),
];
const MINOR_AMOUNTS: [&str; 4] = [
    "amount_cents",
    "amountCents",
    "amount_in_cents",
    "amount_minor",
];
const MONEY_TARGETS: [&str; 8] = [
    "order",
    "order_id",
    "invoice",
    "charge",
    "payment_intent",
    "payment",
    "customer",
    "account",
];

pub(super) fn tool_headline(payload: &Members) -> String {
    let none = Members::new();
    let input = payload.get("input").and_then(Value::as_object);
    let input = input.unwrap_or(&none);
    let whole = payload.get("tool").and_then(Value::as_str);
    let whole = whole.unwrap_or_default();
    if let Some((server, tool)) = server_tool(payload.get("mcp"), whole) {
        let server = visible(&cut(server, MAX_CHARS));
        return format!("{} ({server})", called_headline(tool, input));
    }
    let name: String = whole
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let name = name.as_str();
    known_headline(name, input).unwrap_or_else(|| called_headline(whole, input))
}

fn known_headline(name: &str, input: &Members) -> Option<String> {
    if QUESTION_TOOLS.contains(&name)
        && let Some(asked) = question_headline(input)
    {
        return Some(asked);
    }
    if TODO_TOOLS.contains(&name) {
        return Some("Update its to-do list".to_owned());
    }
    if name == "webfetch" && first_text(input, &["url"]).is_none() {
        let prompt = first_text(input, &["prompt"])?;
        return Some(format!("Fetch from the web: {prompt}"));
    }
    if matches!(name, "readmcpresourcetool" | "readmcpresource") {
        let (uri, server) = (
            first_text(input, &["uri"])?,
            first_text(input, &["server"])?,
        );
        return Some(format!("Read {uri} from {server}"));
    }
    let (_, sentence, members) = TOOLS.iter().find(|(tool, ..)| *tool == name)?;
    let value = first_text(input, members)?;
    Some(if name == "slashcommand" {
        format!("{sentence}{}", fenced(&value))
    } else {
        format!("{sentence}{value}")
    })
}

pub(super) fn question_headline(members: &Members) -> Option<String> {
    let list = members.get("questions").and_then(Value::as_array);
    let list = list.map(Vec::as_slice).unwrap_or_default();
    let first = list.first().map_or(Some(members), Value::as_object)?;
    let question = first_text(first, &["question", "text"])?;
    Some(match list.len() {
        0 | 1 => format!("Ask you: {question}"),
        2 => format!("Ask you: {question} (and 1 more question)"),
        count => format!("Ask you: {question} (and {} more questions)", count - 1),
    })
}

/// The server and the tool of an MCP call: `mcp` says so, or the name `mcp__server__tool`.
fn server_tool<'v>(mcp: Option<&'v Value>, whole: &'v str) -> Option<(&'v str, &'v str)> {
    let member = |name| mcp?.get(name)?.as_str();
    if let (Some(server), Some(tool)) = (member("server"), member("tool")) {
        return Some((server, tool));
    }
    let (server, tool) = whole.strip_prefix("mcp__")?.split_once("__")?;
    (!server.is_empty()).then_some((server, tool))
}

/// `create_issue` and `createIssue` as "Create issue".
fn readable_name(name: &str) -> String {
    let mut spaced = String::new();
    let mut before = ' ';
    for c in name.chars() {
        let is_break =
            c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit());
        if is_break {
            spaced.push(' ');
        }
        spaced.push(c);
        before = c;
    }
    let is_sign = |c: char| c.is_whitespace() || "_-./:".contains(c);
    let words = spaced.split(is_sign).filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(readable_word).collect();
    let text = words.join(" ");
    let mut rest = text.chars();
    let first = rest.next().map(|c| c.to_uppercase().to_string());
    cut(
        &format!("{}{}", first.unwrap_or_default(), rest.as_str()),
        MAX_CHARS,
    )
}

/// Abbreviations stay as they are.
fn readable_word(word: &str) -> String {
    let is_short = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
    if word.len() >= 2 && word.chars().all(is_short) {
        word.to_owned()
    } else {
        word.to_lowercase()
    }
}

/// A tool without a sentence of its own: its name, and what says most about the call.
fn called_headline(tool: &str, input: &Members) -> String {
    let action = readable_name(tool);
    let action = if action.is_empty() { "?" } else { &action };
    if let Some(money) = money_headline(&action.to_lowercase(), input) {
        return money;
    }
    let action = visible(action);
    let subject = first_text(input, &SUBJECTS).map(|it| format!(": {it}"));
    let subject = subject.unwrap_or_default();
    if let Some(target) = first_text(input, &RECIPIENTS) {
        return format!("{action} to {target}{subject}");
    }
    let Some(place) = first_text(input, &PLACES) else {
        return format!("{action}{subject}");
    };
    let repo = first_text(input, &["repo"]);
    match first_text(input, &["owner"]) {
        Some(owner) if repo.as_ref() == Some(&place) => {
            format!("{action} in {owner}/{place}{subject}")
        }
        _ => format!("{action} in {place}{subject}"),
    }
}

fn money_headline(action: &str, input: &Members) -> Option<String> {
    let has = |word: &str| action.split(' ').any(|it| it == word);
    let (_, verb) = MONEY_VERBS.iter().find(|(word, _)| has(word))?;
    let amount = amount(input)?;
    let object = || {
        let found = MONEY_TARGETS
            .iter()
            .find_map(|name| Some((name, first_text(input, &[name])?)));
        let (name, value) = found?;
        let name = name.strip_suffix("_id").unwrap_or(name).replace('_', " ");
        Some(format!("{name} {value}"))
    };
    Some(match first_text(input, &RECIPIENTS).or_else(object) {
        Some(target) => format!("{verb} {amount} to {target}"),
        None => format!("{verb} {amount}"),
    })
}

/// An amount with its currency. A whole number is left as it is: some services count cents, others
/// do not.
fn amount(input: &Members) -> Option<String> {
    let currency = first_text(input, &["currency"]).unwrap_or_default();
    let currency = currency.to_uppercase();
    let with_currency = |text: String| match currency.as_str() {
        "EUR" => format!("€{text}"),
        "GBP" => format!("£{text}"),
        "USD" => format!("${text}"),
        _ => format!("{text} {currency}").trim().to_owned(),
    };
    for name in MINOR_AMOUNTS {
        if let Some(minor) = input.get(name).and_then(Value::as_u64) {
            return Some(with_currency(format!("{}.{:02}", minor / 100, minor % 100)));
        }
    }
    match input.get("amount")? {
        Value::Number(number) if number.as_f64().is_some_and(|it| it.fract() != 0.0) => {
            Some(with_currency(format!("{:.2}", number.as_f64()?)))
        }
        Value::String(text) if has_cents(text) => Some(with_currency(text.clone())),
        _ => {
            let raw = first_text(input, &["amount"])?;
            Some(format!("{raw} {currency}").trim().to_owned())
        }
    }
}

fn has_cents(text: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let parts = text.split_once('.');
    parts.is_some_and(|(whole, cents)| is_digits(whole) && is_digits(cents) && cents.len() == 2)
}
