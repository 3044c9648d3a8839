//! Gemini CLI: `settings.json`. Its time-outs are in milliseconds.

use super::file::FileChange;
use super::hooks::{HookCommand, HookEntry, ListElement};
use super::place::{InstallPlaces, InstallScope};
use super::shell::{AGENT_SECONDS, SESSION_SECONDS};
use super::{InstallRefusal, InstallRequest, RequiredSetting, SettingNeed, edited};

pub const MANAGED: [RequiredSetting; 1] = [RequiredSetting {
    path: &["hooksConfig"],
    name: "enabled",
    value: SettingNeed::True,
}];

pub fn plan(
    request: &InstallRequest,
    places: &InstallPlaces,
) -> Result<Vec<FileChange>, InstallRefusal> {
    let settings = match request.scope {
        InstallScope::Managed => &MANAGED[..],
        InstallScope::User | InstallScope::Project => &[],
    };
    let path = places.gemini(request.scope);
    Ok(vec![edited(request, path, &entries(request), settings)?])
}

fn entries(request: &InstallRequest) -> Vec<HookEntry> {
    let hook = &request.hook;
    let calls = [
        ("BeforeTool", Some(".*"), hook.guarded(), AGENT_SECONDS),
        ("SessionStart", None, hook.plain(), SESSION_SECONDS),
        ("SessionEnd", None, hook.plain(), SESSION_SECONDS),
    ];
    let entries = calls.map(|(event, matcher, command, seconds)| HookEntry {
        event,
        element: ListElement::Group {
            matcher,
            hooks: [HookCommand {
                kind: Some("command"),
                name: Some("countersign"),
                command: Some(command),
                timeout: Some(seconds * 1_000),
                ..HookCommand::default()
            }],
        },
    });
    entries.into()
}
