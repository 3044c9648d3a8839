//! The enforcer's commands: pairing, and asking before something happens.

mod ask;
mod ask_set;
mod content;
mod grants;
mod interruption;
mod pair;
mod program;
mod rule_options;
mod run;

use clap::Subcommand;

use super::exit_action::ExitAction;

pub use self::content::{
    ContentKind, ContentOptions, MAX_CONTENT_BYTES, RequestContent, repository_name,
};
pub use self::grants::{forget_grants, grants};
pub use self::pair::{PairArgs, pair, pairings, unpair};
pub use self::rule_options::demands;

#[derive(Subcommand)]
pub enum EnforcerCommand {
    /// Ask for approval of a command, then run it.
    ///
    /// The command runs only if a paired device has signed an approval of exactly this command.
    /// This process then becomes the command, with the same input, output, signals and exit status.
    /// Otherwise the exit status is 77. Ctrl-C withdraws the request. Commands that a grant allows
    /// need no new approval; see `grants`.
    #[command(after_help = run::EXAMPLES)]
    Run(run::RunArgs),
    /// Ask for approval of a plan, a patch or anything else; print the signed decision.
    ///
    /// Exit status: 0 approved, 77 denied, 75 no decision in time, 69 gateway unavailable.
    #[command(after_help = ask::EXAMPLES)]
    Ask(ask::AskArgs),
}

pub async fn run(command: EnforcerCommand) -> anyhow::Result<ExitAction> {
    match command {
        EnforcerCommand::Run(args) => run::run(args).await,
        EnforcerCommand::Ask(args) => ask::run(args).await,
    }
}
