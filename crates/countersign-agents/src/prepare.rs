//! Judges a call before anyone is asked: whether anyone needs to be, and what they would see. It
//! reads files, so it runs beside the rest.

use countersign_client::enforcer::RuleDemand;
use countersign_client::profile::ProfileFile;

use crate::agent::Agent;
use crate::event::HookEvent;
use crate::files::{self, OwnPolicy};
use crate::places::WorkDirectories;
use crate::policy::{HookPolicy, JudgedPart, PolicyJudgement};
use crate::proposal::{BaseFile, ChangeProposal};

pub enum PreparedCall {
    /// Nobody needs to be asked.
    NotAsked,
    Ask(Box<PreparedRequest>),
}

pub struct PreparedRequest {
    pub proposal: ChangeProposal,
    pub may_be_granted: bool,
    /// The demands of the rules about it.
    pub rules: Vec<RuleDemand>,
    /// Something is wrong with a file that says what is to be asked.
    pub ask_all_reason: Option<String>,
    places: WorkDirectories,
    bases: Vec<BaseFile>,
}

/// A call, judged by the policy that holds where its agent works.
pub struct ExplainedCall {
    pub judgement: PolicyJudgement,
    pub parts: Vec<JudgedPart>,
    pub places: WorkDirectories,
    /// The demands of the rules about it, if it is asked.
    pub rules: Vec<RuleDemand>,
    policy: HookPolicy,
}

const NO_CALL: &str = "this is not a tool call";

/// An error is why the call is denied.
pub fn explain(
    agent: Agent,
    event: &HookEvent,
    file: &ProfileFile,
    own_policy: &OwnPolicy,
) -> Result<ExplainedCall, String> {
    let call = event.call().ok_or(NO_CALL)?;
    let directory = event.directory.as_deref().unwrap_or_default();
    let places = files::work_directories(directory, file)?;
    let policy = files::policy(&places, own_policy)?;
    let names = call.named_paths();
    let named = names.and_then(|names| files::named(&places, &names));
    let (judgement, parts) = policy.explain(agent, call, &places, named.as_deref());
    Ok(ExplainedCall {
        judgement,
        parts,
        rules: policy.demands(agent, call, named.as_deref()),
        places,
        policy,
    })
}

/// An error is why the call is denied.
pub fn prepare(
    agent: Agent,
    event: &HookEvent,
    file: &ProfileFile,
    own_policy: &OwnPolicy,
    every_call: bool,
) -> Result<PreparedCall, String> {
    let explained = explain(agent, event, file, own_policy)?;
    let ExplainedCall { places, policy, .. } = explained;
    let call = event.call().ok_or(NO_CALL)?;
    let directory = event.directory.as_deref().unwrap_or_default();
    let may_be_granted = match explained.judgement {
        PolicyJudgement::NotAsked if !every_call => return Ok(PreparedCall::NotAsked),
        PolicyJudgement::Denied(reason) => return Err(reason),
        PolicyJudgement::AlwaysAsked => false,
        PolicyJudgement::NotAsked | PolicyJudgement::Asked => explained.rules.is_empty(),
    };
    let bases = files::bases(&places, &call.changed_files()?)?;
    let mut proposal = call.propose(agent, directory, &bases)?;
    // Edits may be permitted beyond this one, within a project that is named and shown. Without it
    // no grant covers them.
    if may_be_granted
        && call.action.class() == "edit"
        && let Some(project) = places.named_project()
    {
        (proposal.payload).insert("project".to_owned(), project.into());
    }
    Ok(PreparedCall::Ask(Box::new(PreparedRequest {
        proposal,
        may_be_granted,
        rules: explained.rules,
        ask_all_reason: policy.ask_all_reason().map(str::to_owned),
        places,
        bases,
    })))
}

impl PreparedRequest {
    /// Whether every file is still what the approver was shown a change of.
    pub fn still_holds(&self) -> Result<(), String> {
        let names: Vec<_> = self.bases.iter().map(|base| base.given.as_str()).collect();
        let now = files::bases(&self.places, &names)?;
        match self.bases.iter().zip(&now).find(|(then, now)| then != now) {
            Some((base, _)) => Err(format!(
                "{} changed after the approver saw the edit, so the result would differ from what was approved; read it and try again",
                base.given
            )),
            None => Ok(()),
        }
    }
}
