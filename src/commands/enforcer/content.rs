//! The content of a request and its artifact: for `ask`, and for agents over MCP.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use countersign::agent::repository_root;
use countersign::client::enforcer::ApprovalRequest;
use serde_json::{Map, Value, json};

use crate::commands::client_options::host_name;

/// More could not be sent.
pub const MAX_CONTENT_BYTES: usize = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ContentKind {
    Plan,
    Task,
    Patch,
    Command,
    Checkpoint,
}

#[derive(Debug)]
pub enum RequestContent {
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
pub struct ContentOptions {
    pub kind: ContentKind,
    pub content: RequestContent,
    /// Choices to offer the approver.
    pub actions: Vec<Value>,
    pub approver: Option<String>,
    pub timeout: Duration,
    pub submit_timeout: Duration,
}

impl ContentOptions {
    pub fn request(self) -> anyhow::Result<ApprovalRequest> {
        let here = std::env::current_dir()?;
        let payload = match self.content {
            RequestContent::Object(payload) => payload,
            RequestContent::Text {
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
        Ok(ApprovalRequest {
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

fn artifact_type(kind: ContentKind) -> &'static str {
    match kind {
        ContentKind::Plan => "plan.review",
        ContentKind::Task => "task.review",
        ContentKind::Patch => "patch.review",
        ContentKind::Command => "command.review",
        ContentKind::Checkpoint => "checkpoint.review",
    }
}

fn payload(kind: ContentKind, text: String, directory: &Path) -> Map<String, Value> {
    let members = match kind {
        ContentKind::Plan | ContentKind::Task | ContentKind::Checkpoint => {
            vec![("kind", "plan".into()), ("text", text.into())]
        }
        ContentKind::Patch => vec![("kind", "patch".into()), ("patch", text.into())],
        ContentKind::Command => vec![
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

/// Machine and directory, up to the directory that a repository begins in.
pub fn repository_name(directory: &Path) -> String {
    let root = repository_root(directory).to_string_lossy();
    let host = host_name().unwrap_or_default();
    format!("{host}:{root}").chars().take(1_024).collect()
}
