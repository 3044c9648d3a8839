//! The options of `countersign install`.

use std::path::PathBuf;

use clap::Args;
use countersign::agent::{Agent, PolicyKind};

use crate::commands::complete;
use crate::commands::guard::GuardAddress;

#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "options of a command line")]
pub struct InstallArgs {
    /// The agent: claude, codex, copilot, gemini, opencode or cursor.
    #[arg(add = complete::agents())]
    pub agent: Agent,
    /// For this user, in every project (the default).
    #[arg(long, group = "scope")]
    pub user: bool,
    /// For the project in the current directory.
    #[arg(long, group = "scope")]
    pub project: bool,
    /// For all users of this machine; projects can't switch it off. Needs root.
    #[arg(long, group = "scope")]
    pub managed: bool,
    /// Ask about every call, even those that the policy allows.
    #[arg(long, conflicts_with = "remove")]
    pub every_call: bool,
    /// Also write this policy: project, careful or read-only. See `countersign policy`.
    #[arg(long, value_name = "KIND", conflicts_with_all = ["remove", "guard", "guard_for"])]
    pub policy: Option<PolicyKind>,
    /// Remove the hook.
    #[arg(long)]
    pub remove: bool,
    /// Don't ask before writing files.
    #[arg(long, short)]
    pub yes: bool,
    /// Only show what would change.
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON, for programs.
    #[arg(long)]
    pub json: bool,
    /// The profile that the hook uses; otherwise `COUNTERSIGN_PROFILE`, or `default`.
    #[arg(long, value_name = "NAME", conflicts_with = "remove", add = complete::profiles())]
    pub profile: Option<String>,
    /// Ask through this guard: its user and its socket. See `countersign guard`.
    #[arg(long, value_name = "USER:SOCKET", conflicts_with_all = ["remove", "profile"])]
    pub guard: Option<GuardAddress>,
    /// Set up a guard for this user's agents and make the hook use it. Needs root and systemd.
    #[arg(long, value_name = "NAME", requires = "managed", conflicts_with_all = ["remove", "profile", "guard"])]
    pub guard_for: Option<String>,
    /// Where the files of the system are.
    #[arg(long, value_name = "DIR", hide = true)]
    pub system_root: Option<PathBuf>,
}
