//! `grants`: permissions beyond one request, as the enforcer keeps them and as the approver gave
//! them.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::approver;
use super::client_options::ClientOptions;
use super::complete;
use super::enforcer;
use super::exit_action::ExitAction;
use super::output::{print_list, remark};
use super::terminal::parse_duration;

pub const EXAMPLES: &str = "\
Examples:
  countersign grants
  countersign grants forget 5e0c71f2         on the agent's machine
  countersign grants forget --all
  countersign grants end 5e0c71f2            as the approver who gave it";

#[derive(Args)]
pub struct GrantsArgs {
    #[command(flatten)]
    options: ClientOptions,
    #[command(subcommand)]
    command: Option<GrantsCommand>,
}

#[derive(Subcommand)]
enum GrantsCommand {
    /// List the grants of this enforcer, or those that this approver gave here.
    List {
        #[command(flatten)]
        options: ClientOptions,
    },
    /// Forget a grant of this enforcer, or all of them; the agent then asks again.
    Forget {
        #[command(flatten)]
        options: ClientOptions,
        /// The grant's id, or a unique end or beginning of it.
        #[arg(required_unless_present = "all", conflicts_with = "all", add = complete::grants())]
        id: Option<String>,
        /// Every grant, even if their file is damaged.
        #[arg(long)]
        all: bool,
    },
    /// End a grant that this approver gave, at the enforcer that has it.
    ///
    /// Exit status: 0 sent or confirmed, 77 rejected, 75 not confirmed in time with --wait.
    End {
        #[command(flatten)]
        options: ClientOptions,
        /// The grant's id, or a unique end or beginning of it.
        id: String,
        /// The enforcer that has it, if the grant was given on another device.
        #[arg(long, value_name = "ID")]
        enforcer: Option<String>,
        /// Wait until the enforcer confirms it; 10m unless a time is given.
        #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "10m",
              value_parser = parse_duration)]
        wait: Option<Duration>,
    },
}

pub async fn run(args: GrantsArgs) -> anyhow::Result<ExitAction> {
    match &args.command {
        None => list(&args.options).await,
        Some(GrantsCommand::List { options }) => list(options).await,
        Some(GrantsCommand::Forget { options, id, .. }) => {
            enforcer::forget_grants(&options.file()?, id.as_deref())
        }
        Some(GrantsCommand::End {
            options,
            id,
            enforcer,
            wait,
        }) => approver::end_grant(options, id, enforcer.as_deref(), *wait).await,
    }
}

async fn list(options: &ClientOptions) -> anyhow::Result<ExitAction> {
    let file = options.file()?;
    let profile = file.load()?;
    let mut lines = Vec::new();
    let is_approver = profile.approver.is_some();
    if profile.enforcer.is_some() || !is_approver {
        lines.extend(enforcer::grants(&file)?);
    }
    if is_approver {
        lines.extend(approver::given_grants(options).await?);
    }
    if !options.json && lines.is_empty() {
        remark("there are no grants; every command needs approval");
    }
    print_list(options.json, &lines, |line| line.line.clone())?;
    Ok(ExitAction::DONE)
}
