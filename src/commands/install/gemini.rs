//! Gemini CLI: `settings.json`. Its time-outs are in milliseconds.

use super::file::Change;
use super::hooks::{Command, Element, Entry};
use super::place::{Places, Scope};
use super::shell::{AGENT_SECONDS, SESSION_SECONDS};
use super::{Needed, Refused, Request, Setting, edited};

pub const MANAGED: [Setting; 1] = [Setting {
    path: &["hooksConfig"],
    name: "enabled",
    value: Needed::True,
}];

pub fn plan(request: &Request, places: &Places) -> Result<Vec<Change>, Refused> {
    let settings = match request.scope {
        Scope::Managed => &MANAGED[..],
        Scope::User | Scope::Project => &[],
    };
    let path = places.gemini(request.scope);
    Ok(vec![edited(request, path, &entries(request), settings)?])
}

fn entries(request: &Request) -> Vec<Entry> {
    let hook = &request.hook;
    let calls = [
        ("BeforeTool", Some(".*"), hook.guarded(), AGENT_SECONDS),
        ("SessionStart", None, hook.plain(), SESSION_SECONDS),
        ("SessionEnd", None, hook.plain(), SESSION_SECONDS),
    ];
    let entries = calls.map(|(event, matcher, command, seconds)| Entry {
        event,
        element: Element::Group {
            matcher,
            hooks: [Command {
                kind: Some("command"),
                name: Some("countersign"),
                command: Some(command),
                timeout: Some(seconds * 1_000),
                ..Command::default()
            }],
        },
    });
    entries.into()
}
