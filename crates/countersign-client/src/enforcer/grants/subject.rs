//! The subject of a grant, read from the payload that approvers are shown.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::shell::wrappers::{hides_what_runs, runs_another};
use crate::shell::{
    chooses_something, fits, has_edit_options, has_options, plain_words, without_comments,
};
use countersign_e2e::{GrantMatch, PlainArtifact};
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
    /// Canonical, without the comments of the model.
    payload: String,
    /// The words of the command, if it is one of plain words: no operators, substitutions or
    /// redirections.
    words: Option<Vec<String>>,
    edit: Option<EditScope>,
}

/// The files of an edit by an agent's tool, links followed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EditScope {
    agent: String,
    project: PathBuf,
    files: Vec<PathBuf>,
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
        let mut whole = payload.clone();
        if text("kind") == Some("command")
            && let Some(options) = payload.get("options").and_then(Value::as_object)
        {
            match without_comments(options) {
                Some(left) => whole.insert("options".to_owned(), left.into()),
                None => whole.remove("options"),
            };
        }
        let whole = Value::Object(whole).to_string();
        Some(Self {
            words: read_words(payload, &tool),
            edit: read_edit(payload),
            tool,
            repository: repository.to_owned(),
            payload: canonical(&json::parse(whole.as_bytes()).ok()?),
        })
    }

    /// The subject of this artifact, and the agent's session.
    pub fn of_artifact(artifact: &PlainArtifact) -> Option<(Self, Option<SessionId>)> {
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

    /// The files of an edit, and the project that they are in.
    pub fn edited(&self) -> Option<(&Path, &[PathBuf])> {
        let edit = self.edit.as_ref()?;
        Some((&edit.project, &edit.files))
    }

    pub(super) fn hash(&self) -> String {
        let whole = json!([self.tool, self.repository, self.payload]).to_string();
        Sha256Hex::of(whole.as_bytes()).to_string()
    }

    /// Whether one grant could be for both: a quick look before the signature is verified.
    pub(super) fn is_related(&self, other: &Self) -> bool {
        let both_commands = self.words.is_some() && other.words.is_some() && self.is_beside(other);
        both_commands || (self.edit.is_some() && other.edit.is_some())
    }

    /// Whether a grant of this form, given with `self`, permits `other`.
    pub(crate) fn permits(&self, matches: &GrantMatch, other: &Self) -> bool {
        match matches {
            GrantMatch::Same => self == other,
            GrantMatch::Prefix(words) => {
                self.starts_with(words) && self.is_beside(other) && other.starts_with(words)
            }
            GrantMatch::Words(pattern) => {
                let fits = |it: &Self| it.words().is_some_and(|words| fits(pattern, words));
                fits(self) && self.is_beside(other) && fits(other)
            }
            GrantMatch::File | GrantMatch::Project => {
                let (Some(own), Some(other)) = (&self.edit, &other.edit) else {
                    return false;
                };
                let is_covered = |file: &PathBuf| match matches {
                    GrantMatch::Project => file.starts_with(&own.project) && *file != own.project,
                    _ => own.files.contains(file),
                };
                own.agent == other.agent
                    && own.files.iter().all(is_covered)
                    && other.files.iter().all(is_covered)
            }
        }
    }

    /// Whether it is a plain command that begins with `prefix`, word for word, and no later word
    /// chooses a program, a file, a directory or a configuration.
    fn starts_with(&self, prefix: &[String]) -> bool {
        self.words.as_ref().is_some_and(|words| {
            let later = words.strip_prefix(prefix);
            let (Some(later), Some(program)) = (later, prefix.first()) else {
                return false;
            };
            !later.iter().any(|word| chooses_something(program, word))
        })
    }

    /// Whether both are of one tool in one repository.
    fn is_beside(&self, other: &Self) -> bool {
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

/// `None` also if the enforcer did not name the project: then no grant is to cover the edit.
fn read_edit(payload: &Map<String, Value>) -> Option<EditScope> {
    let text = |name: &str| payload.get(name).and_then(Value::as_str);
    let options = payload.get("options").and_then(Value::as_object);
    if text("kind") != Some("patch") || options.is_some_and(has_edit_options) {
        return None;
    }
    let project = real_path(text("project")?)?;
    let files = payload.get("files")?.as_array()?.iter().map(|file| {
        let real = file.get("realPath").or_else(|| file.get("path"))?;
        real_path(real.as_str()?)
    });
    let files: Vec<_> = files.collect::<Option<_>>()?;
    // The whole file system is no project.
    (!files.is_empty() && project.parent().is_some()).then_some(EditScope {
        agent: text("agent")?.to_owned(),
        project,
        files,
    })
}

/// An absolute path that leads nowhere else.
fn real_path(text: &str) -> Option<PathBuf> {
    let path = Path::new(text);
    let is_plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
    (path.is_absolute() && path.components().all(is_plain)).then(|| path.to_owned())
}
