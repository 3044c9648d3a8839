//! Copilot CLI: a file of our own in a directory of hooks. The policy of the system has the same form.

use super::file::FileChange;
use super::hooks::{HookCommand, HookEntry, ListElement};
use super::place::InstallPlaces;
use super::shell::{AGENT_SECONDS, SESSION_SECONDS};
use super::{InstallRefusal, InstallRequest, VERSION_1, edited};

pub fn plan(
    request: &InstallRequest,
    places: &InstallPlaces,
) -> Result<Vec<FileChange>, InstallRefusal> {
    let path = places.copilot(request.scope);
    Ok(vec![edited(request, path, &entries(request), &VERSION_1)?])
}

fn entries(request: &InstallRequest) -> Vec<HookEntry> {
    let hook = &request.hook;
    let calls = [
        ("preToolUse", hook.guarded(), AGENT_SECONDS),
        ("sessionStart", hook.plain(), SESSION_SECONDS),
        ("sessionEnd", hook.plain(), SESSION_SECONDS),
    ];
    let entries = calls.map(|(event, command, seconds)| HookEntry {
        event,
        element: ListElement::Single(HookCommand {
            kind: Some("command"),
            bash: Some(command),
            timeout_sec: Some(seconds),
            ..HookCommand::default()
        }),
    });
    entries.into()
}
