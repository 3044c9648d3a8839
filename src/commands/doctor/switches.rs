//! What switches hooks off, wherever an agent looks for it.

use std::path::Path;

use countersign::agent::Agent;
use countersign::agent::edit::json::Document;
use serde_json::Value;
use toml_edit::{DocumentMut, Item};

use super::config::AgentConfiguration;
use crate::commands::install::file;
use crate::commands::install::place::{InstallPlaces, InstallScope, variable};

/// Each as a sentence that says where it is.
pub fn found(
    agent: Agent,
    places: &InstallPlaces,
    configuration: &AgentConfiguration,
) -> Vec<String> {
    let managed =
        (configuration.installed.iter()).any(|found| found.scope == InstallScope::Managed);
    match agent {
        Agent::Claude => claude(places, configuration, managed),
        Agent::Codex => codex(places, configuration, managed),
        Agent::Copilot if managed => Vec::new(),
        Agent::Copilot => copilot(places),
        Agent::Gemini => gemini(configuration),
        Agent::Opencode => opencode(),
        Agent::Cursor => Vec::new(),
    }
}

fn claude(
    places: &InstallPlaces,
    configuration: &AgentConfiguration,
    managed: bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for settings in &configuration.settings {
        let path = settings.path.display();
        let in_policy = settings.scope == InstallScope::Managed;
        if settings.value["disableAllHooks"] == true && (in_policy || !managed) {
            found.push(format!("{path} has disableAllHooks"));
        }
        if in_policy && settings.value["allowManagedHooksOnly"] == true && !managed {
            found.push(format!(
                "{path} has allowManagedHooksOnly, and our hook is not in it; use install --managed"
            ));
        }
    }
    let local = places.claude_local();
    if !managed && json(&local).is_some_and(|value| value["disableAllHooks"] == true) {
        found.push(format!("{} has disableAllHooks", local.display()));
    }
    found
}

fn codex(places: &InstallPlaces, configuration: &AgentConfiguration, managed: bool) -> Vec<String> {
    let mut found = Vec::new();
    let off = |path: &Path| {
        let features = toml(path)?
            .get("features")?
            .get("hooks")
            .and_then(Item::as_bool);
        (features == Some(false)).then(|| format!("{} has features.hooks = false", path.display()))
    };
    if !managed {
        found.extend(off(&places.codex_home().join("config.toml")));
        found.extend(off(&places.directory.join(".codex/config.toml")));
    }
    let policy = configuration
        .settings
        .iter()
        .find(|settings| settings.scope == InstallScope::Managed);
    if let Some(policy) =
        policy.filter(|policy| policy.value["allow_managed_hooks_only"] == true && !managed)
    {
        found.push(format!(
            "{} has allow_managed_hooks_only, and our hook is not in it; use install --managed",
            policy.path.display()
        ));
    }
    found
}

fn copilot(places: &InstallPlaces) -> Vec<String> {
    let home = places.copilot_home();
    let project = places.repository().join(".github");
    let mut files = vec![
        home.join("config.json"),
        home.join("settings.json"),
        project.join("copilot/settings.json"),
        project.join("copilot/settings.local.json"),
    ];
    for directory in [home.join("hooks"), project.join("hooks")] {
        let entries = directory.read_dir().into_iter().flatten().flatten();
        files.extend(
            entries
                .map(|entry| entry.path())
                .filter(|path| path.extension().is_some_and(|name| name == "json")),
        );
    }
    let off = files
        .iter()
        .filter(|path| json(path).is_some_and(|value| value["disableAllHooks"] == true));
    off.map(|path| format!("{} has disableAllHooks", path.display()))
        .collect()
}

/// A project can switch off a hook by its name even where the system's settings have it.
fn gemini(configuration: &AgentConfiguration) -> Vec<String> {
    let pinned = configuration
        .settings
        .iter()
        .find(|settings| settings.scope == InstallScope::Managed);
    let pinned = pinned.is_some_and(|settings| settings.value["hooksConfig"]["enabled"] == true);
    let mut found = Vec::new();
    for settings in &configuration.settings {
        let path = settings.path.display();
        let switches = &settings.value["hooksConfig"];
        if switches["enabled"] == false && !pinned {
            found.push(format!("{path} has hooksConfig.enabled: false"));
        }
        let disabled = switches["disabled"].as_array().into_iter().flatten();
        let mut disabled = disabled.filter_map(Value::as_str);
        if disabled.any(|name| name == "countersign" || name.contains(" hook gemini")) {
            found.push(format!("{path} has our hook in hooksConfig.disabled"));
        }
    }
    found
}

fn opencode() -> Vec<String> {
    let pure = variable("OPENCODE_PURE")
        .filter(|value| !["0", "false"].iter().any(|off| value == Path::new(off)));
    let found = pure.map(|_| "OPENCODE_PURE is set here, so opencode loads no plugins".to_owned());
    found.into_iter().collect()
}

fn json(path: &Path) -> Option<Value> {
    let text = file::read(path).ok().flatten()?;
    Document::parse(&text).ok()?.value().ok()
}

fn toml(path: &Path) -> Option<DocumentMut> {
    file::read(path).ok().flatten()?.parse().ok()
}
