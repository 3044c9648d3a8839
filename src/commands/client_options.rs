//! Options and lists that the client commands share, and the name of the machine.

use clap::Args;
use countersign::client::profile::ProfileFile;
use serde::Serialize;
use serde_json::Value;

use super::complete;

/// Options of every client command.
#[derive(Args)]
pub struct ClientOptions {
    /// The profile to use.
    #[arg(
        long,
        env = "COUNTERSIGN_PROFILE",
        default_value = "default",
        value_name = "NAME",
        global = true,
        add = complete::profiles()
    )]
    profile: String,
    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

impl ClientOptions {
    pub fn file(&self) -> anyhow::Result<ProfileFile> {
        Ok(ProfileFile::named(&self.profile)?)
    }
}

/// An entry of a list.
#[derive(Serialize)]
pub struct ListedEntry {
    #[serde(flatten)]
    pub json: Value,
    /// For people.
    #[serde(skip)]
    pub line: String,
}

/// The name of this machine.
pub fn host_name() -> Option<String> {
    nix::unistd::gethostname().ok()?.into_string().ok()
}
