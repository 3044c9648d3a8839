//! The command line. Results go to standard output, remarks and logs to standard error.

mod approver;
mod client;
mod client_options;
mod doctor;
mod enforcer;
mod exit_action;
mod findings;
#[cfg(feature = "gateway")]
mod gateway;
mod guard;
mod hook;
mod install;
mod mcp;
pub mod output;
mod signals;
pub mod terminal;

use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;

use self::client::ClientCommand;
pub use self::exit_action::{DENIED, ExitAction, code_of};
#[cfg(feature = "gateway")]
use self::gateway::{GatewayCommand, GatewayOptions};

/// An open, self-hosted approval gateway for AI agents.
#[derive(Parser)]
#[command(version, about)]
pub struct Cli {
    #[cfg(feature = "gateway")]
    #[command(flatten)]
    gateway: GatewayOptions,
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Subcommand)]
enum CliCommand {
    #[command(flatten)]
    Client(ClientCommand),
    /// Print a script that completes commands in a shell.
    #[command(
        after_help = "Example:\n  countersign completions bash > ~/.local/share/bash-completion/completions/countersign"
    )]
    Completions { shell: Shell },
    #[cfg(feature = "gateway")]
    #[command(flatten)]
    Gateway(GatewayCommand),
}

impl Cli {
    /// Whether it is a command for one person, rather than a gateway that serves many.
    pub fn is_client(&self) -> bool {
        matches!(
            self.command,
            CliCommand::Client(_) | CliCommand::Completions { .. }
        )
    }

    /// Whether an agent waits for it, and takes some exit statuses for permission.
    pub fn is_hook(&self) -> bool {
        matches!(self.command, CliCommand::Client(ClientCommand::Hook(_)))
    }
}

pub async fn run(cli: Cli) -> anyhow::Result<ExitAction> {
    match cli.command {
        CliCommand::Client(command) => client::run(command).await,
        CliCommand::Completions { shell } => {
            let mut command = Cli::command();
            clap_complete::generate(shell, &mut command, "countersign", &mut std::io::stdout());
            Ok(ExitAction::DONE)
        }
        #[cfg(feature = "gateway")]
        CliCommand::Gateway(command) => {
            Box::pin(gateway::run(cli.gateway, command)).await?;
            Ok(ExitAction::DONE)
        }
    }
}
