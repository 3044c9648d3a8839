//! Reads an agent's own JSON strictly: a member of another type than expected is an error, which
//! denies.

use serde_json::{Map, Value};

use crate::event::{EventKind, HookEvent, MatchCount, TextReplacement, ToolAction, ToolCall};

/// Members of an object, taken one after the other. The remaining ones were not understood, or do
/// not have to be.
pub struct EventMembers {
    place: &'static str,
    pub left: Map<String, Value>,
}

pub type ReadProblem = String;

impl EventMembers {
    pub fn new(place: &'static str, left: Map<String, Value>) -> Self {
        Self { place, left }
    }

    pub fn expected(&self, name: &str, expected: &str) -> ReadProblem {
        format!("{}{name}: expected {expected}", self.place)
    }

    /// `None` if the member is missing or null.
    fn optional<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, ReadProblem> {
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match read(&value) {
                None => Err(self.expected(name, expected)),
                read => Ok(read),
            },
        }
    }

    pub fn optional_text(&mut self, name: &str) -> Result<Option<String>, ReadProblem> {
        self.optional(name, "a text", |value| value.as_str().map(str::to_owned))
    }

    pub fn text(&mut self, name: &str) -> Result<String, ReadProblem> {
        let text = self.optional_text(name)?;
        text.ok_or_else(|| self.expected(name, "a text"))
    }

    /// A text under one of these names, because versions of an agent differ. Two of them are an
    /// error: it is unclear which one the agent uses.
    pub fn text_of(&mut self, names: &[&str]) -> Result<Option<String>, ReadProblem> {
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

    pub fn flag(&mut self, name: &str) -> Result<bool, ReadProblem> {
        let flag = self.optional(name, "true or false", Value::as_bool)?;
        Ok(flag.unwrap_or_default())
    }

    pub fn number(&mut self, name: &str) -> Result<Option<u64>, ReadProblem> {
        self.optional(name, "a whole number", Value::as_u64)
    }

    pub fn object(&mut self, name: &str) -> Result<Map<String, Value>, ReadProblem> {
        match self.left.remove(name) {
            Some(Value::Object(object)) => Ok(object),
            _ => Err(self.expected(name, "an object")),
        }
    }

    /// An object, or the text of one.
    pub fn object_or_text(&mut self, name: &str) -> Result<Map<String, Value>, ReadProblem> {
        match self.left.get(name) {
            Some(Value::String(text)) => serde_json::from_str(text)
                .map_err(|_| self.expected(name, "an object, or one as text")),
            _ => self.object(name),
        }
    }

    pub fn list(&mut self, name: &str) -> Result<Vec<Self>, ReadProblem> {
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

    /// `old` and `new` under the names that the agent gives them; `all` if every occurrence is
    /// meant.
    pub fn replacement(
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
pub fn call(
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

/// The tools of an agent that read, that use the network, and that change only the agent's own
/// state, as tables of words. Every other tool could change something.
pub struct ToolTable {
    pub reading: &'static str,
    pub web: &'static str,
    pub internal: &'static str,
}

impl ToolTable {
    pub fn action(&self, tool: &str) -> ToolAction {
        if has_word(self.reading, tool) {
            ToolAction::Read
        } else if has_word(self.web, tool) {
            ToolAction::Web
        } else if has_word(self.internal, tool) {
            ToolAction::Internal
        } else {
            ToolAction::Other
        }
    }
}

/// The events of an agent that are no calls. The last two are tables of words.
pub struct EventTable {
    pub session_start: &'static str,
    pub session_end: &'static str,
    pub prompt: &'static str,
    pub turn_end: &'static str,
    pub other: &'static str,
}

impl EventTable {
    /// An unknown event is an error: an agent might take silence for permission.
    pub fn kind(&self, name: &str) -> Result<EventKind, ReadProblem> {
        if name == self.session_start {
            Ok(EventKind::SessionStart)
        } else if name == self.session_end {
            Ok(EventKind::SessionEnd)
        } else if name == self.prompt {
            Ok(EventKind::Prompt)
        } else if has_word(self.turn_end, name) {
            Ok(EventKind::TurnEnd)
        } else if has_word(self.other, name) {
            Ok(EventKind::Other)
        } else {
            let problem = format!("the event {name:?} is unknown; update countersign");
            Err(problem)
        }
    }
}

/// Whether a table of words, separated by white space, has this word.
pub fn has_word(table: &str, word: &str) -> bool {
    table.split_ascii_whitespace().any(|listed| listed == word)
}

/// `mcp__server__tool`.
pub fn mcp(tool: &str) -> Option<ToolAction> {
    let (server, name) = tool.strip_prefix("mcp__")?.split_once("__")?;
    Some(ToolAction::Mcp {
        server: Some(server.to_owned()),
        tool: name.to_owned(),
    })
}

/// Reads the members that Claude Code, Codex and Gemini CLI have in every event.
pub fn common(
    mut members: EventMembers,
    kind: impl FnOnce(&str, &mut EventMembers) -> Result<EventKind, ReadProblem>,
) -> Result<HookEvent, ReadProblem> {
    let name = members.text("hook_event_name")?;
    let session = members.optional_text("session_id")?;
    let turn = members.optional_text("turn_id")?;
    let directory = members.optional_text("cwd")?;
    let says = |name: &str, words: &[&str]| {
        let said = members.left.get(name).and_then(Value::as_str);
        said.is_some_and(|said| words.contains(&said))
    };
    let (is_cleared, is_closed) = (
        says("source", &["clear"]),
        says("reason", &["clear", "logout"]),
    );
    let kind = match kind(&name, &mut members)? {
        EventKind::SessionStart if is_cleared => EventKind::SessionClear,
        EventKind::SessionEnd if is_closed => EventKind::SessionClose,
        kind => kind,
    };
    Ok(HookEvent {
        name,
        session,
        turn,
        directory,
        kind,
    })
}
