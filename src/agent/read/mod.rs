//! One file per agent: from its own JSON to an [`Event`]. Each lists the tools of its agent that read, that use the network, and
//! that change nothing but the agent's own state; every other tool is one that could change something.

pub(super) mod claude;
pub(super) mod codex;
pub(super) mod copilot;
pub(super) mod cursor;
pub(super) mod gemini;
pub(super) mod opencode;

use serde_json::{Map, Value};

use super::event::{Action, Event, EventKind, Occurrences, Replacement, ToolCall};

/// Members of an object, taken one after the other. What is left was not understood, or needs not to be.
pub(super) struct Members {
    place: &'static str,
    left: Map<String, Value>,
}

type Problem = String;

impl Members {
    pub(super) fn new(place: &'static str, left: Map<String, Value>) -> Self {
        Self { place, left }
    }

    fn expected(&self, name: &str, expected: &str) -> Problem {
        format!("{}{name}: expected {expected}", self.place)
    }

    fn optional_text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.expected(name, "a text")),
        }
    }

    fn text(&mut self, name: &str) -> Result<String, Problem> {
        let text = self.optional_text(name)?;
        text.ok_or_else(|| self.expected(name, "a text"))
    }

    /// A text under one of these names: versions of an agent differ. Of two nobody could say which one counts.
    fn text_of(&mut self, names: &[&str]) -> Result<Option<String>, Problem> {
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

    fn flag(&mut self, name: &str) -> Result<bool, Problem> {
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(self.expected(name, "true or false")),
        }
    }

    fn number(&mut self, name: &str) -> Result<Option<u64>, Problem> {
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(Some(number)),
                None => Err(self.expected(name, "a whole number")),
            },
        }
    }

    fn object(&mut self, name: &str) -> Result<Map<String, Value>, Problem> {
        match self.left.remove(name) {
            Some(Value::Object(object)) => Ok(object),
            _ => Err(self.expected(name, "an object")),
        }
    }

    /// An object, or the text of one.
    fn object_or_text(&mut self, name: &str) -> Result<Map<String, Value>, Problem> {
        match self.left.remove(name) {
            Some(Value::Object(object)) => Ok(object),
            Some(Value::String(text)) => serde_json::from_str(&text)
                .map_err(|_| self.expected(name, "an object, or one as text")),
            _ => Err(self.expected(name, "an object")),
        }
    }

    fn list(&mut self, name: &str) -> Result<Vec<Self>, Problem> {
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
    fn replacement(&mut self, old: &str, new: &str, all: &str) -> Result<Replacement, Problem> {
        Ok(Replacement {
            old: self.text(old)?,
            new: self.text(new)?,
            occurrences: if self.flag(all)? {
                Occurrences::All
            } else {
                Occurrences::One
            },
        })
    }
}

/// Reads the input of a tool.
fn call(
    tool: String,
    input: Map<String, Value>,
    action: impl FnOnce(&str, &mut Members) -> Result<Action, Problem>,
) -> Result<EventKind, Problem> {
    let mut members = Members::new("the tool's input, ", input.clone());
    let action = action(&tool, &mut members)?;
    // An action without members of its own is described by its input alone.
    let rest = match action {
        Action::Mcp { .. } | Action::Web | Action::Read | Action::Internal | Action::Other => {
            Map::new()
        }
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
fn listed(tool: &str, reading: &[&str], web: &[&str], internal: &[&str]) -> Action {
    if reading.contains(&tool) {
        Action::Read
    } else if web.contains(&tool) {
        Action::Web
    } else if internal.contains(&tool) {
        Action::Internal
    } else {
        Action::Other
    }
}

/// `mcp__server__tool`.
fn mcp(tool: &str) -> Option<Action> {
    let (server, name) = tool.strip_prefix("mcp__")?.split_once("__")?;
    Some(Action::Mcp {
        server: Some(server.to_owned()),
        tool: name.to_owned(),
    })
}

/// An event that this version does not know might be one that an agent takes silence at for permission.
fn unknown_event(name: &str) -> Problem {
    format!("the event {name:?} is not known; update countersign")
}

/// What Claude Code, Codex and Gemini CLI say of every event.
fn common(
    mut members: Members,
    kind: impl FnOnce(&str, &mut Members) -> Result<EventKind, Problem>,
) -> Result<Event, Problem> {
    let name = members.text("hook_event_name")?;
    let session = members.optional_text("session_id")?;
    let turn = members.optional_text("turn_id")?;
    let directory = members.optional_text("cwd")?;
    let kind = kind(&name, &mut members)?;
    Ok(Event {
        name,
        session,
        turn,
        directory,
        kind,
    })
}
