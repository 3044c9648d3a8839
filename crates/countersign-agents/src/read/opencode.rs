//! opencode, through the plugin that `countersign install opencode` writes: the form of the events is our own.

use super::{EventMembers, ReadProblem, call, listed, unknown_event};
use crate::event::{EventKind, HookEvent, MatchCount, TextReplacement, ToolAction};

const READING: &[&str] = &["glob", "grep", "list", "lsp", "read"];
const WEB: &[&str] = &["codesearch", "webfetch", "websearch"];
/// The calls that a subagent makes reach the hook one by one.
const INTERNAL: &[&str] = &[
    "invalid",
    "question",
    "skill",
    "task",
    "todoread",
    "todowrite",
];

pub fn event(mut members: EventMembers) -> Result<HookEvent, ReadProblem> {
    let name = members.text("event")?;
    let session = members.optional_text("sessionID")?;
    let directory = members.optional_text("directory")?;
    let kind = match name.as_str() {
        "tool.execute.before" => {
            let tool = members.text("tool")?;
            let input = members.object("args")?;
            call(tool, input, action)?
        }
        "session.created" => EventKind::SessionStart,
        "session.deleted" => EventKind::SessionEnd,
        "chat.message" => EventKind::Prompt,
        "session.idle" | "session.error" => EventKind::Other,
        name => return Err(unknown_event(name)),
    };
    Ok(HookEvent {
        name,
        session,
        turn: None,
        directory,
        kind,
    })
}

fn action(tool: &str, input: &mut EventMembers) -> Result<ToolAction, ReadProblem> {
    Ok(match tool {
        "bash" => ToolAction::Command {
            command: input.text("command")?,
            directory: input.optional_text("workdir")?,
            background: false,
        },
        "write" => ToolAction::Write {
            path: input.text("filePath")?,
            content: input.text("content")?,
        },
        "edit" => {
            let path = input.text("filePath")?;
            let edit = replacement(input)?;
            // It takes an empty old text for the whole file.
            if edit.old.is_empty() {
                let content = edit.new;
                ToolAction::Write { path, content }
            } else {
                let edits = vec![edit];
                ToolAction::Replace { path, edits }
            }
        }
        "multiedit" => {
            let path = input.text("filePath")?;
            let edits = (input.list("edits")?.into_iter())
                .map(|mut edit| replacement(&mut edit))
                .collect::<Result<_, _>>()?;
            ToolAction::Replace { path, edits }
        }
        "apply_patch" | "patch" => ToolAction::Patch {
            patch: input.text("patchText")?,
        },
        tool => listed(tool, READING, WEB, INTERNAL),
    })
}

/// It hands both texts to `String.replaceAll`, to which a dollar sign may mean another text.
fn replacement(input: &mut EventMembers) -> Result<TextReplacement, ReadProblem> {
    let edit = input.replacement("oldString", "newString", "replaceAll")?;
    if edit.occurrences == MatchCount::All && edit.new.contains('$') {
        let expected = "no $ together with replaceAll; replace one after the other";
        return Err(input.expected("newString", expected));
    }
    Ok(edit)
}
