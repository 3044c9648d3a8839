//! What is asked about, as a question with its artifact: for `ask`, and for agents over MCP.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use countersign::client::enforcer::Question;
use serde_json::{Map, Value, json};

use super::pair::host_name;

/// More could not be sent.
pub const MAX_CONTENT_BYTES: usize = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    Plan,
    Task,
    Patch,
    Command,
    Checkpoint,
}

#[derive(Debug)]
pub enum Content {
    Text {
        text: String,
        title: Option<String>,
        /// Where a command would run, if not in the working directory.
        directory: Option<PathBuf>,
    },
    /// Shown as it is.
    Object(Map<String, Value>),
}

#[derive(Debug)]
pub struct Wanted {
    pub kind: Kind,
    pub content: Content,
    /// Choices to offer the approver.
    pub actions: Vec<Value>,
    pub approver: Option<String>,
    pub timeout: Duration,
    pub submit_timeout: Duration,
}

impl Wanted {
    pub fn question(self) -> anyhow::Result<Question> {
        let here = std::env::current_dir()?;
        let payload = match self.content {
            Content::Object(payload) => payload,
            Content::Text {
                text,
                title,
                directory,
            } => {
                let directory = directory.as_deref().unwrap_or(&here);
                let mut payload = payload(self.kind, text, directory);
                payload.extend(title.map(|title| ("title".to_owned(), title.into())));
                payload
            }
        };
        let mut members = Map::new();
        if !self.actions.is_empty() {
            let actions = json!({ "version": 1, "actions": self.actions });
            members.insert(
                "extensions".into(),
                json!({ "org.proto.requestedActions": actions }),
            );
        }
        Ok(Question {
            artifact_type: artifact_type(self.kind).to_owned(),
            repository: repository_name(&here),
            payload,
            members,
            approver: self.approver,
            timeout: self.timeout,
            submit_timeout: self.submit_timeout,
        })
    }
}

fn artifact_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Plan => "plan.review",
        Kind::Task => "task.review",
        Kind::Patch => "patch.review",
        Kind::Command => "command.review",
        Kind::Checkpoint => "checkpoint.review",
    }
}

fn payload(kind: Kind, text: String, directory: &Path) -> Map<String, Value> {
    let members = match kind {
        Kind::Plan | Kind::Task | Kind::Checkpoint => {
            vec![("kind", "plan".into()), ("text", text.into())]
        }
        Kind::Patch => vec![("kind", "patch".into()), ("patch", text.into())],
        Kind::Command => vec![
            ("kind", "command".into()),
            ("command", text.into()),
            ("directory", directory.to_string_lossy().into()),
        ],
    };
    let members = members.into_iter();
    members
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The directory that the repository around `directory` begins in, or `directory` itself.
pub fn repository_root(directory: &Path) -> &Path {
    let mut around = directory.ancestors();
    around
        .find(|place| place.join(".git").exists())
        .unwrap_or(directory)
}

/// Machine and directory, up to the directory that a repository begins in.
pub fn repository_name(directory: &Path) -> String {
    let root = repository_root(directory).to_string_lossy();
    let host = host_name().unwrap_or_default();
    format!("{host}:{root}").chars().take(1_024).collect()
}
