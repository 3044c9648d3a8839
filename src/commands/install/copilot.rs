//! Copilot CLI: a file of our own in a directory of hooks. The policy of the system has the same form.

use super::file::Change;
use super::hooks::{Command, Element, Entry};
use super::place::Places;
use super::shell::{AGENT_SECONDS, SESSION_SECONDS};
use super::{Refused, Request, VERSION_1, edited};

pub fn plan(request: &Request, places: &Places) -> Result<Vec<Change>, Refused> {
    let path = places.copilot(request.scope);
    Ok(vec![edited(request, path, &entries(request), &VERSION_1)?])
}

fn entries(request: &Request) -> Vec<Entry> {
    let hook = &request.hook;
    let calls = [
        ("preToolUse", hook.guarded(), AGENT_SECONDS),
        ("sessionStart", hook.plain(), SESSION_SECONDS),
        ("sessionEnd", hook.plain(), SESSION_SECONDS),
    ];
    let entries = calls.map(|(event, command, seconds)| Entry {
        event,
        element: Element::Single(Command {
            kind: Some("command"),
            bash: Some(command),
            timeout_sec: Some(seconds),
            ..Command::default()
        }),
    });
    entries.into()
}
