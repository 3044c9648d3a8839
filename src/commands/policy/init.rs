//! `policy init`, and the same question after `install`.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use countersign::agent::{
    FoundProject, HookPolicy, PolicyKind, own_policy, with_preset, work_directories,
};
use countersign::client::ClientError;
use countersign::client::profile::ProfileFile;

use super::place::{here, policy_change, policy_path};
use crate::commands::exit_action::{ExitAction, FAILURE};
use crate::commands::install::show_change;
use crate::commands::output::remark;
use crate::commands::terminal::{ask, confirm};

pub const KINDS: &str = "\
project    passes: reading and editing in the project; its own build and test commands, found by
           looking at it; removal of build output
           asked: network, git push, installs, other removals, anything outside of the project
careful    passes: reading in the project; asked: every change
read-only  passes: reading in the project; denied: every change

With `project`, builds and tests run code that the agent may have edited and nobody has seen.";

pub async fn run(
    file: &ProfileFile,
    kind: Option<PolicyKind>,
    yes: bool,
) -> anyhow::Result<ExitAction> {
    let kind = match kind {
        Some(kind) => kind,
        None if std::io::stdin().is_terminal() => choose().await?,
        None => return Err(ClientError::Choice("say which: project, careful or read-only").into()),
    };
    let (change, is_in_project) = plan(file, kind)?;
    if !change.is_any() {
        remark(&format!("the policy is \"{kind}\" already"));
        return Ok(ExitAction::DONE);
    }
    show_change(&change)?;
    if !yes && !std::io::stdin().is_terminal() {
        return Err(ClientError::Choice("there is no terminal to ask on; add --yes").into());
    }
    if !yes && !confirm("Write this policy?").await? {
        remark("nothing was changed");
        return Ok(ExitAction::code(FAILURE));
    }
    change.write()?;
    say_next(kind, is_in_project);
    Ok(ExitAction::DONE)
}

/// Writes it without showing it first.
pub fn init_for(file: &ProfileFile, kind: PolicyKind) -> anyhow::Result<()> {
    let (change, _) = plan(file, kind)?;
    if change.is_any() {
        change.write()?;
    }
    Ok(())
}

/// After an agent was told to ask: how often it should. Nothing happens if there is a policy.
pub async fn offer(file: &ProfileFile, may_ask: bool) -> anyhow::Result<()> {
    if policy_path(file).exists() {
        return Ok(());
    }
    if !may_ask || !std::io::stdin().is_terminal() {
        remark("every change needs approval; for fewer questions: countersign policy init");
        return Ok(());
    }
    let kind = choose().await?;
    let (change, is_in_project) = plan(file, kind)?;
    change.write()?;
    remark(&format!("wrote {}", change.path.display()));
    say_next(kind, is_in_project);
    Ok(())
}

async fn choose() -> anyhow::Result<PolicyKind> {
    let mut table = "How often should agents ask?\n".to_owned();
    for kind in PolicyKind::ALL {
        let [passes, rest] = kind.summary();
        let _never = write!(
            table,
            "\n  {:<9}  passes: {passes}\n             {rest}\n",
            kind.as_str()
        );
    }
    remark(&table);
    loop {
        let answer = ask("project, careful or read-only? [project]").await?;
        if answer.is_empty() {
            return Ok(PolicyKind::Project);
        }
        match answer.parse() {
            Ok(kind) => return Ok(kind),
            Err(expected) => remark(&expected),
        }
    }
}

/// With whether the current directory is in a project.
fn plan(
    file: &ProfileFile,
    kind: PolicyKind,
) -> anyhow::Result<(countersign::agent::install::file::FileChange, bool)> {
    let before = own_policy(file).map_err(anyhow::Error::msg)?.text;
    let places = work_directories(&here()?, file).map_err(anyhow::Error::msg)?;
    let is_project = places.project.join(".git").exists() && places.named_project().is_some();
    let found = is_project.then(|| FoundProject::look_at(&places.project));
    let after = with_preset(before.as_deref(), kind, found.as_ref());
    let after = after.map_err(anyhow::Error::msg)?;
    // A policy that cannot be read denies everything.
    HookPolicy::parse(&after, &places).map_err(anyhow::Error::msg)?;
    Ok((policy_change(file, before, after), is_project))
}

fn say_next(kind: PolicyKind, is_in_project: bool) {
    if kind == PolicyKind::Project {
        remark(
            "builds and tests of the project now run code that the agent may have edited and nobody has seen",
        );
        if !is_in_project {
            remark(
                "this directory isn't in a repository; run it again in each project: countersign policy init project",
            );
        }
    }
    remark("try it: countersign policy try -- COMMAND");
}
