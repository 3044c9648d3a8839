//! Answers one request, by a grant or by a person: for a hook with a profile of its own, and for a
//! guard on behalf of another user.

use std::time::Duration;

use countersign::agent::receipt_folder;
use countersign::client::enforcer::{
    ApprovalRequest, Enforcer, GrantSubject, PendingSet, RuleDemand,
};
use countersign::client::profile::ProfileFile;
use countersign::client::visible;
use countersign::clock::Clock;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::message::{AskCall, AskOutcome, AskReply};
use crate::commands::grant_text::{describe, subject_of};
use crate::commands::hook::report::{WaitingNotice, session_of};

/// If no grant is found in this time, a person is asked.
const GRANT_TIMEOUT: Duration = Duration::from_secs(10);
/// A decision that came in time is still judged.
const JUDGE_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REQUEST_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
pub const INTERRUPTED: &str = "interrupted before anyone decided";

/// Called once the gateway has the request: with its id, the approvers who are asked, and the
/// seconds left. With several people, called again after each decision, with what is still needed.
pub type AskedReport<'r> = &'r mut (dyn FnMut(&str, Vec<String>, u64) + Send);

/// Answers a request. Only an accepted approval or a grant allows. `stop` denies, and withdraws the
/// request.
pub async fn answer(
    file: &ProfileFile,
    mut call: AskCall,
    stop: &CancellationToken,
    asked: AskedReport<'_>,
    still_holds: impl AsyncFnOnce() -> Result<(), String>,
) -> AskReply {
    let time = Duration::from_millis(call.timeout_ms).min(MAX_REQUEST_LIFETIME);
    let until = Instant::now() + time;
    let opened = Enforcer::open(file, &Clock::system()).map_err(|error| error.to_string());
    let opened = opened.and_then(|mut enforcer| {
        enforcer.keep_receipts(receipt_folder(file)?);
        Ok(enforcer)
    });
    let mut enforcer = match opened {
        Ok(enforcer) => enforcer,
        Err(problem) => return AskReply::denied("error", problem),
    };
    RuleDemand::add_approver(&mut call.rules, &mut call.approver);
    let park = RuleDemand::park_time(&call.rules);
    let terms = match enforcer.terms_of(&call.rules) {
        Ok(terms) => terms,
        Err(error) => return AskReply::denied("error", error.to_string()),
    };
    // An approval of before, by one person, does not stand in for those of a rule.
    call.may_be_granted &= terms.is_none();
    let session = (call.session.as_ref()).and_then(|session| session_of(&enforcer, session));
    let interrupted = || AskReply::denied("interrupted", INTERRUPTED);
    let granted = tokio::select! {
        granted = granted(&mut enforcer, &call, session.as_ref(), until) => granted,
        () = stop.cancelled() => return interrupted(),
    };
    if let Some(reply) = granted {
        return reply;
    }
    let waiting = call
        .session
        .map(|it| WaitingNotice::begin(it, file.clone()));
    let mut members = call.members;
    if let Some(session) = &session {
        members.insert("sessionId".to_owned(), session.as_str().into());
    }
    let left = until.saturating_duration_since(Instant::now());
    let request = ApprovalRequest {
        artifact_type: call.artifact_type,
        repository: call.repository,
        payload: call.payload,
        members,
        approver: call.approver,
        timeout: left,
        submit_timeout: left.min(Duration::from_millis(call.submit_timeout_ms)),
    };
    let may_keep = call.may_keep;
    let deadline = until + JUDGE_TIMEOUT;
    let mut reply = if let Some(terms) = terms {
        let prepared = tokio::select! {
            prepared = enforcer.open_set(request, terms, park) => prepared,
            () = stop.cancelled() => return interrupted(),
        };
        match prepared {
            Ok(pending) => decide_set(pending, deadline, stop, asked, still_holds).await,
            Err(denial) => AskReply::of_denial(None, &denial),
        }
    } else {
        let deciding = decide(
            &mut enforcer,
            request,
            may_keep,
            deadline,
            stop,
            asked,
            still_holds,
        );
        deciding.await
    };
    reply.remark = enforcer.take_receipt_problem();
    let Some(waiting) = waiting else {
        return reply;
    };
    let cause = match &reply.outcome {
        AskOutcome::Denied { cause, .. } => cause.as_str(),
        AskOutcome::Approved { .. } => "",
    };
    // A person has decided, also if the files have changed since.
    if reply.approver.is_some() || cause == "changed" {
        reply.context = waiting.answered().await;
    } else {
        // After an interruption nobody waits for the answer.
        waiting.not_answered(cause == "interrupted").await;
    }
    reply
}

