//! Reads the arguments of a tool call strictly. Errors name the argument and what was expected
//! instead.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum as _;
use serde_json::{Value, json};

use super::rpc::JsonObject;
use crate::commands::enforcer::{ContentKind, ContentOptions, MAX_CONTENT_BYTES, RequestContent};

/// How long to wait for a decision if the caller does not say.
const TIMEOUT: u64 = 600;
/// A call that does not wait for the decision still waits for the gateway, and agents give up on
/// slow calls.
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(30);
/// A request ends with the agent's session, which rarely lasts longer.
pub const MAX_TIMEOUT: u64 = 86_400;
/// Longer than most clients wait for an answer.
pub const MAX_WAIT: u64 = 3_600;
pub const MAX_ACTIONS: usize = 5;
/// The signed outcome of more would be too long.
pub const MAX_APPROVALS: u32 = 56;
/// Of titles, ids and captions.
const MAX_WORD_BYTES: usize = 1_024;

/// Which argument is wrong, and what was expected.
type InvalidArgument = String;

fn expected(name: &str, what: &str) -> InvalidArgument {
    format!("{name}: expected {what}")
}

/// Arguments that have not been read yet. `null` is the same as absent: models write it for
/// arguments that they leave out.
struct ToolArguments {
    unread: JsonObject,
    /// The names that were asked for.
    known: Vec<&'static str>,
}

impl ToolArguments {
    fn new(unread: JsonObject) -> Self {
        let known = Vec::new();
        Self { unread, known }
    }

    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.unread.remove(name).filter(|value| !value.is_null())
    }

    fn text(&mut self, name: &'static str, most: usize) -> Result<Option<String>, InvalidArgument> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        match value {
            Value::String(text) if !text.trim().is_empty() && text.len() <= most => Ok(Some(text)),
            Value::String(text) if text.len() > most => {
                Err(expected(name, &format!("at most {most} bytes")))
            }
            _ => Err(expected(name, "a non-empty text")),
        }
    }

    fn request_id(&mut self) -> Result<String, InvalidArgument> {
        let id = self.text("requestId", MAX_WORD_BYTES)?;
        id.ok_or_else(|| expected("requestId", "the id that request_approval returned"))
    }

    fn seconds(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u64>,
        default: u64,
    ) -> Result<Duration, InvalidArgument> {
        let Some(value) = self.take(name) else {
            return Ok(Duration::from_secs(default));
        };
        // Some clients write every number with a fraction.
        let whole = value.as_f64().filter(|number| number.fract() == 0.0);
        let number = whole.map(Duration::try_from_secs_f64).and_then(Result::ok);
        number
            .filter(|time| range.contains(&time.as_secs()))
            .ok_or_else(|| {
                let (least, most) = range.into_inner();
                expected(name, &format!("a whole number from {least} to {most}"))
            })
    }

    fn approvals(&mut self) -> Result<Option<u32>, InvalidArgument> {
        let Some(value) = self.take("approvals") else {
            return Ok(None);
        };
        let mut numbers = 1..=MAX_APPROVALS;
        let found = numbers.find(|number| value.as_f64() == Some(f64::from(*number)));
        let most = format!("a whole number from 1 to {MAX_APPROVALS}");
        found.map(Some).ok_or_else(|| expected("approvals", &most))
    }

    fn flag(&mut self, name: &'static str, default: bool) -> Result<bool, InvalidArgument> {
        match self.take(name) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(expected(name, "true or false")),
        }
    }

    /// Refuses arguments that were not read. One could be a misspelt restriction.
    fn finish(self) -> Result<(), InvalidArgument> {
        match self.unread.into_iter().find(|(_, value)| !value.is_null()) {
            None => Ok(()),
            Some((name, _)) => {
                let name: String = name.chars().take(100).collect();
                Err(format!(
                    "{name}: unknown argument; expected one of {}",
                    self.known.join(", ")
                ))
            }
        }
    }
}

pub struct RequestApproval {
    pub wanted: ContentOptions,
    /// By different people.
    pub approvals: Option<u32>,
    pub wait: bool,
}

impl RequestApproval {
    pub fn read(arguments: JsonObject) -> Result<Self, InvalidArgument> {
        let mut arguments = ToolArguments::new(arguments);
        let kind = kind(arguments.take("type").as_ref())?;
        let content = content(&mut arguments, kind)?;
        let actions = match arguments.take("actions") {
            None => Vec::new(),
            Some(actions) => read_actions(actions)?,
        };
        let read = Self {
            wanted: ContentOptions {
                kind,
                content,
                actions,
                approver: arguments.text("approver", MAX_WORD_BYTES)?,
                timeout: arguments.seconds("timeout_seconds", 1..=MAX_TIMEOUT, TIMEOUT)?,
                submit_timeout: SUBMIT_TIMEOUT,
            },
            approvals: arguments.approvals()?,
            wait: arguments.flag("wait", true)?,
        };
        arguments.finish()?;
        Ok(read)
    }
}

