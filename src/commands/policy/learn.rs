//! `policy learn`: commands that people approved before, proposed for the policy one by one.

use std::io::IsTerminal as _;

use countersign::agent::{
    ExplainedCall, PolicyJudgement, bound_digests, own_policy, with_commands, work_directories,
};
use countersign::client::enforcer::{ApprovedCommand, approved_commands};
use countersign::client::profile::ProfileFile;
use countersign::client::visible;
use serde_json::json;

use super::attempt::explain_here;
use super::place::{here, policy_change};
use crate::commands::exit_action::{ExitAction, FAILURE};
use crate::commands::output::{print_json, print_line, remark, times};
use crate::commands::terminal::confirm;

/// Words of commands that a person decides about each time: they publish, install, remove, or
/// reach other machines.
const NOT_PROPOSED: &str = "
    add apply checkout clean clone deploy destroy fetch install login publish pull push release
    remove reset restore rm rmdir scp shred uninstall unlink update upgrade
";

struct PolicyProposal {
    /// The parts of the command that nothing allows yet.
    entries: Vec<String>,
    approved: ApprovedCommand,
}

pub async fn run(file: &ProfileFile, yes: bool, is_json: bool) -> anyhow::Result<ExitAction> {
    let proposals = proposals(file)?;
    if is_json {
        let listed = proposals
            .iter()
            .map(|it| json!({ "commands": it.entries, "approved": it.approved.count }));
        let listed: Vec<_> = listed.collect();
        print_json(&json!({ "proposals": listed }))?;
        if !yes {
            return Ok(ExitAction::DONE);
        }
    }
    if proposals.is_empty() {
        if !is_json {
            remark(
                "nothing to add: no command was approved here that the policy could allow as it is",
            );
        }
        return Ok(ExitAction::DONE);
    }
    let is_terminal = std::io::stdin().is_terminal();
    let mut added = 0;
    for proposal in proposals {
        let entries = proposal
            .entries
            .iter()
            .map(|it| format!("`{}`", visible(it)));
        let entries = entries.collect::<Vec<_>>().join(" and ");
        if !is_json {
            print_line(&format!(
                "{entries}, approved {}",
                times(proposal.approved.count)
            ))?;
        }
        if yes || (is_terminal && confirm("Allow it without asking from now on?").await?) {
            add(file, &proposal)?;
            added += 1;
        }
    }
    if added > 0 && !is_json {
        remark(&format!("added {added}; the policy: countersign policy"));
    } else if !yes && !is_terminal {
        remark("nothing was changed; add them in a terminal, or with --yes");
        return Ok(ExitAction::code(FAILURE));
    }
    Ok(ExitAction::DONE)
}

fn add(file: &ProfileFile, proposal: &PolicyProposal) -> anyhow::Result<()> {
    let before = own_policy(file).map_err(anyhow::Error::msg)?.text;
    let places = work_directories(&here()?, file).map_err(anyhow::Error::msg)?;
    let digests = bound_digests(&places.project);
    let after = with_commands(
        before.as_deref(),
        &places.project,
        &proposal.entries,
        &digests,
    );
    let after = after.map_err(anyhow::Error::msg)?;
    Ok(policy_change(file, before, after).write()?)
}

/// The most often approved first.
fn proposals(file: &ProfileFile) -> anyhow::Result<Vec<PolicyProposal>> {
    let places = work_directories(&here()?, file).map_err(anyhow::Error::msg)?;
    let mut approved = approved_commands(file)?;
    approved.reverse();
    approved.sort_by_key(|it| std::cmp::Reverse(it.count));
    let mut proposals: Vec<PolicyProposal> = Vec::new();
    for approved in approved {
        let input = json!({ "command": approved.command });
        // A directory may be gone since.
        let Ok(call) = explain_here(file, &approved.directory, "Bash", &input) else {
            continue;
        };
        if call.places.project != places.project {
            continue;
        }
        if let Some(entries) = entries(&call)
            && !proposals.iter().any(|it| it.entries == entries)
        {
            proposals.push(PolicyProposal { entries, approved });
        }
    }
    Ok(proposals)
}

/// The parts that could be allowed as they are, if that would be enough.
fn entries(call: &ExplainedCall) -> Option<Vec<String>> {
    (call.judgement == PolicyJudgement::Asked).then_some(())?;
    let stopped = call.parts.iter().filter(|part| !part.is_free);
    let entries: Vec<String> = stopped
        .map(|part| part.entry.clone())
        .collect::<Option<_>>()?;
    let is_far = |entry: &String| entry.split([' ', ':', '-']).any(is_not_proposed);
    (!entries.is_empty() && !entries.iter().any(is_far)).then_some(entries)
}

fn is_not_proposed(word: &str) -> bool {
    let mut words = NOT_PROPOSED.split_ascii_whitespace();
    words.any(|listed| listed == word)
}
