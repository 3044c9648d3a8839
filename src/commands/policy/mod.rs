//! `policy`: which calls of agents pass without a person. It is written for the user, tried, and
//! extended by commands that people approved before.

mod attempt;
mod init;
mod learn;
mod place;

use clap::{Args, Subcommand};
use countersign::agent::PolicyKind;
use countersign::agent::own_policy;
use countersign::client::visible_lines;
use serde_json::json;

use self::attempt::TryArgs;
pub use self::init::{init_for, offer};
use self::place::policy_path;
use super::client_options::ClientOptions;
use super::exit_action::ExitAction;
use super::output::{print_json, print_line, remark};

pub const EXAMPLES: &str = "\
Examples:
  countersign policy init                        choose one of three policies
  countersign policy init project                let agents edit, build and test this project
  countersign policy try 'cargo test | head'     would it be asked, and why?
  countersign policy learn                       add commands that you keep approving";

#[derive(Args)]
pub struct PolicyArgs {
    #[command(flatten)]
    options: ClientOptions,
    #[command(subcommand)]
    command: Option<PolicyCommand>,
}

#[derive(Subcommand)]
enum PolicyCommand {
    /// Write a policy: project, careful or read-only.
    ///
    /// Shows the change first. The rest of an earlier policy stays as it is. `project` is for the
    /// project in the current directory: run it in each one.
    #[command(after_help = init::KINDS)]
    Init {
        #[command(flatten)]
        options: ClientOptions,
        /// project, careful or read-only; asked for if left out.
        kind: Option<PolicyKind>,
        /// Don't ask before writing the file.
        #[arg(long, short)]
        yes: bool,
    },
    /// Say what would happen to a command of an agent in this directory, and why.
    Try(TryArgs),
    /// Propose commands for the policy that people approved before, one by one.
    ///
    /// Only commands of this project that the policy could allow exactly as they are. Commands that
    /// push, publish, install or remove are never proposed.
    Learn {
        #[command(flatten)]
        options: ClientOptions,
        /// Add all of them without asking.
        #[arg(long, short)]
        yes: bool,
    },
}

pub async fn run(args: PolicyArgs) -> anyhow::Result<ExitAction> {
    match args.command {
        None => show(&args.options),
        Some(PolicyCommand::Init { options, kind, yes }) => {
            init::run(&options.file()?, kind, yes).await
        }
        Some(PolicyCommand::Try(args)) => attempt::run(&args),
        Some(PolicyCommand::Learn { options, yes }) => {
            learn::run(&options.file()?, yes, options.json).await
        }
    }
}

fn show(options: &ClientOptions) -> anyhow::Result<ExitAction> {
    let file = options.file()?;
    let policy = own_policy(&file).map_err(anyhow::Error::msg)?;
    let path = policy_path(&file);
    if options.json {
        print_json(&json!({ "path": path, "text": policy.text }))?;
    } else if let Some(text) = &policy.text {
        remark(&format!("{}:", path.display()));
        print_line(visible_lines(text).trim_end())?;
    } else {
        remark(
            "there is no policy: reads inside the project need no approval; everything else does",
        );
        remark("choose one: countersign policy init");
    }
    Ok(ExitAction::DONE)
}
