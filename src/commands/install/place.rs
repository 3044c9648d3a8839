//! Where the agents look for their configuration. Each agent's own variables count as they do for the agent.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::commands::enforcer::repository_root;

/// Whose configuration is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallScope {
    /// This user's, in every project.
    User,
    /// That of the project in the current directory.
    Project,
    /// That of everybody on this machine, which projects cannot switch off.
    Managed,
}

pub struct InstallPlaces {
    home: PathBuf,
    /// `/`, or another directory in tests.
    system: PathBuf,
    /// The current directory.
    pub directory: PathBuf,
}

impl InstallPlaces {
    pub fn here(system: Option<&Path>) -> anyhow::Result<Self> {
        let home =
            variable("HOME").context("HOME is not set, so the agents' files cannot be found")?;
        Ok(Self {
            home,
            system: system.unwrap_or(Path::new("/")).to_owned(),
            directory: std::env::current_dir().context("the current directory")?,
        })
    }

    pub fn system_root(&self) -> &Path {
        &self.system
    }

    /// A directory of the agent's in the user's home, or where `name` says.
    fn own(&self, name: &str, default: &str) -> PathBuf {
        variable(name).unwrap_or_else(|| self.home.join(default))
    }

    /// A file of the system; on macOS in another place.
    fn system(&self, linux: &str, macos: &str) -> PathBuf {
        let path = if cfg!(target_os = "macos") {
            macos
        } else {
            linux
        };
        self.system.join(path)
    }

    pub fn claude(&self, scope: InstallScope) -> PathBuf {
        match scope {
            InstallScope::User => self
                .own("CLAUDE_CONFIG_DIR", ".claude")
                .join("settings.json"),
            InstallScope::Project => self.directory.join(".claude/settings.json"),
            InstallScope::Managed => self.system(
                "etc/claude-code/managed-settings.json",
                "Library/Application Support/ClaudeCode/managed-settings.json",
            ),
        }
    }

    /// The user's own file in this project, which is not shared.
    pub fn claude_local(&self) -> PathBuf {
        self.directory.join(".claude/settings.local.json")
    }

    /// Codex resolves links in `CODEX_HOME`, but not in the default.
    pub fn codex_home(&self) -> PathBuf {
        match variable("CODEX_HOME") {
            Some(path) => path.canonicalize().unwrap_or(path),
            None => self.home.join(".codex"),
        }
    }

    pub fn codex(&self, scope: InstallScope) -> PathBuf {
        match scope {
            InstallScope::User => self.codex_home().join("hooks.json"),
            InstallScope::Project => self.directory.join(".codex/hooks.json"),
            InstallScope::Managed => self.system.join("etc/codex/requirements.toml"),
        }
    }

    pub fn copilot(&self, scope: InstallScope) -> PathBuf {
        let directory = match scope {
            InstallScope::User => self.copilot_home().join("hooks"),
            InstallScope::Project => self.repository().join(".github/hooks"),
            InstallScope::Managed => self.system.join("etc/github-copilot/policy.d"),
        };
        directory.join("countersign.json")
    }

    pub fn copilot_home(&self) -> PathBuf {
        self.own("COPILOT_HOME", ".copilot")
    }

    pub fn gemini(&self, scope: InstallScope) -> PathBuf {
        match scope {
            InstallScope::User => {
                let home = variable("GEMINI_CLI_HOME").unwrap_or_else(|| self.home.clone());
                home.join(".gemini/settings.json")
            }
            InstallScope::Project => self.directory.join(".gemini/settings.json"),
            InstallScope::Managed => {
                variable("GEMINI_CLI_SYSTEM_SETTINGS_PATH").unwrap_or_else(|| {
                    self.system(
                        "etc/gemini-cli/settings.json",
                        "Library/Application Support/GeminiCli/settings.json",
                    )
                })
            }
        }
    }

    /// opencode loads every script in `plugin` and `plugins`. It has no place that withstands its own switches.
    pub fn opencode(&self, scope: InstallScope) -> Option<PathBuf> {
        let directory = match scope {
            InstallScope::User => self.own("XDG_CONFIG_HOME", ".config").join("opencode"),
            InstallScope::Project => self.repository().join(".opencode"),
            InstallScope::Managed => return None,
        };
        Some(directory.join("plugin/countersign.js"))
    }

    pub fn cursor(&self, scope: InstallScope) -> PathBuf {
        match scope {
            InstallScope::User => self.home.join(".cursor/hooks.json"),
            InstallScope::Project => self.directory.join(".cursor/hooks.json"),
            InstallScope::Managed => self.system(
                "etc/cursor/hooks.json",
                "Library/Application Support/Cursor/hooks.json",
            ),
        }
    }

    /// The repository that the current directory is in, or the directory itself.
    pub fn repository(&self) -> &Path {
        repository_root(&self.directory)
    }
}

/// One that is set to something.
pub fn variable(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}
