//! Cursor: `hooks.json`. Its format is taken from its documentation; it was not tried with the program itself.

use super::file::Change;
use super::hooks::{Command, Element, Entry};
use super::place::Places;
use super::shell::{AGENT_SECONDS, SESSION_SECONDS};
use super::{Refused, Request, VERSION_1, edited};

pub fn plan(request: &Request, places: &Places) -> Result<Vec<Change>, Refused> {
    let path = places.cursor(request.scope);
    Ok(vec![edited(request, path, &entries(request), &VERSION_1)?])
}

/// `preToolUse` sees every tool. The events for single kinds of tools would ask a second time.
fn entries(request: &Request) -> Vec<Entry> {
    let hook = &request.hook;
    let calls = [
        ("preToolUse", hook.guarded(), AGENT_SECONDS, Some(true)),
        ("sessionStart", hook.plain(), SESSION_SECONDS, None),
        ("sessionEnd", hook.plain(), SESSION_SECONDS, None),
    ];
    let entries = calls.map(|(event, command, seconds, fail_closed)| Entry {
        event,
        element: Element::Single(Command {
            command: Some(command),
            timeout: Some(seconds),
            fail_closed,
            ..Command::default()
        }),
    });
    entries.into()
}
