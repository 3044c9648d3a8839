//! Claude Code: `settings.json`.

use super::file::FileChange;
use super::hooks::{HookCommand, HookEntry, ListElement};
use super::place::{InstallPlaces, InstallScope};
use super::shell::{AGENT_SECONDS, SESSION_SECONDS};
use super::{InstallRefusal, InstallRequest, RequiredSetting, SettingNeed, edited};

pub const MANAGED: [RequiredSetting; 1] = [RequiredSetting {
    path: &[],
    name: "allowManagedHooksOnly",
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
    let path = places.claude(request.scope);
    Ok(vec![edited(request, path, &entries(request), settings)?])
}

fn entries(request: &InstallRequest) -> Vec<HookEntry> {
    let hook = &request.hook;
    let call = HookEntry {
        event: "PreToolUse",
        element: ListElement::Group {
            matcher: Some("*"),
            hooks: [HookCommand {
                kind: Some("command"),
                command: Some(hook.guarded()),
                timeout: Some(AGENT_SECONDS),
                // Old versions do not know it: the command guards itself.
                on_failure: Some("block"),
                ..HookCommand::default()
            }],
        },
    };
    let session = ["SessionStart", "SessionEnd", "UserPromptSubmit"].map(|event| HookEntry {
        event,
        element: ListElement::Group {
            matcher: None,
            hooks: [HookCommand {
                kind: Some("command"),
                command: Some(hook.plain()),
                timeout: Some(SESSION_SECONDS),
                ..HookCommand::default()
            }],
        },
    });
    [call].into_iter().chain(session).collect()
}
