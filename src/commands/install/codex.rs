//! Codex: `hooks.json`, and its trust in `config.toml`. Without trust Codex skips a hook and says nothing.

use std::path::{Path, PathBuf};

use countersign::agent::Agent;
use countersign::protocol::canonical::Sha256Hex;
use serde_json::{Value, json};
use toml_edit::{DocumentMut, Item, Table, value};

use super::file::{self, FileChange};
use super::hooks::{self, FoundHook, HookCommand, HookEntry, ListElement};
use super::place::{InstallPlaces, InstallScope};
use super::shell::{AGENT_SECONDS, CODEX_SESSION_END_SECONDS, SESSION_SECONDS};
use super::{InstallRefusal, InstallRequest, codex_managed, edited, malformed_toml};
use crate::commands::exit_action::MALFORMED;

pub fn plan(
    request: &InstallRequest,
    places: &InstallPlaces,
) -> Result<Vec<FileChange>, InstallRefusal> {
    let path = places.codex(request.scope);
    if request.scope == InstallScope::Managed {
        return Ok(vec![codex_managed::plan(request, path, &entries(request))?]);
    }
    let hooks = edited(request, path, &entries(request), &[])?;
    // It reads no comments, and then has no hooks at all.
    if let Some(Err(error)) = hooks.after.as_deref().map(serde_json::from_str::<Value>) {
        return Err(InstallRefusal {
            code: MALFORMED,
            message: format!(
                "{} is not plain JSON, so Codex ignores all of it: {error}. Nothing was changed",
                hooks.path.display()
            ),
        });
    }
    let trust = trust(&hooks, places.codex_home().join("config.toml"))?;
    Ok(vec![hooks, trust])
}

fn entries(request: &InstallRequest) -> Vec<HookEntry> {
    let hook = &request.hook;
    let calls = [
        ("PreToolUse", Some("*"), hook.guarded(), AGENT_SECONDS),
        ("SessionStart", None, hook.plain(), SESSION_SECONDS),
        ("SessionEnd", None, hook.plain(), CODEX_SESSION_END_SECONDS),
        ("UserPromptSubmit", None, hook.plain(), SESSION_SECONDS),
        ("Stop", None, hook.plain(), SESSION_SECONDS),
    ];
    let entries = calls.map(|(event, matcher, command, seconds)| HookEntry {
        event,
        element: ListElement::Group {
            matcher,
            hooks: [HookCommand {
                kind: Some("command"),
                command: Some(command),
                timeout: Some(seconds),
                ..HookCommand::default()
            }],
        },
    });
    entries.into()
}

