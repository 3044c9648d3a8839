//! Codex for everybody on a machine: `requirements.toml`.

use std::path::PathBuf;

use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

use super::document::{malformed, printed};
use crate::install::file::{self, FileChange, InstallRefusal};
use crate::install::hooks::{HookEntry, InstallRequest};
use crate::install::shell::program_of;

pub fn plan(
    request: &InstallRequest,
    path: PathBuf,
    entries: &[HookEntry],
) -> Result<FileChange, InstallRefusal> {
    let before = file::read(&path)?;
    let text = before.clone().unwrap_or_default();
    let mut document: DocumentMut =
        (text.parse()).map_err(|error| malformed(&path, &text, &error))?;
    let is_changed = if request.remove {
        remove(&mut document)
    } else {
        let directory = request.hook.program.parent();
        let directory = directory.map(|path| path.to_string_lossy().into_owned());
        let installed = install(&mut document, entries, directory.unwrap_or_default());
        installed.map_err(|problem| {
            let path = path.display();
            InstallRefusal::Malformed(format!("{path}: {problem}; nothing was changed"))
        })?
    };
    let after = if is_changed {
        Some(printed(&document, &text)).filter(|text| !text.trim().is_empty())
    } else {
        before.clone()
    };
    Ok(FileChange {
        path,
        before,
        after,
        public: true,
    })
}

fn set_true(table: &mut Table, key: &str) {
    if table.get(key).and_then(Item::as_bool) != Some(true) {
        table.insert(key, value(true));
    }
}

fn table<'d>(document: &'d mut DocumentMut, name: &str) -> Option<&'d mut Table> {
    let table = document.entry(name).or_insert(Item::Table(Table::new()));
    table.as_table_mut()
}

fn install(
    document: &mut DocumentMut,
    entries: &[HookEntry],
    directory: String,
) -> Result<bool, &'static str> {
    let original = document.to_string();
    let features = table(document, "features").ok_or("features: expected a table")?;
    set_true(features, "hooks");
    set_true(document, "allow_managed_hooks_only");
    let hooks = table(document, "hooks").ok_or("hooks: expected a table")?;
    if !hooks.contains_key("managed_dir") {
        hooks.insert("managed_dir", value(directory));
    }
    for entry in entries {
        let list = hooks.entry(entry.event);
        let list = list.or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        let list = list.as_array_of_tables_mut();
        let list = list.ok_or("hooks: expected a list of tables for each event")?;
        let wanted = group(entry);
        let is_ours_at = |index: &usize| list.get(*index).is_some_and(is_ours);
        let ours: Vec<_> = (0..list.len()).filter(is_ours_at).collect();
        let Some((first, rest)) = ours.split_first() else {
            list.push(wanted);
            continue;
        };
        for index in rest.iter().rev() {
            list.remove(*index);
        }
        if let Some(group) = list.get_mut(*first)
            && facts(group) != facts(&wanted)
        {
            *group = wanted;
        }
    }
    Ok(document.to_string() != original)
}

/// Takes out our hooks, and the switches too if no hook is left for which they were.
fn remove(document: &mut DocumentMut) -> bool {
    let Some(hooks) = document.get_mut("hooks").and_then(Item::as_table_mut) else {
        return false;
    };
    let mut is_changed = false;
    let events: Vec<_> = hooks.iter().map(|(name, _)| name.to_owned()).collect();
    for event in events {
        let Some(list) = hooks.get_mut(&event).and_then(Item::as_array_of_tables_mut) else {
            continue;
        };
        let count = list.len();
        list.retain(|group| !is_ours(group));
        is_changed |= list.len() != count;
        if list.is_empty() {
            hooks.remove(&event);
        }
    }
    if !is_changed || hooks.iter().any(|(_, item)| item.is_array_of_tables()) {
        return is_changed;
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

fn hooks_of(group: &Table) -> impl Iterator<Item = &Table> {
    let hooks = group.get("hooks").and_then(Item::as_array_of_tables);
    hooks.into_iter().flatten()
}

fn command_of(hook: &Table) -> Option<&str> {
    hook.get("command").and_then(Item::as_str)
}

fn is_ours(group: &Table) -> bool {
    let is_ours = |hook| command_of(hook).is_some_and(|it| program_of("codex", it).is_some());
    hooks_of(group).next().is_some() && hooks_of(group).all(is_ours)
}

fn group(entry: &HookEntry) -> Table {
    let mut hook = Table::new();
    hook.insert("type", value("command"));
    hook.insert("command", value(&entry.command));
    let seconds = i64::try_from(entry.seconds).unwrap_or(i64::MAX);
    hook.insert("timeout", value(seconds));
    let mut hooks = ArrayOfTables::new();
    hooks.push(hook);
    let mut group = Table::new();
    if let Some(matcher) = entry.matcher {
        group.insert("matcher", value(matcher));
    }
    group.insert("hooks", Item::ArrayOfTables(hooks));
    group
}

/// The matcher, and each command with its time-out.
type HookFacts<'g> = (Option<&'g str>, Vec<(Option<&'g str>, Option<i64>)>);

/// The facts of a group without its layout.
fn facts(group: &Table) -> HookFacts<'_> {
    let hooks = hooks_of(group).map(|hook| {
        let timeout = hook.get("timeout").and_then(Item::as_integer);
        (command_of(hook), timeout)
    });
    (group.get("matcher").and_then(Item::as_str), hooks.collect())
}
