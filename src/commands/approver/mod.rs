//! The approver's commands: joining, reading what enforcers ask, deciding, devices, and verifying a decision offline.

mod decide;
mod devices;
mod inbox;
mod join;
mod notifications;
mod pair;
mod passphrase;
mod payload;
mod prompt;
mod verify;
mod view;

use std::io::{BufRead as _, IsTerminal as _, Read as _};

use anyhow::Context as _;
use clap::Subcommand;
use countersign::client::ClientError;
use countersign::client::approver::{Approver, InboxRequest};
use countersign::client::visible;

use super::client::ClientOptions;
use super::ending::ExitAction;
use super::terminal::ask;

pub use self::pair::{pair, pairings, unpair};

/// Longer than any link.
const MAX_LINK_BYTES: u64 = 64 << 10;

#[derive(Subcommand)]
pub enum ApproverCommand {
    /// Join a gateway with an invitation, as an approver or as an enforcer.
    ///
    /// It creates the keys and writes the profile. A further device of an approver prints a link, which a device in force
    /// opens to add it. Without a link, goes on with what was begun.
    #[command(after_help = join::EXAMPLES)]
    Join(join::JoinArgs),
    /// List the requests that wait for a decision.
    #[command(after_help = inbox::EXAMPLES)]
    Inbox(inbox::InboxArgs),
    /// Show a request, complete.
    #[command(after_help = "Example:\n  countersign show 0195c1c2")]
    Show(inbox::ShowArgs),
    /// Approve a request.
    ///
    /// Without an id, shows the only request that waits and asks on the terminal. Exit status: 0 accepted by the gateway, 77
    /// refused, 69 gateway unavailable.
    #[command(after_help = decide::APPROVE_EXAMPLES)]
    Approve(decide::ApproveArgs),
    /// Reject a request.
    ///
    /// Without an id, shows the only request that waits and asks on the terminal.
    #[command(after_help = decide::REJECT_EXAMPLES)]
    Reject(decide::RejectArgs),
    /// Write to an agent whose enforcer this device is paired with.
    ///
    /// The text is encrypted to the enforcer, which gives it to the agent the next time a person decides one of its calls, or a prompt or session begins. Exit status: 0
    /// sent or delivered, 77 rejected, 75 not taken in time.
    #[command(after_help = prompt::EXAMPLES)]
    Prompt(prompt::PromptArgs),
    /// List the devices of this approver, add one or revoke one.
    #[command(after_help = devices::EXAMPLES, args_conflicts_with_subcommands = true)]
    Devices(devices::DevicesArgs),
    /// List where this approver is notified that something waits; add a webhook, test or remove one.
    #[command(after_help = notifications::EXAMPLES, args_conflicts_with_subcommands = true)]
    Notifications(notifications::NotificationsArgs),
    /// Encrypt the keys of this device with a passphrase; change or remove it.
    ///
    /// Every command that uses the keys then asks for it.
    #[command(after_help = passphrase::EXAMPLES, mut_arg("json", |option| option.hide(true)))]
    Passphrase(passphrase::PassphraseArgs),
    /// Verify a saved decision, offline.
    ///
    /// Exit status: 0 if a device that this profile trusts, or that --device names, has signed it; 77 if not; 65 if the file is
    /// malformed.
    #[command(after_help = verify::EXAMPLES)]
    Verify(verify::VerifyArgs),
}

pub async fn run(command: ApproverCommand) -> anyhow::Result<ExitAction> {
    match command {
        ApproverCommand::Join(args) => join::run(args).await,
        ApproverCommand::Inbox(args) => inbox::run(args).await,
        ApproverCommand::Show(args) => inbox::show(args).await,
        ApproverCommand::Approve(args) => decide::approve(args).await,
        ApproverCommand::Reject(args) => decide::reject(args).await,
        ApproverCommand::Prompt(args) => prompt::run(args).await,
        ApproverCommand::Devices(args) => devices::run(args).await,
        ApproverCommand::Notifications(args) => notifications::run(args).await,
        ApproverCommand::Passphrase(args) => passphrase::run(&args),
        ApproverCommand::Verify(args) => verify::run(&args),
    }
}

fn open(options: &ClientOptions) -> anyhow::Result<Approver> {
    passphrase::open(&options.file()?)
}

/// An argument, or the first line of standard input if it is `-`: other users can see arguments.
fn argument_or_input(argument: &str) -> anyhow::Result<String> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut line = String::new();
    let mut input = std::io::stdin().lock().take(MAX_LINK_BYTES);
    input.read_line(&mut line).context("standard input")?;
    Ok(line.trim().to_owned())
}

/// Whether a person at the terminal says yes. An error if there is none.
async fn says_yes(question: &str) -> anyhow::Result<bool> {
    let answer = ask(&format!("{question} [y/N]")).await;
    let answer = answer.map_err(|_| ClientError::Choice("there is no terminal to ask on"))?;
    Ok(answer.eq_ignore_ascii_case("y") || answer.eq_ignore_ascii_case("yes"))
}

fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// The only item that waits, if any does.
async fn only(approver: &Approver) -> anyhow::Result<Option<InboxRequest>> {
    let mut found = approver.find("").await?;
    let problem = "more than one request waits; say which: countersign inbox";
    anyhow::ensure!(found.len() <= 1, ClientError::Choice(problem));
    Ok(found.pop())
}

/// The one item whose id begins so.
async fn find(approver: &Approver, prefix: &str) -> anyhow::Result<InboxRequest> {
    anyhow::ensure!(
        !prefix.is_empty(),
        ClientError::Choice("an id is not empty")
    );
    let mut found = approver.find(prefix).await?;
    match (found.pop(), found.len()) {
        (Some(item), 0) => Ok(item),
        (None, _) => {
            let shown = visible(prefix);
            Err(anyhow::Error::new(ClientError::NoLongerPending)
                .context(format!("no request {shown} waits for a decision")))
        }
        (Some(_), _) => {
            let shown = visible(prefix);
            let problem = "the id is not unique; give more of it";
            Err(anyhow::Error::new(ClientError::Choice(problem))
                .context(format!("several requests begin with {shown}")))
        }
    }
}