/// What Codex has to find in `config.toml` to trust our hooks: for each its key, and the hash of what it does.
pub fn trusted(path: &Path, settings: &Value) -> Vec<(String, String)> {
    let ours = hooks::find(Agent::Codex, settings).into_iter();
    let ours = ours.filter(|found| found.inner.is_none());
    let trusted = ours.flat_map(|found| {
        let event = snake_case(&found.event);
        let element = found.element(settings);
        let handlers = element["hooks"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate();
        let keys = handlers.map(|(inner, handler)| {
            let key = format!("{}:{event}:{}:{inner}", path.display(), found.index);
            (key, hash(&event, element, handler))
        });
        keys.collect::<Vec<_>>()
    });
    trusted.collect()
}

/// Why Codex skips one of our hooks, if it does.
pub fn distrust(
    path: &Path,
    settings: &Value,
    found: &FoundHook,
    places: &InstallPlaces,
) -> Option<String> {
    let config = places.codex_home().join("config.toml");
    let shown = config.display();
    let text = match file::read(&config) {
        Ok(text) => text.unwrap_or_default(),
        Err(error) => return Some(error.to_string()),
    };
    let mut document = match text.parse::<DocumentMut>() {
        Ok(document) => document,
        Err(error) => return Some(malformed_toml(&config, &text, &error).to_string()),
    };
    let event = snake_case(&found.event);
    let key = format!("{}:{event}:{}:", path.display(), found.index);
    let trusted = trusted(path, settings);
    let Some((key, hash)) = trusted.iter().find(|(other, _)| other.starts_with(&key)) else {
        return Some("it shares a group with others, so its trust cannot be checked".to_owned());
    };
    let entry = state(&mut document).and_then(|state| state.get(key));
    let trusts = entry
        .and_then(|entry| entry.get("trusted_hash"))
        .and_then(Item::as_str);
    let disabled = entry
        .and_then(|entry| entry.get("enabled"))
        .and_then(Item::as_bool);
    if disabled == Some(false) {
        return Some(format!("{shown} has it disabled"));
    }
    (trusts != Some(hash)).then(|| format!("{shown} does not trust it as it is, so Codex skips it"))
}

fn hash(event: &str, element: &Value, handler: &Value) -> String {
    // serde_json sorts the members, as Codex does.
    let mut identity = json!({
        "event_name": event,
        "hooks": [{
            "async": false,
            "command": handler["command"],
            "timeout": handler["timeout"],
            "type": "command",
        }],
    });
    if let Some(matcher) = element.get("matcher") {
        identity["matcher"] = matcher.clone();
    }
    let digest = Sha256Hex::of(identity.to_string().as_bytes());
    format!("sha256:{digest}")
}

/// As the keys of trust have it: `PreToolUse` is `pre_tool_use`.
fn snake_case(event: &str) -> String {
    let mut text = String::new();
    for character in event.chars() {
        if character.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(character.to_ascii_lowercase());
    }
    text
}

/// Puts trust where our hooks are now, and takes it away from where they were.
fn trust(hooks: &FileChange, path: PathBuf) -> Result<FileChange, InstallRefusal> {
    let before = file::read(&path)?;
    let settings = |text: &Option<String>| -> Value {
        let text = text.as_deref().unwrap_or_default();
        serde_json::from_str(text).unwrap_or_default()
    };
    let (old_settings, new_settings) = (settings(&hooks.before), settings(&hooks.after));
    let old = trusted(&hooks.path, &old_settings);
    let new = trusted(&hooks.path, &new_settings);
    let mut text = before.clone().unwrap_or_default();
    for (key, hash) in old
        .iter()
        .filter(|(key, _)| !new.iter().any(|(other, _)| other == key))
    {
        text = untrust(&text, key, hash).map_err(|error| malformed_toml(&path, &text, &error))?;
    }
    // Trust in the hooks of others goes with them to their new places.
    for (from, to) in moved(&hooks.path, &old_settings, &new_settings) {
        text = text.replace(&from, &to);
    }
    for (key, hash) in &new {
        text = entrust(&text, key, hash).map_err(|error| malformed_toml(&path, &text, &error))?;
    }
    // Whatever was there, it is TOML afterwards.
    text.parse::<DocumentMut>()
        .map_err(|error| malformed_toml(&path, &text, &error))?;
    let after = (before.is_some() || !text.is_empty()).then_some(text);
    let after = after.filter(|text| !(text.is_empty() && !old.is_empty() && new.is_empty()));
    Ok(FileChange {
        path,
        before,
        after,
        public: false,
    })
}

/// The beginnings of the keys of others' groups that are at another place now, because ours before them are gone.
fn moved(path: &Path, old: &Value, new: &Value) -> Vec<(String, String)> {
    let others = |settings: &Value, event: &str| {
        let ours = hooks::find(Agent::Codex, settings);
        let is_ours = |index: &usize| {
            (ours.iter())
                .any(|found| found.event == event && found.index == *index && found.inner.is_none())
        };
        let count = settings["hooks"][event].as_array().map_or(0, Vec::len);
        (0..count)
            .filter(|index| !is_ours(index))
            .collect::<Vec<_>>()
    };
    let mut moved = Vec::new();
    for event in old["hooks"]
        .as_object()
        .into_iter()
        .flat_map(|events| events.keys())
    {
        let key = |index| format!("\"{}:{}:{index}:", path.display(), snake_case(event));
        let pairs = others(old, event).into_iter().zip(others(new, event));
        moved.extend(
            pairs
                .filter(|(from, to)| from != to)
                .map(|(from, to)| (key(from), key(to))),
        );
    }
    moved
}

/// Without a line break at the end of the file, there is no empty line before ours: so the original can be restored.
fn block(key: &str, hash: &str, newline: &str) -> String {
    let key = Value::from(key);
    format!("[hooks.state.{key}]{newline}trusted_hash = \"{hash}\"{newline}")
}

fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn entrust(text: &str, key: &str, hash: &str) -> Result<String, toml_edit::TomlError> {
    let mut document: DocumentMut = text.parse()?;
    let found = state(&mut document).and_then(|state| state.get_mut(key));
    let Some(found) = found else {
        let newline = newline(text);
        let separator = if text.is_empty() { "" } else { newline };
        return Ok(format!("{text}{separator}{}", block(key, hash, newline)));
    };
    if found.get("trusted_hash").and_then(Item::as_str) == Some(hash) {
        return Ok(text.to_owned());
    }
    if let Some(table) = found.as_table_like_mut() {
        table.insert("trusted_hash", value(hash));
    }
    Ok(printed(&document, text))
}

fn untrust(text: &str, key: &str, hash: &str) -> Result<String, toml_edit::TomlError> {
    let block = block(key, hash, newline(text));
    for ours in [format!("{}{block}", newline(text)), block] {
        if let Some(at) = text.find(&ours)
            && (!ours.starts_with('[') || at == 0)
        {
            let mut shorter = text.to_owned();
            shorter.replace_range(at..at + ours.len(), "");
            return Ok(shorter);
        }
    }
    let mut document: DocumentMut = text.parse()?;
    let known = state(&mut document).is_some_and(|state| state.remove(key).is_some());
    Ok(if known {
        printed(&document, text)
    } else {
        text.to_owned()
    })
}

/// `toml_edit` writes every line break as a bare one.
pub fn printed(document: &DocumentMut, original: &str) -> String {
    let text = document.to_string();
    let breaks = original.matches('\n').count();
    if breaks > 0 && original.matches("\r\n").count() == breaks {
        return text.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    text
}

fn state(document: &mut DocumentMut) -> Option<&mut Table> {
    document.get_mut("hooks")?.get_mut("state")?.as_table_mut()
}
