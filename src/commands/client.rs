//! The commands of the clients, for one person or one agent. They read no configuration of a
//! gateway, only a profile.

use anyhow::Context as _;
use clap::Subcommand;
use countersign::client::visible;

use super::approver::{self, ApproverCommand, says_yes};
use super::client_options::ClientOptions;
use super::complete;
use super::doctor::{self, DoctorArgs};
use super::enforcer::{self, EnforcerCommand, PairArgs};
use super::exit_action::{DENIED, ExitAction};
use super::grants::{self, GrantsArgs};
use super::guard::{self, GuardArgs};
use super::hook::{self, HookArgs};
use super::install::{self, InstallArgs};
use super::log::{self, LogArgs, LogCommand};
use super::mcp::{self, McpArgs};
use super::output::{print_list, remark};
use super::policy::{self, PolicyArgs};
use super::receipt::{self, ReceiptArgs, ReceiptCommand};
use super::sets::{self, SetsArgs};
use super::waiting::{self, WaitingArgs};

#[derive(Subcommand)]
pub enum ClientCommand {
    #[command(flatten)]
    Enforcer(EnforcerCommand),
    #[command(flatten)]
    Approver(ApproverCommand),
    /// Answer an agent that is about to act; the agent's hook runs this.
    ///
    /// Reads the agent's call from standard input, asks an approver unless the policy allows the
    /// call, and answers in the agent's own format. Every error denies the call, with exit status 2.
    #[command(after_help = hook::EXAMPLES)]
    Hook(HookArgs),
    /// Ask for agents of another user, who can't change the profile or the policy.
    ///
    /// The guard holds the profile, the pairings, the grants and the policy. The other users' hooks,
    /// `run` and `mcp` reach it with --guard.
    #[command(after_help = guard::EXAMPLES, mut_arg("json", |option| option.hide(true)))]
    Guard(GuardArgs),
    /// Pair an agent's machine with an approver: start here, or answer a link or code.
    #[command(after_help = PAIR_EXAMPLES)]
    Pair(PairArgs),
    /// List pairings.
    Pairings {
        #[command(flatten)]
        options: ClientOptions,
    },
    /// End a pairing.
    Unpair {
        #[command(flatten)]
        options: ClientOptions,
        /// The other side's id; see `pairings`.
        #[arg(add = complete::pairings())]
        id: String,
        /// Don't ask first if others are paired with it too.
        #[arg(long)]
        yes: bool,
    },
    /// List the requests that programs of this user wait for on this machine, and decide them here.
    ///
    /// Hooks, `run`, `ask` and `mcp` say whom they wait for, and how long. With --decide, a person
    /// decides in this terminal, with the key of a device of their own; the first answer counts,
    /// wherever it is given.
    #[command(after_help = waiting::EXAMPLES)]
    Waiting(WaitingArgs),
    /// List standing permissions (grants); forget or end one.
    #[command(after_help = grants::EXAMPLES, args_conflicts_with_subcommands = true)]
    Grants(GrantsArgs),
    /// List or withdraw requests that stay open after their call, by a rule with `park`.
    #[command(after_help = sets::EXAMPLES, args_conflicts_with_subcommands = true)]
    Sets(SetsArgs),
    /// Check the gateway's log of decisions and outcomes.
    Log(LogArgs),
    /// Add proofs to a receipt.
    Receipt(ReceiptArgs),
    /// Choose which calls of agents need no approval, and try a call.
    ///
    /// Without a command, shows the policy. It is a file beside the profile, and applies to
    /// all of this user's agents.
    #[command(after_help = policy::EXAMPLES, args_conflicts_with_subcommands = true)]
    Policy(PolicyArgs),
    /// Give an agent tools to ask with: an MCP server on standard input and output.
    ///
    /// The tools are `request_approval`, `check_approval` and `withdraw_approval`. When the input
    /// ends, the server withdraws its open requests and exits.
    #[command(after_help = mcp::EXAMPLES, mut_arg("json", |option| option.hide(true)))]
    Mcp(McpArgs),
    /// Make an agent ask before it acts: adds a hook to the agent's configuration.
    ///
    /// Shows every change before making it, and leaves the rest of those files alone. Running it
    /// again changes nothing, unless something is missing or out of date.
    #[command(after_help = install::EXAMPLES)]
    Install(InstallArgs),
    /// Check that agents on this machine really ask.
    ///
    /// Checks profile, gateway, clock, pairing, devices and each agent's configuration. Then a
    /// canary: each agent's hook gets a call that nobody can approve, and must deny it.
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(DoctorArgs),
}

