//! The commands of the clients, for one person or one agent. They read no configuration of a
//! gateway, only a profile.

use anyhow::Context as _;
use clap::Subcommand;
use countersign::client::approver::KnownKey;
use countersign::client::visible;

use super::approver::{self, ApproverCommand};
use super::client_options::ClientOptions;
use super::doctor::{self, DoctorArgs};
use super::enforcer::{self, EnforcerCommand, PairArgs};
use super::exit_action::{DENIED, ExitAction};
use super::guard::{self, GuardArgs};
use super::hook::{self, HookArgs};
use super::install::{self, InstallArgs};
use super::mcp::{self, McpArgs};
use super::output::{print_list, remark};

#[derive(Subcommand)]
pub enum ClientCommand {
    #[command(flatten)]
    Enforcer(EnforcerCommand),
    #[command(flatten)]
    Approver(ApproverCommand),
    /// Answer an agent that is about to act: called by the agent's hook.
    ///
    /// It reads what the agent says from standard input, asks unless the policy says that nobody
    /// needs to be asked, and answers in the agent's own form. After every error the answer is no,
    /// with exit status 2.
    #[command(after_help = hook::EXAMPLES)]
    Hook(HookArgs),
    /// Ask on behalf of another user, who cannot change whom and what is asked.
    ///
    /// It has the profile, the pairings, the grants and the policy. Hooks, `run` and `mcp` of those
    /// users ask it with --guard.
    #[command(after_help = guard::EXAMPLES, mut_arg("json", |option| option.hide(true)))]
    Guard(GuardArgs),
    /// Pair an enforcer with an approver: begin it here, or answer one with its link or code.
    #[command(after_help = PAIR_EXAMPLES)]
    Pair(PairArgs),
    /// List whom this profile is paired with.
    Pairings {
        #[command(flatten)]
        options: ClientOptions,
    },
    /// End a pairing.
    Unpair {
        #[command(flatten)]
        options: ClientOptions,
        /// The other side's id, as `pairings` shows it.
        id: String,
    },
    /// Let an agent ask for approval by itself: a server of the Model Context Protocol (MCP) on
    /// standard input and output.
    ///
    /// Its tools are `request_approval`, `check_approval` and `withdraw_approval`. It ends with its
    /// input, and withdraws what waits then.
    #[command(after_help = mcp::EXAMPLES, mut_arg("json", |option| option.hide(true)))]
    Mcp(McpArgs),
    /// Make an agent ask before it acts, by editing the agent's own configuration.
    ///
    /// Shows every change before it is made, and keeps everything else in those files. A second
    /// time it changes nothing, unless something is missing or out of date.
    #[command(after_help = install::EXAMPLES)]
    Install(InstallArgs),
    /// Check that agents really ask here: profile, gateway, clock, pairing, devices, each agent's
    /// configuration.
    ///
    /// At the end a canary: the hook of each agent is given a call that nobody can approve, which
    /// it must deny.
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(DoctorArgs),
}

const PAIR_EXAMPLES: &str = "\
Examples:
  countersign pair                    on the agent's machine: prints a link and waits
  countersign pair 'https://…'        in the approver's terminal: answers it
  countersign pair K7QM-2X9P          the same with the short code; compare the digits";

pub async fn run(command: ClientCommand) -> anyhow::Result<ExitAction> {
    forbid_core_files()?;
    match command {
        ClientCommand::Enforcer(command) => enforcer::run(command).await,
        ClientCommand::Approver(command) => approver::run(command).await,
        ClientCommand::Hook(args) => Ok(hook::run(args).await),
        ClientCommand::Guard(args) => guard::run(args).await,
        ClientCommand::Pair(args) => match &args.answer {
            Some(answer) => {
                let known = if args.replace {
                    KnownKey::Replace
                } else {
                    KnownKey::Keep
                };
                approver::pair(&args.options, answer, known).await
            }
            None => enforcer::pair(args).await,
        },
        ClientCommand::Pairings { options } => pairings(&options),
        ClientCommand::Unpair { options, id } => unpair(&options, &id).await,
        ClientCommand::Mcp(args) => mcp::run(args).await,
        ClientCommand::Install(args) => install::run(args).await,
        ClientCommand::Doctor(args) => doctor::run(args).await,
    }
}

/// Keys are in memory: no core file is written, and no other process of this user may look. A
/// command that `run` becomes starts as usual.
fn forbid_core_files() -> anyhow::Result<()> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_dumpable(false).context("core files cannot be switched off")?;
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
        remark("paired with nobody; begin with: countersign pair");
    }
    print_list(options.json, &pairings, |pairing| pairing.line.clone())?;
    Ok(ExitAction::DONE)
}

async fn unpair(options: &ClientOptions, id: &str) -> anyhow::Result<ExitAction> {
    let file = options.file()?;
    let profile = file.load()?;
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
