//! Directories below which agents look for their settings. Each agent's own variables count as they
//! do for the agent.

use std::path::{Path, PathBuf};

/// Whose settings are changed.
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
    pub home: PathBuf,
    /// `/`, or another directory in tests.
    pub system: PathBuf,
    /// The current directory.
    pub directory: PathBuf,
}

impl InstallPlaces {
    /// A directory of the agent's in the user's home, or where `name` says.
    pub fn own(&self, name: &str, default: &str) -> PathBuf {
        variable(name).unwrap_or_else(|| self.home.join(default))
    }

    /// A file of the system; on macOS in another place.
    pub fn system(&self, linux: &str, macos: &str) -> PathBuf {
        let is_macos = cfg!(target_os = "macos");
        self.system.join(if is_macos { macos } else { linux })
    }

    /// The repository that the current directory is in, or the directory itself.
    pub fn repository(&self) -> &Path {
        repository_root(&self.directory)
    }
}

/// The directory that the repository around `directory` begins in, or `directory` itself.
pub fn repository_root(directory: &Path) -> &Path {
    let mut around = directory.ancestors();
    let root = around.find(|place| place.join(".git").exists());
    root.unwrap_or(directory)
}

/// One that is set to something.
pub fn variable(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}
