//! `countersign install`: makes an agent call our hook before it acts, by editing the agent's own configuration. Everything else
//! in those files stays as it is.

mod claude;
pub mod codex;
pub mod codex_managed;
mod copilot;
mod cursor;
pub mod file;
mod gemini;
mod guard;
pub mod hooks;
pub mod opencode;
pub mod place;
pub mod shell;
mod show;
mod warnings;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use countersign::agent::Agent;
use countersign::agent::edit::EditError;
use countersign::agent::edit::json::{Document, Left};
use countersign::client::ClientError;
use countersign::client::visible_lines;
use serde_json::Value;

use self::file::FileChange;
use self::guard::GuardSetup;
use self::hooks::HookEntry;
use self::place::{InstallPlaces, InstallScope};
use self::shell::{HookInvocation, TimeoutCommand};
use self::show::{report, show};
use self::warnings::warnings;
use super::ending::{ExitAction, FAILURE, MALFORMED, USAGE};
use super::guard::GuardAddress;
use super::remark;
use super::terminal::confirm;

pub const EXAMPLES: &str = "\
Examples:
  countersign install claude                     for this user, in every project
  countersign install codex --dry-run            only show what would change
  countersign install gemini --every-call        also ask about what the policy lets pass
  sudo countersign install claude --managed      for everybody on this machine; projects cannot switch it off
  countersign install claude --remove            take it out again
  sudo countersign install claude --managed --guard-for dave
                                                 and have another user ask for dave's agents
Afterwards: countersign doctor claude";

#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "options of a command line")]
pub struct InstallArgs {
    /// The agent: claude, codex, copilot, gemini, opencode or cursor.
    agent: Agent,
    /// For this user, in every project. This is the default.
    #[arg(long, group = "scope")]
    user: bool,
    /// For the project in the current directory.
    #[arg(long, group = "scope")]
    project: bool,
    /// For everybody on this machine, so that projects cannot switch it off. Needs root.
    #[arg(long, group = "scope")]
    managed: bool,
    /// Ask about every call, also what the policy would let pass.
    #[arg(long, conflicts_with = "remove")]
    every_call: bool,
    /// Take out what was installed.
    #[arg(long)]
    remove: bool,
    /// Do not ask before files are written.
    #[arg(long, short)]
    yes: bool,
    /// Only show what would change.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON, for programs.
    #[arg(long)]
    json: bool,
    /// The profile that the hook uses; otherwise it follows `COUNTERSIGN_PROFILE`, or uses `default`.
    #[arg(long, value_name = "NAME", conflicts_with = "remove")]
    profile: Option<String>,
    /// The guard that the hook asks through: the user that it runs as, and its socket. See `countersign guard`.
    #[arg(long, value_name = "USER:SOCKET", conflicts_with_all = ["remove", "profile"])]
    guard: Option<GuardAddress>,
    /// Set up a guard for the agents of this user, and have the hook ask through it. Needs root and systemd.
    #[arg(long, value_name = "NAME", requires = "managed", conflicts_with_all = ["remove", "profile", "guard"])]
    guard_for: Option<String>,
    /// Where the files of the system are.
    #[arg(long, value_name = "DIR", hide = true)]
    system_root: Option<PathBuf>,
}

/// What is to be done for an agent.
pub struct InstallRequest {
    hook: HookInvocation,
    scope: InstallScope,
    remove: bool,
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct InstallRefusal {
    code: u8,
    message: String,
}

/// A member that must be there besides the hooks.
pub struct RequiredSetting {
    path: &'static [&'static str],
    name: &'static str,
    value: SettingNeed,
}

pub enum SettingNeed {
    True,
    /// Only if it is missing.
    One,
}

/// The version of the format.
const VERSION_1: [RequiredSetting; 1] = [RequiredSetting {
    path: &[],
    name: "version",
    value: SettingNeed::One,
}];

pub async fn run(args: InstallArgs) -> anyhow::Result<ExitAction> {
    match carry_out(&args).await {
        Ok(ending) => Ok(ending),
        Err(error) => match error.downcast_ref::<InstallRefusal>() {
            Some(refused) => {
                remark(&format!("countersign: {}", visible_lines(&refused.message)));
                Ok(ExitAction::code(refused.code))
            }
            None => Err(error),
        },
    }
}