pub fn kinds() -> Vec<String> {
    let kinds = ContentKind::value_variants().iter();
    let names = kinds.filter_map(|kind| Some(kind.to_possible_value()?.get_name().to_owned()));
    names.collect()
}

fn kind(value: Option<&Value>) -> Result<ContentKind, InvalidArgument> {
    let kind = value.and_then(Value::as_str);
    let kind = kind.and_then(|name| ContentKind::from_str(name, false).ok());
    kind.ok_or_else(|| expected("type", &format!("one of {}", kinds().join(", "))))
}

fn content(
    arguments: &mut ToolArguments,
    kind: ContentKind,
) -> Result<RequestContent, InvalidArgument> {
    let text = arguments.text("text", MAX_CONTENT_BYTES)?;
    let object = arguments.take("content");
    let title = arguments.text("title", MAX_WORD_BYTES)?;
    let directory = arguments.text("directory", MAX_WORD_BYTES)?;
    match (text, object) {
        (Some(text), None) => {
            let directory = directory.map(PathBuf::from);
            if directory.is_some() && kind != ContentKind::Command {
                return Err(expected(
                    "directory",
                    "nothing, since this is not a command",
                ));
            }
            if directory.as_ref().is_some_and(|path| path.is_relative()) {
                return Err(expected("directory", "an absolute path"));
            }
            Ok(RequestContent::Text {
                text,
                title,
                directory,
            })
        }
        (None, Some(Value::Object(payload))) => {
            if title.is_some() || directory.is_some() {
                let name = if title.is_some() {
                    "title"
                } else {
                    "directory"
                };
                return Err(expected(name, "it inside content, which is shown as is"));
            }
            if payload.is_empty() {
                return Err(expected("content", "a non-empty object"));
            }
            if Value::Object(payload.clone()).to_string().len() > MAX_CONTENT_BYTES {
                let most = format!("at most {MAX_CONTENT_BYTES} bytes");
                return Err(expected("content", &most));
            }
            Ok(RequestContent::Object(payload))
        }
        (None, Some(_)) => Err(expected("content", "an object; plain text goes into text")),
        (Some(_), Some(_)) => Err(expected("content", "nothing, since there is already text")),
        (None, None) => Err(expected("text", "the full text to decide about")),
    }
}

fn read_actions(value: Value) -> Result<Vec<Value>, InvalidArgument> {
    let most = format!("a list of 1 to {MAX_ACTIONS} actions");
    let Value::Array(list) = value else {
        return Err(expected("actions", &most));
    };
    if list.is_empty() || list.len() > MAX_ACTIONS {
        return Err(expected("actions", &most));
    }
    let mut actions: Vec<Value> = Vec::new();
    for (index, action) in list.into_iter().enumerate() {
        let at = |name: &str| format!("actions[{index}].{name}");
        let Value::Object(action) = action else {
            let shape = "an object with id, caption and decision";
            return Err(expected(&format!("actions[{index}]"), shape));
        };
        let mut members = ToolArguments::new(action);
        let mut text = |name: &'static str| match members.text(name, MAX_WORD_BYTES) {
            Ok(Some(text)) => Ok(text),
            _ => Err(expected(
                &at(name),
                &format!("a text of 1 to {MAX_WORD_BYTES} bytes"),
            )),
        };
        let (id, caption, decision) = (text("id")?, text("caption")?, text("decision")?);
        if !["approve", "reject"].contains(&decision.as_str()) {
            return Err(expected(&at("decision"), "approve or reject"));
        }
        let same = |other: &Value| {
            let other = other["id"].as_str().unwrap_or_default();
            other.to_lowercase() == id.to_lowercase()
        };
        if actions.iter().any(same) {
            return Err(expected(&at("id"), "an id that no other action has"));
        }
        let unknown = members.finish();
        unknown.map_err(|problem| format!("actions[{index}].{problem}"))?;
        actions.push(json!({ "id": id, "caption": caption, "decision": decision }));
    }
    Ok(actions)
}

pub struct CheckApproval {
    pub request_id: String,
    pub wait: Duration,
}

impl CheckApproval {
    pub fn read(arguments: JsonObject) -> Result<Self, InvalidArgument> {
        let mut arguments = ToolArguments::new(arguments);
        let read = Self {
            request_id: arguments.request_id()?,
            wait: arguments.seconds("wait_seconds", 0..=MAX_WAIT, 0)?,
        };
        arguments.finish()?;
        Ok(read)
    }
}

/// The request that is to be withdrawn.
pub fn withdrawn_id(arguments: JsonObject) -> Result<String, InvalidArgument> {
    let mut arguments = ToolArguments::new(arguments);
    let id = arguments.request_id()?;
    arguments.finish()?;
    Ok(id)
}
