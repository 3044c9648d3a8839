//! Cursor: `hooks.json`. Its format is taken from its documentation; it was not tried with the program itself.

use super::file::FileChange;
use super::hooks::{HookCommand, HookEntry, ListElement};
use super::place::InstallPlaces;
use super::shell::{AGENT_SECONDS, SESSION_SECONDS};
use super::{InstallRefusal, InstallRequest, VERSION_1, edited};

pub fn plan(
    request: &InstallRequest,
    places: &InstallPlaces,
) -> Result<Vec<FileChange>, InstallRefusal> {
    let path = places.cursor(request.scope);
    Ok(vec![edited(request, path, &entries(request), &VERSION_1)?])
}

/// `preToolUse` sees every tool. The events for single kinds of tools would ask a second time.
fn entries(request: &InstallRequest) -> Vec<HookEntry> {
    let hook = &request.hook;
    let calls = [
        ("preToolUse", hook.guarded(), AGENT_SECONDS, Some(true)),
        ("sessionStart", hook.plain(), SESSION_SECONDS, None),
        ("sessionEnd", hook.plain(), SESSION_SECONDS, None),
    ];
    let entries = calls.map(|(event, command, seconds, fail_closed)| HookEntry {
        event,
        element: ListElement::Single(HookCommand {
            command: Some(command),
            timeout: Some(seconds),
            fail_closed,
            ..HookCommand::default()
        }),
    });
    entries.into()
}
