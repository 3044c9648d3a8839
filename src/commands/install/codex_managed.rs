//! Codex for everybody on a machine: `requirements.toml`.

use std::path::PathBuf;

use countersign::agent::Agent;
use serde_json::Value;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table};

use super::codex::printed;
use super::file::{self, FileChange};
use super::hooks::{HookEntry, ListElement};
use super::shell::program_of;
use super::{InstallRefusal, InstallRequest, malformed_toml};
use crate::commands::exit_action::MALFORMED;

pub fn plan(
    request: &InstallRequest,
    path: PathBuf,
    entries: &[HookEntry],
) -> Result<FileChange, InstallRefusal> {
    let before = file::read(&path)?;
    let text = before.clone().unwrap_or_default();
    let mut document: DocumentMut =
        (text.parse()).map_err(|error| malformed_toml(&path, &text, &error))?;
    let wrong = |what: &str| InstallRefusal {
        code: MALFORMED,
        message: format!("{}: {what}; nothing was changed", path.display()),
    };
    let changed = if request.remove {
        remove(&mut document)
    } else {
        let directory = request
            .hook
            .program
            .parent()
            .map(|path| path.to_string_lossy().into_owned());
        install(&mut document, entries, &directory.unwrap_or_default()).map_err(wrong)?
    };
    let after = changed.then(|| printed(&document, &text));
    let after = match after {
        Some(text) => Some(text).filter(|text| !text.trim().is_empty()),
        None => before.clone(),
    };
    Ok(FileChange {
        path,
        before,
        after,
        public: true,
    })
}

/// The requirements in the form of `hooks.json`.
pub fn value(text: &str) -> Result<Value, String> {
    toml::from_str(text).map_err(|error| error.message().to_owned())
}

fn table<'d>(document: &'d mut DocumentMut, name: &str) -> Option<&'d mut Table> {
    document
        .entry(name)
        .or_insert(Item::Table(Table::new()))
        .as_table_mut()
}

fn install(
    document: &mut DocumentMut,
    entries: &[HookEntry],
    directory: &str,
) -> Result<bool, &'static str> {
    let original = document.to_string();
    let mut set = |name: &str, key: &str| {
        let table = table(document, name)?;
        if table.get(key).and_then(Item::as_bool) != Some(true) {
            table.insert(key, toml_edit::value(true));
        }
        Some(())
    };
    set("features", "hooks").ok_or("features: expected a table")?;
    if document
        .get("allow_managed_hooks_only")
        .and_then(Item::as_bool)
        != Some(true)
    {
        document.insert("allow_managed_hooks_only", toml_edit::value(true));
    }
    let hooks = table(document, "hooks").ok_or("hooks: expected a table")?;
    if !hooks.contains_key("managed_dir") {
        hooks.insert("managed_dir", toml_edit::value(directory));
    }
    for entry in entries {
        let list = hooks
            .entry(entry.event)
            .or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        let list = list.as_array_of_tables_mut();
        let list = list.ok_or("hooks: expected a list of tables for each event")?;
        let wanted = group(&entry.element);
        let ours: Vec<_> = (0..list.len())
            .filter(|index| list.get(*index).is_some_and(is_ours))
            .collect();
        match ours.split_first() {
            Some((first, rest)) => {
                for index in rest.iter().rev() {
                    list.remove(*index);
                }
                if let Some(group) = list.get_mut(*first)
                    && facts(group) != facts(&wanted)
                {
                    *group = wanted;
                }
            }
            None => list.push(wanted),
        }
    }
    Ok(document.to_string() != original)
}

/// Takes out our hooks, and the switches too if no hook is left for which they were.
fn remove(document: &mut DocumentMut) -> bool {
    let Some(hooks) = document.get_mut("hooks").and_then(Item::as_table_mut) else {
        return false;
    };
    let mut changed = false;
    let events: Vec<_> = hooks.iter().map(|(name, _)| name.to_owned()).collect();
    for event in events {
        let Some(list) = hooks.get_mut(&event).and_then(Item::as_array_of_tables_mut) else {
            continue;
        };
        let count = list.len();
        list.retain(|group| !is_ours(group));
        changed |= list.len() != count;
        if list.is_empty() {
            hooks.remove(&event);
        }
    }
    if !changed || hooks.iter().any(|(_, item)| item.is_array_of_tables()) {
        return changed;
    }
    hooks.remove("managed_dir");
    if hooks.is_empty() {
        document.remove("hooks");
    }
    document.remove("allow_managed_hooks_only");
    if let Some(features) = document.get_mut("features").and_then(Item::as_table_mut) {
        features.remove("hooks");
        if features.is_empty() {
            document.remove("features");
        }
    }
    true
}

fn is_ours(group: &Table) -> bool {
    let hooks = group.get("hooks").and_then(Item::as_array_of_tables);
    let mut commands = hooks.into_iter().flatten().map(|hook| {
        let command = hook.get("command").and_then(Item::as_str);
        command.is_some_and(|command| program_of(Agent::Codex, command).is_some())
    });
    commands
        .next()
        .is_some_and(|first| first && commands.all(|ours| ours))
}

fn group(element: &ListElement) -> Table {
    let mut group = Table::new();
    if let ListElement::Group {
        matcher,
        hooks: [hook],
    } = element
    {
        if let Some(matcher) = matcher {
            group.insert("matcher", toml_edit::value(*matcher));
        }
        let mut inner = Table::new();
        inner.insert("type", toml_edit::value("command"));
        inner.insert(
            "command",
            toml_edit::value(hook.command.clone().unwrap_or_default()),
        );
        let seconds = hook.timeout.unwrap_or_default();
        inner.insert(
            "timeout",
            toml_edit::value(i64::try_from(seconds).unwrap_or(i64::MAX)),
        );
        let mut hooks = ArrayOfTables::new();
        hooks.push(inner);
        group.insert("hooks", Item::ArrayOfTables(hooks));
    }
    group
}

/// The matcher, and each command with its time-out.
type HookFacts<'g> = (Option<&'g str>, Vec<(Option<&'g str>, Option<i64>)>);

/// What a group says, without its layout.
fn facts(group: &Table) -> HookFacts<'_> {
    let hooks = group.get("hooks").and_then(Item::as_array_of_tables);
    let hooks = hooks.into_iter().flatten().map(|hook| {
        let command = hook.get("command").and_then(Item::as_str);
        (command, hook.get("timeout").and_then(Item::as_integer))
    });
    (group.get("matcher").and_then(Item::as_str), hooks.collect())
}
