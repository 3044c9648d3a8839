//! Claude Code: `settings.json`.

use super::file::Change;
use super::hooks::{Command, Element, Entry};
use super::place::{Places, Scope};
use super::shell::{AGENT_SECONDS, SESSION_SECONDS};
use super::{Needed, Refused, Request, Setting, edited};

pub const MANAGED: [Setting; 1] = [Setting {
    path: &[],
    name: "allowManagedHooksOnly",
    value: Needed::True,
}];

pub fn plan(request: &Request, places: &Places) -> Result<Vec<Change>, Refused> {
    let settings = match request.scope {
        Scope::Managed => &MANAGED[..],
        Scope::User | Scope::Project => &[],
    };
    let path = places.claude(request.scope);
    Ok(vec![edited(request, path, &entries(request), settings)?])
}

fn entries(request: &Request) -> Vec<Entry> {
    let hook = &request.hook;
    let call = Entry {
        event: "PreToolUse",
        element: Element::Group {
            matcher: Some("*"),
            hooks: [Command {
                kind: Some("command"),
                command: Some(hook.guarded()),
                timeout: Some(AGENT_SECONDS),
                // Old versions do not know it: the command guards itself.
                on_failure: Some("block"),
                ..Command::default()
            }],
        },
    };
    let session = ["SessionStart", "SessionEnd", "UserPromptSubmit"].map(|event| Entry {
        event,
        element: Element::Group {
            matcher: None,
            hooks: [Command {
                kind: Some("command"),
                command: Some(hook.plain()),
                timeout: Some(SESSION_SECONDS),
                ..Command::default()
            }],
        },
    });
    [call].into_iter().chain(session).collect()
}
