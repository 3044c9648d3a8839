//! The options of `countersign install`.

use std::path::PathBuf;

use clap::Args;
use countersign::agent::Agent;

use crate::commands::guard::GuardAddress;

#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "options of a command line")]
pub struct InstallArgs {
    /// The agent: claude, codex, copilot, gemini, opencode or cursor.
    pub agent: Agent,
    /// For this user, in every project. This is the default.
    #[arg(long, group = "scope")]
    pub user: bool,
    /// For the project in the current directory.
    #[arg(long, group = "scope")]
    pub project: bool,
    /// For everybody on this machine, so that projects cannot switch it off. Needs root.
    #[arg(long, group = "scope")]
    pub managed: bool,
    /// Ask about every call, also what the policy would let pass.
    #[arg(long, conflicts_with = "remove")]
    pub every_call: bool,
    /// Take out what was installed.
    #[arg(long)]
    pub remove: bool,
    /// Do not ask before files are written.
    #[arg(long, short)]
    pub yes: bool,
    /// Only show what would change.
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON, for programs.
    #[arg(long)]
    pub json: bool,
    /// The profile that the hook uses; otherwise it follows `COUNTERSIGN_PROFILE`, or uses
    /// `default`.
    #[arg(long, value_name = "NAME", conflicts_with = "remove")]
    pub profile: Option<String>,
    /// The guard that the hook asks through: the user that it runs as, and its socket. See
    /// `countersign guard`.
    #[arg(long, value_name = "USER:SOCKET", conflicts_with_all = ["remove", "profile"])]
    pub guard: Option<GuardAddress>,
    /// Set up a guard for the agents of this user, and have the hook ask through it. Needs root and
    /// systemd.
    #[arg(long, value_name = "NAME", requires = "managed", conflicts_with_all = ["remove", "profile", "guard"])]
    pub guard_for: Option<String>,
    /// Where the files of the system are.
    #[arg(long, value_name = "DIR", hide = true)]
    pub system_root: Option<PathBuf>,
}
