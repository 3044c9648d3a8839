//! The trust of Codex in hooks, in `config.toml`. Without it Codex skips a hook and says nothing.

use std::path::{Path, PathBuf};

use countersign_protocol::canonical::Sha256Hex;
use serde_json::{Value, json};
use toml_edit::{DocumentMut, Item, Table, TomlError, value};

use super::document::{malformed, printed};
use crate::install::file::{self, FileChange, InstallRefusal};
use crate::install::hooks::{FoundHook, HookForm};

/// A hook as Codex trusts it: where it is, and the hash of its parts.
struct TrustedHook {
    key: String,
    hash: String,
}

/// Our hooks, as Codex has to find them in `config.toml` to trust them.
fn trusted(form: &HookForm, path: &Path, settings: &Value) -> Vec<TrustedHook> {
    let mut trusted = Vec::new();
    for found in form.find(settings) {
        if found.inner.is_some() {
            continue;
        }
        let event = snake_case(&found.event);
        let element = found.element(settings);
        let handlers = element["hooks"].as_array().into_iter().flatten();
        trusted.extend(handlers.enumerate().map(|(inner, handler)| TrustedHook {
            key: format!("{}{inner}", group_key(path, &event, found.index)),
            hash: hash(&event, element, handler),
        }));
    }
    trusted
}

/// The beginning of the keys of a group's hooks.
fn group_key(path: &Path, event: &str, index: usize) -> String {
    format!("{}:{event}:{index}:", path.display())
}

/// Why Codex skips one of our hooks, if it does.
pub fn distrust(
    form: &HookForm,
    path: &Path,
    settings: &Value,
    found: &FoundHook,
    config: &Path,
) -> Option<String> {
    let shown = config.display();
    let text = match file::read(config) {
        Ok(text) => text.unwrap_or_default(),
        Err(error) => return Some(error.to_string()),
    };
    let mut document = match text.parse::<DocumentMut>() {
        Ok(document) => document,
        Err(error) => return Some(malformed(config, &text, &error).to_string()),
    };
    let group = group_key(path, &snake_case(&found.event), found.index);
    let mut trusted = trusted(form, path, settings).into_iter();
    let Some(hook) = trusted.find(|hook| hook.key.starts_with(&group)) else {
        return Some(
            "it shares a group with other hooks, so its trust cannot be checked".to_owned(),
        );
    };
    let entry = state(&mut document).and_then(|state| state.get(&hook.key));
    let member = |name: &str| entry.and_then(|entry| entry.get(name));
    if member("enabled").and_then(Item::as_bool) == Some(false) {
        return Some(format!("{shown} disables it"));
    }
    let trusts = member("trusted_hash").and_then(Item::as_str) == Some(&hook.hash);
    (!trusts).then(|| format!("{shown} does not trust it in its current form, so Codex skips it"))
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

/// Puts trust where our hooks are after the change of `hooks`, and takes it away from where they
/// were.
pub fn plan(
    form: &HookForm,
    hooks: &FileChange,
    path: PathBuf,
) -> Result<FileChange, InstallRefusal> {
    let before = file::read(&path)?;
    let settings = |text: &Option<String>| -> Value {
        let text = text.as_deref().unwrap_or_default();
        serde_json::from_str(text).unwrap_or_default()
    };
    let (old_settings, new_settings) = (settings(&hooks.before), settings(&hooks.after));
    let old = trusted(form, &hooks.path, &old_settings);
    let new = trusted(form, &hooks.path, &new_settings);
    let mut text = before.clone().unwrap_or_default();
    let is_kept = |hook: &TrustedHook| new.iter().any(|other| other.key == hook.key);
    for hook in old.iter().filter(|hook| !is_kept(hook)) {
        text = untrust(&text, hook).map_err(|error| malformed(&path, &text, &error))?;
    }
    // Trust in the hooks of others goes with them to their new places.
    for (from, to) in moved(form, &hooks.path, &old_settings, &new_settings) {
        text = text.replace(&from, &to);
    }
    for hook in &new {
        text = entrust(&text, hook).map_err(|error| malformed(&path, &text, &error))?;
    }
    // Checked even if nothing was changed.
    (text.parse::<DocumentMut>()).map_err(|error| malformed(&path, &text, &error))?;
    let after = (before.is_some() || !text.is_empty()).then_some(text);
    let after = after.filter(|text| !(text.is_empty() && !old.is_empty() && new.is_empty()));
    Ok(FileChange {
        path,
        before,
        after,
        public: false,
    })
}

/// The beginnings of the keys of others' groups that are at another place now, because ours before
/// them are gone.
fn moved(form: &HookForm, path: &Path, old: &Value, new: &Value) -> Vec<(String, String)> {
    let others = |settings: &Value, event: &str| -> Vec<usize> {
        let ours = form.find(settings).into_iter();
        let ours = ours.filter(|found| found.event == event && found.inner.is_none());
        let ours: Vec<_> = ours.map(|found| found.index).collect();
        let count = settings["hooks"][event].as_array().map_or(0, Vec::len);
        (0..count).filter(|index| !ours.contains(index)).collect()
    };
    let mut moved = Vec::new();
    for (event, _) in old["hooks"].as_object().into_iter().flatten() {
        let key = |index| format!("\"{}", group_key(path, &snake_case(event), index));
        let pairs = others(old, event).into_iter().zip(others(new, event));
        let pairs = pairs.filter(|(from, to)| from != to);
        moved.extend(pairs.map(|(from, to)| (key(from), key(to))));
    }
    moved
}

/// Without a line break at the end of the file, there is no empty line before ours: so the original
/// can be restored.
fn block(hook: &TrustedHook, newline: &str) -> String {
    let (key, hash) = (Value::from(hook.key.as_str()), &hook.hash);
    format!("[hooks.state.{key}]{newline}trusted_hash = \"{hash}\"{newline}")
}

fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn entrust(text: &str, hook: &TrustedHook) -> Result<String, TomlError> {
    let mut document: DocumentMut = text.parse()?;
    let found = state(&mut document).and_then(|state| state.get_mut(&hook.key));
    let Some(found) = found else {
        let newline = newline(text);
        let separator = if text.is_empty() { "" } else { newline };
        return Ok(format!("{text}{separator}{}", block(hook, newline)));
    };
    if found.get("trusted_hash").and_then(Item::as_str) == Some(&hook.hash) {
        return Ok(text.to_owned());
    }
    if let Some(table) = found.as_table_like_mut() {
        table.insert("trusted_hash", value(&hook.hash));
    }
    Ok(printed(&document, text))
}

fn untrust(text: &str, hook: &TrustedHook) -> Result<String, TomlError> {
    let newline = newline(text);
    let block = block(hook, newline);
    let separated = format!("{newline}{block}");
    if text.contains(&separated) {
        return Ok(text.replacen(&separated, "", 1));
    }
    if let Some(rest) = text.strip_prefix(&block) {
        return Ok(rest.to_owned());
    }
    let mut document: DocumentMut = text.parse()?;
    let is_known = state(&mut document).is_some_and(|state| state.remove(&hook.key).is_some());
    Ok(if is_known {
        printed(&document, text)
    } else {
        text.to_owned()
    })
}

fn state(document: &mut DocumentMut) -> Option<&mut Table> {
    document.get_mut("hooks")?.get_mut("state")?.as_table_mut()
}
