//! The command line. Results go to standard output, remarks and logs to standard error.

mod approver;
mod client;
mod client_options;
mod complete;
mod doctor;
mod enforcer;
mod exit_action;
mod findings;
#[cfg(feature = "gateway")]
mod gateway;
mod grant_text;
mod grants;
mod guard;
mod help;
mod hook;
mod install;
mod log;
mod mcp;
mod next_steps;
pub mod output;
mod policy;
mod receipt;
mod sets;
mod short_id;
mod signals;
pub mod terminal;
mod waiting;

use clap::{Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::Shell;

use self::client::ClientCommand;
pub use self::exit_action::{DENIED, ExitAction, code_of};
#[cfg(feature = "gateway")]
use self::gateway::{GatewayCommand, GatewayOptions};
#[cfg(feature = "gateway")]
use self::log::{LogArgs, LogCommand};

/// An open, self-hosted approval gateway for AI agents.
#[derive(Parser)]
#[command(version, about)]
pub struct Cli {
    #[cfg(feature = "gateway")]
    #[command(flatten)]
    gateway: GatewayOptions,
    #[command(subcommand)]
    command: Option<CliCommand>,
}

#[derive(Subcommand)]
enum CliCommand {
    #[command(flatten)]
    Client(Box<ClientCommand>),
    /// Print a script that completes commands, profiles and ids in your shell.
    #[command(after_help = complete::EXAMPLES)]
    Completions { shell: Shell },
    #[cfg(feature = "gateway")]
    #[command(flatten)]
    Gateway(GatewayCommand),
}

/// All commands, as `--help` shows them.
pub fn command() -> Command {
    let clients = ClientCommand::augment_subcommands(Command::new("clients"));
    let clients = clients.get_subcommands().map(Command::get_name);
    help::arrange(Cli::command(), clients.chain(["completions"]))
}

/// Answers a shell that asks for completions, if this call does.
pub fn answer_shell() -> Option<std::io::Result<()>> {
    complete::answer(command)
}

impl Cli {
    /// Ends the program if the arguments make no sense.
    pub fn read() -> Self {
        let parsed = Self::from_arg_matches(&command().get_matches());
        parsed.unwrap_or_else(|error| error.format(&mut command()).exit())
    }

    /// Whether it is a command for one person, rather than a gateway that serves many.
    pub fn is_client(&self) -> bool {
        matches!(
            self.command,
            None | Some(CliCommand::Client(_) | CliCommand::Completions { .. })
        )
    }

    /// Whether an agent waits for it, and takes some exit statuses for permission.
    pub fn is_hook(&self) -> bool {
        match &self.command {
            Some(CliCommand::Client(command)) => matches!(**command, ClientCommand::Hook(_)),
            _ => false,
        }
    }
}

pub async fn run(cli: Cli) -> anyhow::Result<ExitAction> {
    let Some(chosen) = cli.command else {
        return next_steps::run(command()).await;
    };
    #[cfg(feature = "gateway")]
    let chosen = for_operator(chosen);
    match chosen {
        CliCommand::Client(command) => client::run(*command).await,
        CliCommand::Completions { shell } => {
            complete::script(shell)?;
            Ok(ExitAction::DONE)
        }
        #[cfg(feature = "gateway")]
        CliCommand::Gateway(command) => {
            Box::pin(gateway::run(cli.gateway, command)).await?;
            Ok(ExitAction::DONE)
        }
    }
}

/// `log restart` is beside `log check`, and needs the gateway's configuration.
#[cfg(feature = "gateway")]
fn for_operator(chosen: CliCommand) -> CliCommand {
    let CliCommand::Client(command) = chosen else {
        return chosen;
    };
    match *command {
        ClientCommand::Log(LogArgs {
            command: LogCommand::Restart { tenant },
        }) => CliCommand::Gateway(GatewayCommand::RestartLog { tenant }),
        command => CliCommand::Client(Box::new(command)),
    }
}