async fn carry_out(args: &InstallArgs) -> anyhow::Result<ExitAction> {
    let places = InstallPlaces::here(args.system_root.as_deref())?;
    let program = std::env::current_exe().and_then(|path| path.canonicalize());
    let program = program.context("the path of this program")?;
    let setup = match &args.guard_for {
        Some(user) => Some(GuardSetup::plan(user, &program, places.system_root())?),
        None => None,
    };
    let address = setup.as_ref().map(|setup| setup.address.clone());
    let request = InstallRequest {
        hook: HookInvocation {
            agent: args.agent,
            program: setup
                .as_ref()
                .map_or(program, |setup| setup.program.clone()),
            profile: args.profile.clone(),
            guard: address.or_else(|| args.guard.clone()),
            every_call: args.every_call,
            limiter: TimeoutCommand::find(),
        },
        scope: match (args.project, args.managed) {
            (true, _) => InstallScope::Project,
            (_, true) => InstallScope::Managed,
            _ => InstallScope::User,
        },
        remove: args.remove,
    };
    let mut hook_changes = plan(&request, &places)?;
    hook_changes.retain(FileChange::is_any);
    let commands: Vec<_> = setup.iter().flat_map(GuardSetup::commands).collect();
    let mut warnings = if args.remove {
        Vec::new()
    } else {
        warnings(&request)?
    };
    if let Some(setup) = setup.as_ref().filter(|_| args.json) {
        warnings.push(setup.next_steps());
    }
    let unit = setup.iter().map(|setup| setup.unit.clone());
    let changes: Vec<_> = unit
        .filter(FileChange::is_any)
        .chain(hook_changes.iter().cloned())
        .collect();
    if !args.json {
        show(args, &changes, &commands, &warnings)?;
    }
    if (changes.is_empty() && setup.is_none()) || args.dry_run {
        if args.json {
            report(args, &changes, &commands, &warnings, false)?;
        }
        return Ok(ExitAction::DONE);
    }
    if args.json && !args.yes {
        let expected = "--json shows nothing to agree to; add --yes or --dry-run";
        return Err(ClientError::Choice(expected).into());
    }
    if !args.yes && !agreed().await? {
        remark("nothing was changed");
        return Ok(ExitAction::code(FAILURE));
    }
    if let Some(setup) = &setup {
        setup.carry_out()?;
    }
    // Last: the hook denies every call until the guard runs.
    for change in &hook_changes {
        change.write()?;
    }
    if args.json {
        report(args, &changes, &commands, &warnings, true)?;
    } else {
        remark(&done(&request));
        if let Some(setup) = &setup {
            remark(&setup.next_steps());
        }
    }
    Ok(ExitAction::DONE)
}

fn plan(
    request: &InstallRequest,
    places: &InstallPlaces,
) -> Result<Vec<FileChange>, InstallRefusal> {
    match request.hook.agent {
        Agent::Claude => claude::plan(request, places),
        Agent::Codex => codex::plan(request, places),
        Agent::Copilot => copilot::plan(request, places),
        Agent::Gemini => gemini::plan(request, places),
        Agent::Opencode => opencode::plan(request, places),
        Agent::Cursor => cursor::plan(request, places),
    }
}

/// A JSON file with our entries and settings in it, or without them.
fn edited(
    request: &InstallRequest,
    path: PathBuf,
    entries: &[HookEntry],
    settings: &[RequiredSetting],
) -> Result<FileChange, InstallRefusal> {
    let before = file::read(&path)?;
    let agent = request.hook.agent;
    let edit = || {
        let mut document = Document::parse(before.as_deref().unwrap_or_default())?;
        let mut left = Left::Something;
        if request.remove {
            if hooks::find(agent, &document.value()?).is_empty() {
                return Ok(before.clone());
            }
            left = hooks::remove(&mut document, agent)?;
            for setting in settings {
                if left == Left::Something {
                    let value = setting.value.value();
                    left = hooks::unset(&mut document, setting.path, setting.name, &value)?;
                }
            }
        } else {
            for setting in settings {
                let value = setting.value.value();
                let found = document.value()?.get(setting.name).is_some();
                if !(found && matches!(setting.value, SettingNeed::One)) {
                    hooks::set(&mut document, setting.path, setting.name, &value)?;
                }
            }
            hooks::install(&mut document, agent, entries)?;
        }
        Ok((left == Left::Something).then(|| document.text()))
    };
    let after = edit().map_err(|error: EditError| InstallRefusal {
        code: MALFORMED,
        message: format!("{}, {error}; nothing was changed", path.display()),
    })?;
    Ok(FileChange {
        path,
        before,
        after,
        public: request.scope == InstallScope::Managed,
    })
}

impl SettingNeed {
    fn value(&self) -> Value {
        match self {
            Self::True => true.into(),
            Self::One => 1.into(),
        }
    }
}

fn malformed_toml(path: &Path, text: &str, error: &toml_edit::TomlError) -> InstallRefusal {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    InstallRefusal {
        code: MALFORMED,
        message: format!(
            "{}, line {line}: {}; nothing was changed",
            path.display(),
            error.message()
        ),
    }
}

/// Asks the person, where there is one.
async fn agreed() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        let message =
            "there is no terminal to ask on; look at it with --dry-run, then agree with --yes";
        return Err(anyhow::Error::new(InstallRefusal {
            code: USAGE,
            message: message.to_owned(),
        }));
    }
    confirm("Write this?").await
}

fn done(request: &InstallRequest) -> String {
    let agent = request.hook.agent;
    let title = agent.title();
    if request.remove {
        return format!("{title} does not ask any more, from its next start");
    }
    format!(
        "{title} asks before it acts, from its next start; check it with: countersign doctor {agent}"
    )
}
