//! The facts about an agent that Countersign has to know.

use std::path::PathBuf;

use serde_json::Value;

use crate::event::HookEvent;
use crate::install::file::{self, FileChange, InstallRefusal};
use crate::install::hooks::InstallRequest;
use crate::install::inspect::{AgentConfiguration, SettingsFile};
use crate::install::places::{InstallPlaces, InstallScope};
use crate::members::{EventMembers, ReadProblem};

/// One per agent, each in a file of its own.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about an agent"
)]
pub struct AgentDefinition {
    /// As it is called on the command line.
    pub name: &'static str,
    /// As people call it.
    pub title: &'static str,
    /// Names of its program; the first one that exists counts.
    pub programs: &'static [&'static str],
    /// The version that everything was tried with.
    pub measured: Option<&'static str>,

    /// Reads the input of its hook.
    pub read: fn(EventMembers) -> Result<HookEvent, ReadProblem>,
    /// An edit that deletes text takes away the end of its line too.
    pub deletes_line_ends: bool,
    /// Its model gets to see additional context with an answer.
    pub takes_context: bool,
    /// Its tool that asks the user takes the answers with its input. For others the call is denied
    /// with the answers as the reason.
    pub takes_answers: bool,
    /// The denial of an event of this name, with the reason.
    pub denial: fn(&str, &str) -> Value,
    /// Where `deny` is in a denial.
    pub verdict: &'static str,
    /// The answer that lets it go on: with who approved, and with context for the model. `None` is
    /// no output.
    pub permission: fn(&HookEvent, Option<String>, Option<&str>) -> Option<Value>,

    /// Files and directories that decide whether the hook is called, in the home directory, a
    /// project or the system.
    pub protected: &'static [&'static str],
    pub moved: Option<MovedDirectory>,
    /// The file that `install` changes. `None` if there is no such scope.
    pub settings: fn(&InstallPlaces, InstallScope) -> Option<PathBuf>,
    pub plan: fn(&InstallRequest, &InstallPlaces) -> Result<Vec<FileChange>, InstallRefusal>,
    /// Its hook is ended if it hangs, without a command of the system.
    pub limits_hook: bool,

    /// Looks for our hook in the settings.
    pub inspect:
        fn(&InstallPlaces, &SettingsFile<String>, &mut AgentConfiguration) -> Result<(), String>,
    /// It runs no other hooks beside managed ones.
    pub runs_managed_alone: bool,
    /// Finds what switches hooks off, each as a sentence that says where it is.
    pub switches: fn(&InstallPlaces, &AgentConfiguration) -> Vec<String>,
    /// Ways around the hook that remain open.
    pub holes: &'static [KnownHole],
    /// A recorded call of a shell with a command in a directory.
    pub canary: fn(&str, &str) -> Value,
}

/// A directory of the agent's that a variable moves.
pub struct MovedDirectory {
    pub variable: &'static str,
    /// Below the directory that the variable names.
    pub below: &'static str,
    /// Without the variable, in the home directory.
    pub usual: &'static str,
}

/// A way around the hook.
pub enum KnownHole {
    Always(&'static str),
    /// The settings for everybody close it.
    UnlessManaged(&'static str),
}

/// Holes that several agents have.
pub const SUSPENDED: &str =
    "if it is suspended for more than a day while the hook waits, the call goes ahead";
pub const SHELL_KILLED: &str = "if the shell around the hook is killed, the call goes ahead";
pub const SWITCHED_OFF: &str = "a project can switch hooks off, unless they are managed";
pub const OTHER_HOOKS: &str = "another hook can change the input after its approval";
pub const ENVIRONMENT: &str =
    "a project's files can set environment variables that the hook inherits";

impl AgentDefinition {
    /// Its settings as they are, and our hook in them.
    pub fn configuration(&self, places: &InstallPlaces) -> AgentConfiguration {
        let mut found = AgentConfiguration::default();
        let scopes = [
            InstallScope::Managed,
            InstallScope::User,
            InstallScope::Project,
        ];
        for scope in scopes {
            let Some(path) = (self.settings)(places, scope) else {
                continue;
            };
            let content = match file::read(&path) {
                Ok(Some(text)) => text,
                Ok(None) => continue,
                Err(error) => {
                    found.malformed.push(error.to_string());
                    continue;
                }
            };
            let file = SettingsFile {
                scope,
                path,
                content,
            };
            if let Err(error) = (self.inspect)(places, &file, &mut found) {
                let path = file.path.display();
                found.malformed.push(format!("{path}, {error}"));
            }
        }
        found
    }

    /// Ways around the hook that remain open. `managed` is whether projects cannot switch it off.
    pub fn open_holes(&self, managed: bool) -> Vec<&'static str> {
        let open = self.holes.iter().filter_map(|hole| match hole {
            KnownHole::UnlessManaged(_) if managed => None,
            KnownHole::Always(text) | KnownHole::UnlessManaged(text) => Some(*text),
        });
        open.collect()
    }
}