const PAIR_EXAMPLES: &str = "\
Examples:
  countersign pair                    on the agent's machine: print a link and wait
  countersign pair 'https://…'        in the approver's terminal: open that link
  countersign pair K7QM-2X9P          or type its short code, and compare the digits
  countersign pair 'https://…' --operator dave    and say that dave works with this agent";

pub async fn run(command: ClientCommand) -> anyhow::Result<ExitAction> {
    forbid_core_files()?;
    match command {
        ClientCommand::Enforcer(command) => enforcer::run(command).await,
        ClientCommand::Approver(command) => approver::run(command).await,
        ClientCommand::Hook(args) => Ok(hook::run(args).await),
        ClientCommand::Guard(args) => guard::run(args).await,
        ClientCommand::Pair(args) => match &args.answer {
            Some(answer) => {
                approver::pair(&args.options, answer, args.choice()?, args.team.as_deref()).await
            }
            None => enforcer::pair(args).await,
        },
        ClientCommand::Pairings { options } => pairings(&options),
        ClientCommand::Unpair { options, id, yes } => unpair(&options, &id, yes).await,
        ClientCommand::Waiting(args) => waiting::run(args).await,
        ClientCommand::Grants(args) => grants::run(args).await,
        ClientCommand::Sets(args) => sets::run(args).await,
        ClientCommand::Log(args) => match args.command {
            LogCommand::Check { options, accept } => log::check(&options, accept).await,
            LogCommand::Restart { .. } => anyhow::bail!("this program has no gateway"),
        },
        ClientCommand::Receipt(args) => {
            let ReceiptCommand::Prove { options, file } = args.command;
            receipt::prove(&options, &file).await
        }
        ClientCommand::Policy(args) => policy::run(args).await,
        ClientCommand::Mcp(args) => mcp::run(args).await,
        ClientCommand::Install(args) => install::run(args).await,
        ClientCommand::Doctor(args) => doctor::run(args).await,
    }
}

/// Keys are in memory: no core file is written, and no other process of this user may look. A
/// command that `run` becomes starts as usual.
fn forbid_core_files() -> anyhow::Result<()> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_dumpable(false).context("core files cannot be disabled")?;
    Ok(())
}

fn pairings(options: &ClientOptions) -> anyhow::Result<ExitAction> {
    let file = options.file()?;
    let profile = file.load()?;
    let mut pairings = Vec::new();
    if profile.enforcer.is_some() {
        pairings.extend(enforcer::pairings(&file)?);
    }
    if profile.approver.is_some() {
        pairings.extend(approver::pairings(&file)?);
    }
    if !options.json && pairings.is_empty() {
        remark("no pairings yet; start with: countersign pair");
    }
    print_list(options.json, &pairings, |pairing| pairing.line.clone())?;
    Ok(ExitAction::DONE)
}

async fn unpair(options: &ClientOptions, id: &str, yes: bool) -> anyhow::Result<ExitAction> {
    let file = options.file()?;
    let profile = file.load()?;
    if !yes
        && let Some(question) = approver::unpair_question(&file, id)?
        && !says_yes(&question).await?
    {
        return Ok(ExitAction::code(DENIED));
    }
    let ended = profile.enforcer.is_some() && enforcer::unpair(&file, id).await?;
    let ended = (profile.approver.is_some() && approver::unpair(&file, id).await?) || ended;
    if ended {
        remark(&format!("no longer paired with {}", visible(id)));
        return Ok(ExitAction::DONE);
    }
    remark(&format!(
        "not paired with {}; see: countersign pairings",
        visible(id)
    ));
    Ok(ExitAction::code(DENIED))
}
