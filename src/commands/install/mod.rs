//! `countersign install`: makes an agent call our hook before it acts, by editing the agent's own
//! configuration. Everything else in those files stays as it is.

mod args;
mod guard;
mod show;
mod warnings;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use countersign::agent::install::file::{FileChange, InstallRefusal};
use countersign::agent::install::hooks::InstallRequest;
use countersign::agent::install::places::{InstallPlaces, InstallScope, variable};
use countersign::agent::install::shell::{HookInvocation, TimeoutCommand};
use countersign::client::ClientError;
use countersign::client::profile::ProfileFile;
use countersign::client::visible_lines;

pub use self::args::InstallArgs;
use self::guard::GuardSetup;
use self::show::InstallPlan;
pub use self::show::show_change;
use self::warnings::warnings;
use super::exit_action::{ExitAction, FAILURE, MALFORMED, USAGE};
use super::output::remark;
use super::policy;
use super::terminal::confirm;

pub const EXAMPLES: &str = "\
Examples:
  countersign install claude                     for this user, in every project
  countersign install codex --dry-run            only show what would change
  countersign install gemini --every-call        ask even about calls that the policy allows
  sudo countersign install claude --managed      for all users; projects can't switch it off
  countersign install claude --remove            remove it again
  sudo countersign install claude --managed --guard-for dave
                                                 with a guard for dave's agents
Then check it: countersign doctor claude";

pub async fn run(args: InstallArgs) -> anyhow::Result<ExitAction> {
    match carry_out(&args).await {
        Ok(ending) => Ok(ending),
        Err(error) => {
            let refusal: InstallRefusal = error.downcast()?;
            remark(&format!(
                "countersign: {}",
                visible_lines(&refusal.to_string())
            ));
            Ok(ExitAction::code(match refusal {
                InstallRefusal::Malformed(_) => MALFORMED,
                InstallRefusal::Usage(_) => USAGE,
                InstallRefusal::Failed(_) => FAILURE,
            }))
        }
    }
}

async fn carry_out(args: &InstallArgs) -> anyhow::Result<ExitAction> {
    let places = install_places(args.system_root.as_deref())?;
    let program = std::env::current_exe().and_then(|path| path.canonicalize());
    let program = program.context("the path of this program")?;
    let setup = match &args.guard_for {
        Some(user) => Some(GuardSetup::plan(user, &program, &places.system)?),
        None => None,
    };
    let request = request(args, program, setup.as_ref());
    let mut hook_changes = (args.agent.definition().plan)(&request, &places)?;
    hook_changes.retain(FileChange::is_any);
    let unit = setup.iter().map(|setup| setup.unit.clone());
    let mut plan = InstallPlan {
        changes: (unit.filter(FileChange::is_any))
            .chain(hook_changes.iter().cloned())
            .collect(),
        commands: setup.iter().flat_map(GuardSetup::commands).collect(),
        warnings: warnings(args.agent, &request)?,
    };
    if let Some(setup) = setup.as_ref().filter(|_| args.json) {
        plan.warnings.push(setup.next_steps());
    }
    if !args.json {
        plan.show(args)?;
    }
    if (plan.changes.is_empty() && setup.is_none()) || args.dry_run {
        if args.json {
            plan.report(args, false)?;
        }
        return Ok(ExitAction::DONE);
    }
    if args.json && !args.yes {
        let expected = "--json can't ask; add --yes or --dry-run";
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
    if let Some(kind) = args.policy.filter(|_| !args.remove) {
        policy::init_for(&profile_file(args)?, kind)?;
    }
    if args.json {
        plan.report(args, true)?;
    } else {
        remark(&done(args));
        // The guard has a policy of its own.
        if !args.remove && args.policy.is_none() && request.hook.guard.is_none() {
            policy::offer(&profile_file(args)?, !args.yes).await?;
        }
        if let Some(setup) = &setup {
            remark(&setup.next_steps());
        }
    }
    Ok(ExitAction::DONE)
}

/// `system` is the root of the system's files, in tests another one.
pub fn install_places(system: Option<&Path>) -> anyhow::Result<InstallPlaces> {
    let home = variable("HOME").context("HOME is not set, so the agents' files cannot be found")?;
    Ok(InstallPlaces {
        home,
        system: system.unwrap_or(Path::new("/")).to_owned(),
        directory: std::env::current_dir().context("the current directory")?,
    })
}

fn request(args: &InstallArgs, program: PathBuf, setup: Option<&GuardSetup>) -> InstallRequest {
    let guard = setup.map(|setup| &setup.address).or(args.guard.as_ref());
    InstallRequest {
        hook: HookInvocation {
            agent: args.agent.as_str(),
            program: setup.map_or(program, |setup| setup.program.clone()),
            profile: args.profile.clone(),
            guard: guard.map(ToString::to_string),
            every_call: args.every_call,
            limiter: TimeoutCommand::find(),
        },
        scope: match (args.project, args.managed) {
            (true, _) => InstallScope::Project,
            (_, true) => InstallScope::Managed,
            _ => InstallScope::User,
        },
        remove: args.remove,
    }
}

fn profile_file(args: &InstallArgs) -> anyhow::Result<ProfileFile> {
    let name = args.profile.clone();
    let name = name.or_else(|| std::env::var("COUNTERSIGN_PROFILE").ok());
    Ok(ProfileFile::named(name.as_deref().unwrap_or("default"))?)
}

/// Asks the person, where there is one.
async fn agreed() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        let message =
            "there is no terminal to ask on; check the changes with --dry-run, then add --yes";
        return Err(InstallRefusal::Usage(message.to_owned()).into());
    }
    confirm("Make these changes?").await
}

fn done(args: &InstallArgs) -> String {
    let (agent, title) = (args.agent, args.agent.title());
    if args.remove {
        return format!("{title} no longer asks, from its next start on");
    }
    format!(
        "{title} asks before it acts, from its next start on; check it: countersign doctor {agent}\n\
         While it waits, another terminal shows who is asked, and how long: countersign waiting --watch"
    )
}