/// The reply of a grant. `None` if no grant permits it, or if that cannot be found out.
async fn granted(
    enforcer: &mut Enforcer,
    call: &AskCall,
    session: Option<&countersign::protocol::id::SessionId>,
    until: Instant,
) -> Option<AskReply> {
    let act = GrantSubject::of(&call.payload, &call.repository).filter(|_| call.may_be_granted)?;
    let deadline = until.min(Instant::now() + GRANT_TIMEOUT);
    let only = call.approver.as_deref();
    let used = enforcer.granted_by(only, &act, session, deadline).await;
    let used = used.ok()??;
    Some(AskReply {
        request_id: Some(used.request_id),
        approver: Some(visible(used.approver.as_str())),
        ..AskReply::new(AskOutcome::Approved {
            until: Some(used.grant.until.to_string()),
            kept: None,
        })
    })
}

async fn decide(
    enforcer: &mut Enforcer,
    request: ApprovalRequest,
    may_keep: bool,
    deadline: Instant,
    stop: &CancellationToken,
    asked: AskedReport<'_>,
    still_holds: impl AsyncFnOnce() -> Result<(), String>,
) -> AskReply {
    let prepared = tokio::select! {
        prepared = enforcer.prepare(request) => prepared,
        () = stop.cancelled() => return AskReply::denied("interrupted", INTERRUPTED),
    };
    let mut pending = match prepared {
        Ok(pending) => pending,
        Err(denial) => return AskReply::of_denial(None, &denial),
    };
    let id = pending.request_id().to_string();
    let approvers = pending.asked().map(|id| visible(id.as_str())).collect();
    let seconds = pending.time_left().as_secs();
    let submitted = || asked(&id, approvers, seconds);
    let outcome = tokio::select! {
        outcome = pending.decision_if(submitted, still_holds) => Some(outcome),
        () = stop.cancelled() => None,
        () = sleep_until(deadline) => None,
    };
    match outcome {
        Some(Ok(accepted)) => {
            // The approval counts once, also if its grant cannot be kept.
            let kept = may_keep.then(|| enforcer.keep(&accepted).ok().flatten());
            let kept = kept.flatten();
            if let Some(grant) = &kept {
                enforcer.report_kept(&accepted, grant).await;
            }
            // Only a proposal for a policy is lost without it.
            let _unwritten = enforcer.remember_approved(&accepted.artifact);
            let subject = subject_of(&accepted.artifact);
            let kept = kept.map(|grant| describe(&grant, subject.as_ref()));
            AskReply::of_approval(id, &accepted, kept)
        }
        Some(Err(denial)) => AskReply::of_denial(Some(id), &denial),
        None => {
            let message = match pending.withdraw("interrupted").await {
                Ok(()) => format!("{INTERRUPTED}; the request was withdrawn"),
                Err(error) => format!("{INTERRUPTED}; the request could not be withdrawn: {error}"),
            };
            AskReply {
                request_id: Some(id),
                ..AskReply::denied("interrupted", message)
            }
        }
    }
}

/// The same for several people. No grant is kept.
async fn decide_set(
    mut pending: PendingSet<'_>,
    deadline: Instant,
    stop: &CancellationToken,
    asked: AskedReport<'_>,
    still_holds: impl AsyncFnOnce() -> Result<(), String>,
) -> AskReply {
    let id = pending.request_ids().next().map(ToString::to_string);
    let (id, until) = (id.unwrap_or_default(), pending.until());
    let report = |needed| {
        let left = until.saturating_duration_since(Instant::now());
        asked(&id, vec![needed], left.as_secs());
    };
    let outcome = tokio::select! {
        outcome = pending.decision_if(report, still_holds) => Some(outcome),
        () = stop.cancelled() => None,
        () = sleep_until(deadline) => None,
    };
    match outcome {
        Some(Ok(accepted)) => AskReply::of_set(id, &accepted),
        Some(Err(denial)) => AskReply::of_denial(Some(id), &denial),
        None => {
            pending.interrupt().await;
            AskReply {
                request_id: Some(id),
                ..AskReply::denied("interrupted", format!("{INTERRUPTED}; it was withdrawn"))
            }
        }
    }
}
