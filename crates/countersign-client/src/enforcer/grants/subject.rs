//! The subject of a grant, read from the payload that approvers are shown.

use serde_json::{Map, Value, json};

use crate::shell::wrappers::{hides_what_runs, runs_another};
use crate::shell::{chooses_something, has_options, plain_words};
use countersign_e2e::PlainArtifact;
use countersign_protocol::canonical::{Sha256Hex, canonical};
use countersign_protocol::id::{SessionId, TextId as _};
use countersign_protocol::json;

/// The tool call or command of a request. It is read from the signed artifact alone, so a grant's
/// file cannot change it.
#[derive(Debug, Clone, PartialEq)]
pub struct GrantSubject {
    /// A tool of the agent, or the program's path. No grant reaches from one to another.
    tool: String,
    /// As in the request. No grant reaches from one repository to another.
    repository: String,
    /// Canonical.
    payload: String,
    /// The words of the command, if it is one of plain words: no operators, substitutions or
    /// redirections.
    words: Option<Vec<String>>,
}

impl GrantSubject {
    /// `None` if the payload is not one of a tool or a command.
    pub fn of(payload: &Map<String, Value>, repository: &str) -> Option<Self> {
        let text = |name: &str| payload.get(name).and_then(Value::as_str);
        let tool = match (text("program"), text("agent"), text("tool")) {
            (Some(program), None, None) => program.to_owned(),
            (None, Some(agent), Some(tool)) => format!("{agent} {tool}"),
            _ => return None,
        };
        let whole = Value::Object(payload.clone()).to_string();
        Some(Self {
            words: read_words(payload, &tool),
            tool,
            repository: repository.to_owned(),
            payload: canonical(&json::parse(whole.as_bytes()).ok()?),
        })
    }

    /// The subject of this artifact, and the agent's session.
    pub(super) fn of_artifact(artifact: &PlainArtifact) -> Option<(Self, Option<SessionId>)> {
        let whole: Map<String, Value> = serde_json::from_str(artifact.text()).ok()?;
        let subject = Self::of(whole.get("payload")?.as_object()?, artifact.repository())?;
        let session = whole.get("sessionId").and_then(Value::as_str);
        Some((subject, session.and_then(SessionId::parse)))
    }

    pub fn tool(&self) -> &str {
        &self.tool
    }

    pub fn repository(&self) -> &str {
        &self.repository
    }

    pub fn words(&self) -> Option<&[String]> {
        self.words.as_deref()
    }

    pub(super) fn hash(&self) -> String {
        let whole = json!([self.tool, self.repository, self.payload]).to_string();
        Sha256Hex::of(whole.as_bytes()).to_string()
    }

    /// Whether it is a plain command that begins with `prefix`, word for word, and no later word
    /// chooses a program, a file, a directory or a configuration.
    pub(super) fn starts_with(&self, prefix: &[String]) -> bool {
        self.words.as_ref().is_some_and(|words| {
            let later = words.strip_prefix(prefix);
            let (Some(later), Some(program)) = (later, prefix.first()) else {
                return false;
            };
            !later.iter().any(|word| chooses_something(program, word))
        })
    }

    /// Whether both are of one tool in one repository.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        self.tool == other.tool && self.repository == other.repository
    }
}

fn read_words(payload: &Map<String, Value>, tool: &str) -> Option<Vec<String>> {
    if let Some(argv) = payload.get("argv") {
        let words = argv.as_array()?.iter().map(Value::as_str);
        let words: Vec<_> = words
            .map(|word| Some(word?.to_owned()))
            .collect::<Option<_>>()?;
        return (!hides_what_runs(&words) && !runs_another(tool)).then_some(words);
    }
    if payload.get("kind").and_then(Value::as_str) != Some("command") {
        return None;
    }
    let options = payload.get("options").and_then(Value::as_object);
    let words = plain_words(payload.get("command")?.as_str()?);
    words.filter(|_| !options.is_some_and(has_options))
}
