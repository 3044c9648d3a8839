//! A home directory with a project, for commands that change what is there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::process::countersign;

pub struct Home {
    directory: TempDir,
}

pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Home {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("project/.git")).unwrap();
        Self { directory }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// All files, sorted.
    pub fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        collect(self.directory.path(), &mut found);
        let relative = found
            .iter()
            .map(|path| path.strip_prefix(self.directory.path()).unwrap());
        let mut names: Vec<_> = relative
            .map(|path| path.to_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }

    /// All files with their content, and when they were written.
    pub fn snapshot(&self) -> Vec<(String, String, std::time::SystemTime)> {
        let files = self.files().into_iter().map(|path| {
            let modified = self.path(&path).metadata().unwrap().modified().unwrap();
            (path.clone(), self.read(&path), modified)
        });
        files.collect()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = countersign();
        for name in [
            "CLAUDE_CONFIG_DIR",
            "CODEX_HOME",
            "COPILOT_HOME",
            "GEMINI_CLI_HOME",
            "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
            "OPENCODE_PURE",
        ] {
            command.env_remove(name);
        }
        command
            .env("HOME", self.directory.path())
            .env("XDG_CONFIG_HOME", self.path(".config"))
            .current_dir(self.path("project"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        let output = self.command(arguments).output().unwrap();
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in directory.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            collect(&path, found);
        } else {
            found.push(path);
        }
    }
}
