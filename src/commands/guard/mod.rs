//! `guard`: a process of another user than the agent's. It has the profile, the pins, the grants
//! and the policy, and answers on a socket. The user who may connect can only ask, so that an agent
//! that edits its user's files changes nothing.

mod answer;
mod client;
mod message;
mod server;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use nix::unistd::User;

use super::client_options::ClientOptions;
use super::exit_action::ExitAction;
use super::output::remark;
use super::signals::stop_signals;

pub use self::answer::{INTERRUPTED, answer};
pub use self::client::{GuardAddress, USER_PLACEHOLDER};
pub use self::message::{AgentSession, AskCall, AskOutcome, AskReply, ObservedEvent, cause};

pub const EXAMPLES: &str = "\
Example:
  countersign guard --socket /run/countersign-guard/dave/socket --user dave
To set it up: sudo countersign install claude --managed --guard-for dave";

#[derive(Args)]
pub struct GuardArgs {
    #[command(flatten)]
    options: ClientOptions,
    /// Where to listen, in a directory that only the guard's user can write to.
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// The user who may ask. Each user needs a guard of their own.
    #[arg(long, value_name = "NAME")]
    user: String,
}

pub async fn run(args: GuardArgs) -> anyhow::Result<ExitAction> {
    let file = args.options.file()?;
    // A guard without an enforcer would deny everything.
    let profile = file.load()?;
    anyhow::ensure!(
        profile.enforcer.is_some(),
        "the profile {} has no enforcer; join with an invitation for an enforcer: countersign join LINK",
        file.path().display()
    );
    let user = User::from_name(&args.user)?;
    let user = user.with_context(|| format!("there is no user {}", args.user))?;
    let stop = stop_signals()?;
    let listener = server::listen(&args.socket)?;
    remark(&format!("listening on {}", args.socket.display()));
    server::serve(&listener, &file, user.uid, &stop).await;
    std::fs::remove_file(&args.socket).context("the socket")?;
    Ok(ExitAction::DONE)
}
