//! opencode: a plugin of our own, since it has no hooks that run a command.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::file::{self, FileChange};
use super::place::InstallPlaces;
use super::shell::command_of;
use super::{InstallRefusal, InstallRequest};
use crate::commands::exit_action::{MALFORMED, USAGE};

const PLUGIN: &str = include_str!("plugin.js");
/// The beginning of every plugin that was ever written here.
const MARK: &str = "// Countersign: ";

pub fn plan(
    request: &InstallRequest,
    places: &InstallPlaces,
) -> Result<Vec<FileChange>, InstallRefusal> {
    let Some(path) = places.opencode(request.scope) else {
        return Err(InstallRefusal {
            code: USAGE,
            message: "opencode has no settings that withstand its own switches (OPENCODE_PURE, --pure), so there is \
                      nothing to manage; install it for each user"
                .to_owned(),
        });
    };
    let before = file::read(&path)?;
    if before.as_ref().is_some_and(|text| !text.starts_with(MARK)) {
        return Err(InstallRefusal {
            code: MALFORMED,
            message: format!(
                "{} is not a plugin of ours; move it away first. Nothing was changed",
                path.display()
            ),
        });
    }
    let after = (!request.remove).then(|| plugin(request));
    Ok(vec![FileChange {
        path,
        before,
        after,
        public: false,
    }])
}

fn plugin(request: &InstallRequest) -> String {
    let hook = &request.hook;
    let program = hook.program.to_string_lossy().into_owned();
    filled(
        &program.into(),
        &hook.words(true).into(),
        &hook.words(false).into(),
    )
}

fn filled(program: &Value, call: &Value, session: &Value) -> String {
    PLUGIN
        .replace("\"PROGRAM\"", &program.to_string())
        .replace("\"CALL\"", &call.to_string())
        .replace("\"SESSION\"", &session.to_string())
}

/// A plugin of ours, as it was found.
pub struct InstalledPlugin {
    pub program: PathBuf,
    /// What it runs for a call, as a shell would.
    pub command: String,
    /// Whether this version would write the same.
    pub is_current: bool,
}

impl InstalledPlugin {
    pub fn read(text: &str) -> Option<Self> {
        let constant = |name: &str| {
            let mut lines = text.lines();
            let value = lines.find_map(|line| line.strip_prefix(&format!("const {name} = ")))?;
            serde_json::from_str::<Value>(value).ok()
        };
        if !text.starts_with(MARK) {
            return None;
        }
        let program = constant("PROGRAM_PATH").unwrap_or_default();
        let call = constant("CALL_ARGUMENTS").unwrap_or_default();
        let session = constant("SESSION_ARGUMENTS").unwrap_or_default();
        Some(Self {
            program: PathBuf::from(program.as_str().unwrap_or_default()),
            command: command_of(&json!({ "command": program, "args": call })).unwrap_or_default(),
            is_current: filled(&program, &call, &session) == text,
        })
    }
}
