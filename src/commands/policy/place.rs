//! Where the policy is, and where the user is.

use std::path::PathBuf;

use countersign::agent::install::file::FileChange;
use countersign::client::profile::ProfileFile;

pub fn policy_path(file: &ProfileFile) -> PathBuf {
    file.path().with_file_name("policy.toml")
}

/// The change of the policy to this text.
pub fn policy_change(file: &ProfileFile, before: Option<String>, after: String) -> FileChange {
    FileChange {
        path: policy_path(file),
        before,
        after: Some(after),
        public: false,
    }
}

/// The current directory, as a hook would be told it.
pub fn here() -> anyhow::Result<String> {
    let directory = std::env::current_dir()?.into_os_string().into_string();
    directory.map_err(|_| anyhow::anyhow!("the path of this directory is not UTF-8"))
}
