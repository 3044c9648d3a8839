//! The approver's commands: joining, reading what enforcers ask, deciding, devices, and verifying a
//! decision offline.

mod anchors;
mod artifact;
mod decide;
mod devices;
mod inbox;
mod input;
mod join;
mod local;
mod notifications;
mod orders;
mod pair;
mod passphrase;
mod payload;
mod prompt;
mod questions;
mod receipt;
mod rule_text;
mod team;
mod team_options;
mod team_text;
mod verify;
mod view;

use clap::Subcommand;

use super::exit_action::ExitAction;

pub use self::input::says_yes;
pub use self::local::{decide_here, open_sealed};
pub use self::orders::{end_grant, given_grants};
pub use self::pair::{pair, pairings, unpair, unpair_question};
pub use self::rule_text::{TeamNames, rule_sentence};
pub use self::view::{headline as artifact_headline, payload_headline};

#[derive(Subcommand)]
pub enum ApproverCommand {
    /// Join a gateway with an invitation link.
    ///
    /// Creates keys and writes the profile. An approver's second device prints a link: open it on a
    /// device you already use to approve the new one. Without a link, continues an unfinished join.
    #[command(after_help = join::EXAMPLES)]
    Join(join::JoinArgs),
    /// List the requests that are waiting for you.
    #[command(after_help = inbox::EXAMPLES)]
    Inbox(inbox::InboxArgs),
    /// Show everything about a request.
    #[command(after_help = "Example:\n  countersign show 5e0c71f2")]
    Show(inbox::ShowArgs),
    /// Approve a request.
    ///
    /// Shows the request and asks first, unless you give its whole id. Without an id, takes the only
    /// request that is waiting. Exit status: 0 accepted by the gateway, 77 refused, 69 gateway
    /// unavailable.
    #[command(after_help = decide::APPROVE_EXAMPLES)]
    Approve(decide::ApproveArgs),
    /// Reject a request.
    ///
    /// Without an id, shows the only request that is waiting and asks first.
    #[command(after_help = decide::REJECT_EXAMPLES)]
    Reject(decide::DecisionOptions),
    /// Send a message to an agent.
    ///
    /// The text is encrypted to the agent's machine. The agent gets it with the next decision about
    /// one of its calls, or with its next prompt or session. Exit status: 0 sent or delivered, 77
    /// rejected, 75 not picked up in time.
    #[command(after_help = prompt::EXAMPLES)]
    Prompt(prompt::PromptArgs),
    /// Pause an agent: calls that need approval are denied at once, and grants don't apply.
    ///
    /// Takes effect with the agent's next call, unless the gateway withholds it. Exit status: 0
    /// sent or confirmed, 77 rejected, 75 not confirmed in time.
    #[command(after_help = orders::PAUSE_EXAMPLES)]
    Pause(orders::PauseArgs),
    /// Let a paused agent continue.
    #[command(after_help = "Example:\n  countersign resume build-bot")]
    Resume(orders::OrderOptions),
    /// List your devices; add or revoke one.
    #[command(after_help = devices::EXAMPLES, args_conflicts_with_subcommands = true)]
    Devices(devices::DevicesArgs),
    /// Create a team, join one, and change its members.
    #[command(after_help = team::EXAMPLES)]
    Team(team::TeamArgs),
    /// List where you are notified of requests; add, test or remove a webhook.
    #[command(after_help = notifications::EXAMPLES, args_conflicts_with_subcommands = true)]
    Notifications(notifications::NotificationsArgs),
    /// Protect this device's keys with a passphrase; change or remove it.
    ///
    /// Every command that uses the keys then asks for the passphrase.
    #[command(after_help = passphrase::EXAMPLES, mut_arg("json", |option| option.hide(true)))]
    Passphrase(passphrase::PassphraseArgs),
    /// Verify a saved decision or receipt, offline.
    ///
    /// Exit status: 0 if it was signed by a device that this profile trusts or that --device names,
    /// 77 if not, 65 if the file is malformed.
    #[command(after_help = verify::EXAMPLES)]
    Verify(verify::VerifyArgs),
    /// Print the devices, teams and log keys that this profile trusts, to verify receipts elsewhere.
    #[command(after_help = anchors::EXAMPLES, mut_arg("json", |option| option.hide(true)))]
    Anchors(anchors::AnchorsArgs),
}

pub async fn run(command: ApproverCommand) -> anyhow::Result<ExitAction> {
    match command {
        ApproverCommand::Join(args) => join::run(args).await,
        ApproverCommand::Inbox(args) => inbox::run(args).await,
        ApproverCommand::Show(args) => inbox::show(args).await,
        ApproverCommand::Approve(args) => decide::approve(args).await,
        ApproverCommand::Reject(args) => decide::reject(args).await,
        ApproverCommand::Prompt(args) => prompt::run(args).await,
        ApproverCommand::Pause(args) => orders::pause(args).await,
        ApproverCommand::Resume(args) => orders::resume(args).await,
        ApproverCommand::Devices(args) => devices::run(args).await,
        ApproverCommand::Team(args) => team::run(args).await,
        ApproverCommand::Notifications(args) => notifications::run(args).await,
        ApproverCommand::Passphrase(args) => passphrase::run(&args),
        ApproverCommand::Verify(args) => verify::run(&args),
        ApproverCommand::Anchors(args) => anchors::run(&args),
    }
}
