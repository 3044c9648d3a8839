//! The directory in which `countersign dev` keeps its data.

use std::path::PathBuf;

use super::options::DevOptions;
use countersign::clock::Clock;

/// The data directory, removed on drop if it is ephemeral.
pub struct DataDir {
    pub path: PathBuf,
    ephemeral: bool,
}

impl DataDir {
    pub fn open(options: &DevOptions) -> anyhow::Result<Self> {
        let path = match (&options.data_dir, options.ephemeral) {
            (Some(path), _) => path.clone(),
            (None, true) => {
                std::env::temp_dir().join(format!("countersign-{}", Clock::system().operation_id()))
            }
            (None, false) => default_data_dir(),
        };
        std::fs::create_dir_all(&path)
            .map_err(|error| anyhow::anyhow!("cannot create {}: {error}", path.display()))?;
        Ok(Self {
            path,
            ephemeral: options.ephemeral,
        })
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        if self.ephemeral
            && let Err(error) = std::fs::remove_dir_all(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "the data directory could not be removed");
        }
    }
}

/// A directory in the user's home; for root one of the system, since PostgreSQL's account cannot
/// enter root's home.
fn default_data_dir() -> PathBuf {
    if nix::unistd::geteuid().is_root() {
        return PathBuf::from("/var/lib/countersign-dev");
    }
    let base = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share")));
    base.unwrap_or_else(std::env::temp_dir)
        .join("countersign-dev")
}
