//! Decisions beside the agent, by a person with a device of their own.

use countersign::client::ClientError;
use countersign::client::approver::{Approver, ApproverChoice, InboxRequest};
use countersign::client::profile::ProfileFile;
use countersign::e2e::{ArtifactHints, DecisionScope};
use countersign::protocol::decision::Verdict;

use super::input::is_interactive;
use super::passphrase;
use super::questions::{ask_answers, asks_questions};
use super::view::render;
use crate::commands::log::remark_problems;
use crate::commands::output::{print_line, remark};
use crate::commands::terminal::{ask_next, output_has_colour};

/// Opens an approver's profile whose keys are encrypted. The agent runs as the same user, and could
/// read any others.
pub fn open_sealed(file: &ProfileFile) -> anyhow::Result<Approver> {
    let profile = file.load()?;
    let Some(approver) = &profile.approver else {
        let problem = "this profile has no approver; name yours with --profile. An enforcer's key decides nothing";
        return Err(ClientError::Choice(problem).into());
    };
    if approver.sealed_keys().is_none() {
        let problem = "the keys in this profile are not encrypted, so an agent of this user could use them; run: countersign passphrase";
        return Err(ClientError::Choice(problem).into());
    }
    if !is_interactive() {
        return Err(ClientError::Choice("there is no terminal to ask on").into());
    }
    passphrase::open(file)
}

/// Shows a request and asks what to do about it. Returns whether it was decided here. If somebody
/// else was first, that answer counts.
pub async fn decide_here(approver: &Approver, item: &InboxRequest) -> anyhow::Result<bool> {
    print_line(&format!(
        "{}\n",
        render(item, approver, output_has_colour())
    ))?;
    let mut hints = ArtifactHints::default();
    let verdict = match &item.content {
        Ok(opened) if asks_questions(opened.artifact()) => {
            hints.answers = ask_answers(opened.artifact()).await?;
            hints.answers.is_some().then_some(Verdict::Approve)
        }
        Ok(_) => match ask_next("Approve, reject, or leave it? [a/r/N]")
            .await?
            .as_str()
        {
            "a" | "approve" => Some(Verdict::Approve),
            "r" | "reject" => Some(Verdict::Reject),
            _ => None,
        },
        Err(_) => match ask_next("Reject it? [r/N]").await?.as_str() {
            "r" | "reject" => Some(Verdict::Reject),
            _ => None,
        },
    };
    let Some(verdict) = verdict else {
        remark("left as it is");
        return Ok(false);
    };
    let choice = ApproverChoice {
        verdict,
        scope: DecisionScope::Once,
        lasts: None,
        hints,
    };
    match approver.decide(item, &choice).await {
        Ok(_) => remark(match verdict {
            Verdict::Approve => "approved",
            Verdict::Reject => "rejected",
        }),
        Err(error @ (ClientError::AlreadyDecided | ClientError::GoneAfterSigning)) => {
            remark(&error.to_string());
            return Ok(false);
        }
        Err(error) => return Err(error.into()),
    }
    remark_problems(approver, item).await;
    Ok(true)
}
