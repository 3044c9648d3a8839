//! One file per agent: from its own JSON to an [`HookEvent`]. Each lists the tools of its agent that read, that use the network, and
//! that change nothing but the agent's own state; every other tool is one that could change something.

pub(super) mod claude;
pub(super) mod codex;
pub(super) mod copilot;
pub(super) mod cursor;
pub(super) mod gemini;
pub(super) mod opencode;

use serde_json::{Map, Value};

use super::event::{EventKind, HookEvent, MatchCount, TextReplacement, ToolAction, ToolCall};

/// Members of an object, taken one after the other. What is left was not understood, or needs not to be.
pub(super) struct EventMembers {
    place: &'static str,
    left: Map<String, Value>,
}

type ReadProblem = String;

impl EventMembers {
    pub(super) fn new(place: &'static str, left: Map<String, Value>) -> Self {
        Self { place, left }
    }

    fn expected(&self, name: &str, expected: &str) -> ReadProblem {
        format!("{}{name}: expected {expected}", self.place)
    }

    fn optional_text(&mut self, name: &str) -> Result<Option<String>, ReadProblem> {
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.expected(name, "a text")),
        }
    }

    fn text(&mut self, name: &str) -> Result<String, ReadProblem> {
        let text = self.optional_text(name)?;
        text.ok_or_else(|| self.expected(name, "a text"))
    }

    /// A text under one of these names: versions of an agent differ. Of two nobody could say which one counts.
    fn text_of(&mut self, names: &[&str]) -> Result<Option<String>, ReadProblem> {
        let is_there = |name: &&&str| self.left.get(**name).is_some_and(|it| !it.is_null());
        let mut there = names.iter().filter(is_there);
        match (there.next(), there.next()) {
            (None, _) => Ok(None),
            (Some(name), None) => self.optional_text(name),
            (Some(name), Some(_)) => {
                let one = format!("only one of {}", names.join(", "));
                Err(self.expected(name, &one))
            }
        }
    }

    fn flag(&mut self, name: &str) -> Result<bool, ReadProblem> {
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(self.expected(name, "true or false")),
        }
    }

    fn number(&mut self, name: &str) -> Result<Option<u64>, ReadProblem> {
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(Some(number)),
                None => Err(self.expected(name, "a whole number")),
            },
        }
    }

    fn object(&mut self, name: &str) -> Result<Map<String, Value>, ReadProblem> {
        match self.left.remove(name) {
            Some(Value::Object(object)) => Ok(object),
            _ => Err(self.expected(name, "an object")),
        }
    }

    /// An object, or the text of one.
    fn object_or_text(&mut self, name: &str) -> Result<Map<String, Value>, ReadProblem> {
        match self.left.remove(name) {
            Some(Value::Object(object)) => Ok(object),
            Some(Value::String(text)) => serde_json::from_str(&text)
                .map_err(|_| self.expected(name, "an object, or one as text")),
            _ => Err(self.expected(name, "an object")),
        }
    }

    fn list(&mut self, name: &str) -> Result<Vec<Self>, ReadProblem> {
        let place = self.place;
        let Some(Value::Array(list)) = self.left.remove(name) else {
            return Err(self.expected(name, "a list"));
        };
        let objects = list.into_iter().map(|value| match value {
            Value::Object(object) => Ok(Self::new(place, object)),
            _ => Err(format!("{place}{name}: expected a list of objects")),
        });
        objects.collect()
    }

    /// `old` and `new` under the names that the agent gives them; `all` if every occurrence is meant.
    fn replacement(
        &mut self,
        old: &str,
        new: &str,
        all: &str,
    ) -> Result<TextReplacement, ReadProblem> {
        Ok(TextReplacement {
            old: self.text(old)?,
            new: self.text(new)?,
            occurrences: if self.flag(all)? {
                MatchCount::All
            } else {
                MatchCount::One
            },
        })
    }
}

/// Reads the input of a tool.
fn call(
    tool: String,
    input: Map<String, Value>,
    action: impl FnOnce(&str, &mut EventMembers) -> Result<ToolAction, ReadProblem>,
) -> Result<EventKind, ReadProblem> {
    let mut members = EventMembers::new("the tool's input, ", input.clone());
    let action = action(&tool, &mut members)?;
    // An action without members of its own is described by its input alone.
    let rest = match action {
        ToolAction::Mcp { .. }
        | ToolAction::Web
        | ToolAction::Read
        | ToolAction::Internal
        | ToolAction::Other => Map::new(),
        _ => members.left,
    };
    Ok(EventKind::Call(Box::new(ToolCall {
        tool,
        input,
        rest,
        action,
    })))
}

/// By the lists of an agent.
fn listed(tool: &str, reading: &[&str], web: &[&str], internal: &[&str]) -> ToolAction {
    if reading.contains(&tool) {
        ToolAction::Read
    } else if web.contains(&tool) {
        ToolAction::Web
    } else if internal.contains(&tool) {
        ToolAction::Internal
    } else {
        ToolAction::Other
    }
}

/// `mcp__server__tool`.
fn mcp(tool: &str) -> Option<ToolAction> {
    let (server, name) = tool.strip_prefix("mcp__")?.split_once("__")?;
    Some(ToolAction::Mcp {
        server: Some(server.to_owned()),
        tool: name.to_owned(),
    })
}

/// An event that this version does not know might be one that an agent takes silence at for permission.
fn unknown_event(name: &str) -> ReadProblem {
    format!("the event {name:?} is not known; update countersign")
}

/// What Claude Code, Codex and Gemini CLI say of every event.
fn common(
    mut members: EventMembers,
    kind: impl FnOnce(&str, &mut EventMembers) -> Result<EventKind, ReadProblem>,
) -> Result<HookEvent, ReadProblem> {
    let name = members.text("hook_event_name")?;
    let session = members.optional_text("session_id")?;
    let turn = members.optional_text("turn_id")?;
    let directory = members.optional_text("cwd")?;
    let kind = kind(&name, &mut members)?;
    Ok(HookEvent {
        name,
        session,
        turn,
        directory,
        kind,
    })
}
