//! The payload of the artifact: a tool call, complete, as an approver is shown it. It depends on
//! nothing but the call and the files that it changes, so that the same call makes the same
//! payload.

use std::collections::BTreeSet;

use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::text::escape_invisible;
use serde_json::{Map, Value, json};

use crate::agent::Agent;
use crate::change::{cell_sources, diff, replaced};
use crate::event::{AgentQuestion, CellChange, ToolAction, ToolCall};
use crate::names::{MAX_NAMES, doubt_about};
use crate::patch::{PatchOperation, touched};

/// Encrypted and encoded it is a third larger, and a gateway takes 2 MiB.
pub const MAX_PAYLOAD_BYTES: usize = 1_500_000;

/// A file that a call changes, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseFile {
    /// As the agent names it.
    pub given: String,
    /// Absolute.
    pub path: String,
    /// Where it really is, links followed.
    pub real: String,
    /// `None` if there is no such file.
    pub content: Option<Vec<u8>>,
}

impl BaseFile {
    pub fn sha256(&self) -> Option<String> {
        Some(Sha256Hex::of(self.content.as_ref()?).to_string())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ChangeProposal {
    pub artifact_type: &'static str,
    pub payload: Map<String, Value>,
}

impl ToolCall {
    /// The files that it changes, as the agent names them. An error is why it is denied: nobody
    /// could say which are meant.
    pub fn changed_files(&self) -> Result<Vec<&str>, String> {
        let files: BTreeSet<&str> = match &self.action {
            ToolAction::Write { path, .. }
            | ToolAction::Replace { path, .. }
            | ToolAction::Cell { path, .. }
            | ToolAction::Delete { path } => BTreeSet::from([path.as_str()]),
            ToolAction::Patch { patch } => {
                touched(patch).into_iter().map(|(_, path)| path).collect()
            }
            _ => BTreeSet::new(),
        };
        if files.len() > MAX_NAMES {
            return Err(format!(
                "it changes {} files, but at most {MAX_NAMES} can be shown at once; make smaller changes",
                files.len()
            ));
        }
        for path in &files {
            let wrong = match doubt_about(path) {
                Some(doubt) => doubt,
                None if path.is_empty() => "it is empty",
                None if path.starts_with('~') || path.starts_with("file:") => {
                    "agents disagree about what it means"
                }
                None => continue,
            };
            return Err(format!(
                "the path \"{}\" is ambiguous: {wrong}; give the absolute path; nobody was asked",
                escape_invisible(path)
            ));
        }
        Ok(files.into_iter().collect())
    }

    /// `bases` are the files of `changed_files`, in that order. An error is why the call is denied
    /// without asking anyone.
    pub fn propose(
        &self,
        agent: Agent,
        directory: &str,
        bases: &[BaseFile],
    ) -> Result<ChangeProposal, String> {
        let (artifact_type, own) = self.shown(agent, directory, bases)?;
        let mut payload = Map::new();
        payload.insert("agent".to_owned(), agent.as_str().into());
        payload.insert("tool".to_owned(), self.tool.as_str().into());
        payload.insert("directory".to_owned(), directory.into());
        if let Value::Object(own) = own {
            payload.extend(own);
        }
        if !bases.is_empty() {
            payload.insert("files".to_owned(), bases.iter().map(file).collect());
        }
        if !self.rest.is_empty() {
            payload.insert("options".to_owned(), Value::Object(self.rest.clone()));
        }
        let size = serde_json::to_string(&payload).map_or(usize::MAX, |text| text.len());
        if size > MAX_PAYLOAD_BYTES {
            return Err(format!(
                "the request would have {size} bytes, but at most {MAX_PAYLOAD_BYTES} can be sent; make smaller changes"
            ));
        }
        Ok(ChangeProposal {
            artifact_type,
            payload,
        })
    }

    fn shown(
        &self,
        agent: Agent,
        directory: &str,
        bases: &[BaseFile],
    ) -> Result<(&'static str, Value), String> {
        let base = bases.first();
        let content = base.and_then(|base| base.content.as_deref());
        let patch = |patch: String| ("patch.review", json!({ "kind": "patch", "patch": patch }));
        Ok(match &self.action {
            ToolAction::Command {
                command,
                directory: own,
                background,
            } => {
                let mut payload = json!({ "kind": "command", "command": command });
                if let Some(own) = own {
                    payload["directory"] = joined(directory, own).into();
                }
                if *background {
                    payload["background"] = true.into();
                }
                ("command.review", payload)
            }
            ToolAction::Write { path, content: new } => {
                patch(diff(&named(directory, path), content, Some(new)))
            }
            ToolAction::Replace { path, edits } => {
                let new = replaced(agent, path, content, edits)?;
                patch(diff(&named(directory, path), content, Some(&new)))
            }
            ToolAction::Cell {
                path,
                cell,
                change,
                source,
            } => {
                let cell = cell.as_deref();
                let (old, new) = cell_sources(path, content, cell, *change, source)?;
                let place = match (change, cell) {
                    (CellChange::Insert, None) => "new first cell".to_owned(),
                    (CellChange::Insert, Some(cell)) => format!("new cell after {cell}"),
                    (_, cell) => format!("cell {}", cell.unwrap_or_default()),
                };
                let name = format!("{} ({place})", named(directory, path));
                let old = (*change != CellChange::Insert).then_some(old.as_bytes());
                let new = (*change != CellChange::Delete).then_some(new.as_str());
                patch(diff(&name, old, new))
            }
            ToolAction::Delete { path } => {
                if content.is_none() {
                    return Err(format!("{path} does not exist; nobody was asked"));
                }
                patch(diff(&named(directory, path), content, None))
            }
            ToolAction::Patch { patch: text } => {
                if bases.is_empty() {
                    return Err("the patch names no file; nobody was asked".to_owned());
                }
                for (touch, path) in touched(text) {
                    let base = bases.iter().find(|base| base.given == path);
                    let is_there = base.is_some_and(|base| base.content.is_some());
                    if matches!(touch, PatchOperation::Update | PatchOperation::Delete) && !is_there
                    {
                        return Err(format!("{path} does not exist; nobody was asked"));
                    }
                }
                patch(text.clone())
            }
            ToolAction::Plan { text } => ("plan.review", json!({ "kind": "plan", "text": text })),
            ToolAction::Question { questions } => {
                let questions: Vec<_> = questions.iter().map(AgentQuestion::to_json).collect();
                let payload = json!({ "kind": "question", "questions": questions });
                ("checkpoint.review", payload)
            }
            ToolAction::Mcp { server, tool } => {
                let mut payload = json!({ "kind": "tool", "input": self.input });
                payload["mcp"] = json!({ "server": server, "tool": tool });
                ("command.review", payload)
            }
            ToolAction::Web | ToolAction::Read | ToolAction::Internal | ToolAction::Other => {
                let payload = json!({ "kind": "tool", "input": self.input });
                ("command.review", payload)
            }
        })
    }
}

/// Within the directory without it, else as it is.
fn named(directory: &str, path: &str) -> String {
    let inside = path.strip_prefix(directory);
    let inside = inside.and_then(|rest| rest.strip_prefix('/'));
    inside.unwrap_or(path).to_owned()
}

fn joined(directory: &str, path: &str) -> String {
    let path = std::path::Path::new(directory).join(path);
    path.to_string_lossy().into_owned()
}

fn file(base: &BaseFile) -> Value {
    let mut file = json!({ "path": base.path, "sha256": base.sha256() });
    if base.real != base.path {
        file["realPath"] = base.real.as_str().into();
    }
    file
}
