//! The commands that people approved here, in a file beside the profile. It permits nothing: it is
//! where a person finds what a policy could let pass.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::role::Enforcer;
use crate::error::{ClientError, Result};
use crate::private_file::PrivateFile;
use crate::profile::ProfileFile;
use crate::shell::has_options;
use countersign_e2e::PlainArtifact;

/// More are not kept; those that were approved longest ago go first.
const MAX_COMMANDS: usize = 200;
const MAX_COMMAND_BYTES: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovedCommand {
    pub command: String,
    /// Where it ran.
    pub directory: String,
    pub count: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovedContents {
    commands: Vec<ApprovedCommand>,
}

fn approved_file(file: &ProfileFile) -> PrivateFile {
    file.beside("approved.json")
}

/// The commands that were approved with this profile, the latest last.
pub fn approved_commands(file: &ProfileFile) -> Result<Vec<ApprovedCommand>> {
    let file = approved_file(file);
    let wrong = |problem: String| ClientError::ApprovedCommands {
        path: file.path().to_owned(),
        problem,
    };
    let Some(text) = file.read().map_err(|error| wrong(error.to_string()))? else {
        return Ok(Vec::new());
    };
    let contents = serde_json::from_str::<ApprovedContents>(&text);
    let contents = contents.map_err(|_| wrong("it is damaged".to_owned()))?;
    Ok(contents.commands)
}

impl Enforcer {
    /// Remembers a command of an agent that a person approved, if it is one.
    pub fn remember_approved(&self, artifact: &PlainArtifact) -> Result<()> {
        let whole = serde_json::from_str::<Value>(artifact.text()).unwrap_or_default();
        let Some((command, directory)) = whole.get("payload").and_then(agent_command) else {
            return Ok(());
        };
        let file = approved_file(&self.file);
        let wrong = |error: std::io::Error| ClientError::ApprovedCommands {
            path: file.path().to_owned(),
            problem: error.to_string(),
        };
        let _lock = file.lock().map_err(wrong)?;
        let mut commands = approved_commands(&self.file)?;
        let is_same = |it: &ApprovedCommand| it.command == command && it.directory == directory;
        let known = commands.iter().position(is_same);
        let count = known.map_or(0, |at| commands.remove(at).count) + 1;
        commands.push(ApprovedCommand {
            command: command.to_owned(),
            directory: directory.to_owned(),
            count,
        });
        let excess = commands.len().saturating_sub(MAX_COMMANDS);
        commands.drain(..excess);
        let text = json!({ "commands": commands }).to_string();
        file.write(&text).map_err(wrong)
    }
}

/// The command of an agent, without options that change how it runs.
fn agent_command(payload: &Value) -> Option<(&str, &str)> {
    let text = |name: &str| payload.get(name)?.as_str();
    (text("kind")? == "command" && payload.get("agent").is_some()).then_some(())?;
    let options = payload.get("options").and_then(Value::as_object);
    let command = text("command")?;
    let is_plain = options.is_none_or(|options| !has_options(options));
    let is_short = command.len() <= MAX_COMMAND_BYTES;
    (is_plain && is_short).then_some((command, text("directory")?))
}
