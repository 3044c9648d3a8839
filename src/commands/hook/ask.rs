//! A tool call: prepared, asked about, and answered.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use countersign::agent::{Action, Agent, Event, Output, Verdict};
use countersign::client::enforcer::{Accepted, Act, Denial, Enforcer, Question};
use countersign::client::profile::ProfileFile;
use countersign::client::visible;
use countersign::clock::Clock;
use countersign::protocol::id::SessionId;
use serde_json::Map;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::INTERRUPTED;
use super::prepare::{Ask, Prepared, prepare};
use super::report::{Waiting, session_of};
use crate::commands::enforcer::repository_name;

/// Files are read in this time, or the answer is no: a disk that is away may keep a program waiting for ever.
const FILES_WITHIN: Duration = Duration::from_secs(20);
/// Whether something was permitted before is found out in this time, or somebody is asked.
const GRANT_WITHIN: Duration = Duration::from_secs(10);
/// A decision that came in time is still judged.
const GRACE: Duration = Duration::from_secs(10);

pub struct Asking<'a> {
    pub agent: Agent,
    /// Whatever the policy says.
    pub every_call: bool,
    pub file: ProfileFile,
    pub deadline: Instant,
    pub stop: &'a CancellationToken,
}

/// A call that was let pass, or not, and what else the model should hear.
struct Answered {
    verdict: Verdict,
    context: Option<String>,
    remark: Option<String>,
}

impl Asking<'_> {
    pub async fn answer(&self, event: Event) -> Output {
        let event = Arc::new(event);
        let answered = self.decide(&event).await.unwrap_or_else(Answered::denied);
        let context = answered.context.as_deref();
        let mut output = Output::of(self.agent, &event, &answered.verdict, context);
        if let Some(remark) = answered.remark {
            output.stderr = format!("{}\n{remark}", output.stderr);
        }
        output
    }

    /// An error is why it is denied before anyone was asked.
    async fn decide(&self, event: &Arc<Event>) -> Result<Answered, String> {
        let (agent, every_call) = (self.agent, self.every_call);
        let (file, known) = (self.file.clone(), event.clone());
        let preparing = in_background(move || prepare(agent, &known, &file, every_call));
        let prepared = tokio::select! {
            prepared = preparing => prepared?,
            () = self.stop.cancelled() => return Err(INTERRUPTED.to_owned()),
        };
        let ask = match prepared {
            Prepared::NotAsked => return Ok(Verdict::NotAsked.into()),
            Prepared::Denied(reason) => return Err(reason),
            Prepared::Ask(ask) => Arc::new(*ask),
        };
        let mut answered = self.ask(event, &ask).await?;
        answered.remark = (ask.ask_all_reason.as_ref())
            .map(|reason| format!("countersign: everything is asked: {reason}"));
        // Once more, as late as can be: the approver was told meanwhile.
        if let Verdict::Approved(_) = answered.verdict
            && let Err(changed) = still_holds(&ask).await
        {
            answered.verdict = Verdict::Denied(changed);
        }
        Ok(answered)
    }

    async fn ask(&self, event: &Event, ask: &Arc<Ask>) -> Result<Answered, String> {
        let opened = Enforcer::open(&self.file, &Clock::system());
        let mut enforcer = opened.map_err(|error| error.to_string())?;
        let session = session_of(&enforcer, self.agent, event);
        let (directory, is_real) = call_directory(event);
        let repository = repository_name(&directory);
        let act = Act::of(&ask.proposal.payload, &repository).filter(|_| is_real);
        let granting = self.granted(&mut enforcer, ask, act.as_ref(), session.as_ref());
        let granted = tokio::select! {
            granted = granting => granted,
            () = self.stop.cancelled() => return Err(INTERRUPTED.to_owned()),
        };
        if let Some(granted) = granted {
            return Ok(Verdict::Approved(granted).into());
        }
        let waiting = Waiting::begin(self.agent, event.clone(), self.file.clone());
        let question = self.question(ask, repository, session.as_ref());
        let (verdict, is_answered) = match self.decision(&mut enforcer, question, ask).await {
            Ok(accepted) => {
                // This once it is approved; whoever cannot keep more asks again.
                let _not_kept = enforcer.keep(&accepted);
                let approval = accepted.approval;
                let who = visible(approval.approver.as_str());
                let by = match approval.hints.reason {
                    Some(reason) => format!("{who}: {}", visible(&reason)),
                    None => who,
                };
                (Verdict::Approved(by), true)
            }
            Err((reason, is_answered)) => (Verdict::Denied(reason), is_answered),
        };
        let context = if is_answered {
            waiting.answered().await
        } else {
            waiting.not_answered();
            None
        };
        Ok(Answered {
            verdict,
            context,
            remark: None,
        })
    }

    /// Who has permitted it before. In doubt nobody has.
    async fn granted(
        &self,
        enforcer: &mut Enforcer,
        ask: &Ask,
        act: Option<&Act>,
        session: Option<&SessionId>,
    ) -> Option<String> {
        let act = act.filter(|_| ask.may_be_granted)?;
        let deadline = self.deadline.min(Instant::now() + GRANT_WITHIN);
        let used = enforcer.granted(act, session, deadline).await.ok()??;
        let until = used.grant.until;
        Some(format!(
            "{}, until {until}",
            visible(used.approver.as_str())
        ))
    }

    /// An approval, or why there is none and whether a person said so.
    async fn decision(
        &self,
        enforcer: &mut Enforcer,
        question: Question,
        ask: &Arc<Ask>,
    ) -> Result<Accepted, (String, bool)> {
        let unanswered = |reason: String| (reason, false);
        let mut pending = tokio::select! {
            prepared = enforcer.prepare(question) => {
                prepared.map_err(|denial| unanswered(denial.to_string()))?
            }
            () = self.stop.cancelled() => return Err(unanswered(INTERRUPTED.to_owned())),
        };
        let outcome = tokio::select! {
            outcome = pending.decision_if(|| {}, async || still_holds(ask).await) => Some(outcome),
            () = self.stop.cancelled() => None,
            () = sleep_until(self.deadline + GRACE) => None,
        };
        match outcome {
            Some(Ok(accepted)) => Ok(accepted),
            Some(Err(denial)) => {
                let is_answered = matches!(denial, Denial::Rejected(_) | Denial::Changed(_));
                Err((denial.to_string(), is_answered))
            }
            None => Err(unanswered(match pending.withdraw("interrupted").await {
                Ok(()) => format!("{INTERRUPTED}; the request was withdrawn"),
                Err(error) => format!("{INTERRUPTED}; the request stays: {error}"),
            })),
        }
    }

    fn question(&self, ask: &Ask, repository: String, session: Option<&SessionId>) -> Question {
        let mut members = Map::new();
        if let Some(session) = session {
            members.insert("sessionId".to_owned(), session.as_str().into());
        }
        Question {
            artifact_type: ask.proposal.artifact_type.to_owned(),
            repository,
            payload: ask.proposal.payload.clone(),
            members,
            approver: None,
            timeout: self.deadline.saturating_duration_since(Instant::now()),
            submit_timeout: self.deadline.saturating_duration_since(Instant::now()),
        }
    }
}

impl Answered {
    fn denied(reason: String) -> Self {
        Verdict::Denied(reason).into()
    }
}

impl From<Verdict> for Answered {
    fn from(verdict: Verdict) -> Self {
        Self {
            verdict,
            context: None,
            remark: None,
        }
    }
}

/// Where the call works, and whether links were followed to get there: `..` and links can lead out of a repository.
fn call_directory(event: &Event) -> (PathBuf, bool) {
    let agents = event.directory.as_deref().unwrap_or_default();
    let directory = match event.call().map(|call| &call.action) {
        Some(Action::Command { directory, .. }) => directory.as_deref().unwrap_or("."),
        _ => ".",
    };
    let directory = Path::new(agents).join(directory);
    match std::fs::canonicalize(&directory) {
        Ok(real) => (real, true),
        Err(_) => (directory, false),
    }
}

/// Whether the call would still do what was shown.
async fn still_holds(ask: &Arc<Ask>) -> Result<(), String> {
    let ask = ask.clone();
    in_background(move || ask.still_holds()).await?
}

/// Runs what may block. A panic in it is an error here.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    match timeout(FILES_WITHIN, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) => Err("countersign failed inside; this is a bug, please report it".to_owned()),
        Err(_) => Err("the files that it is about could not be read in time".to_owned()),
    }
}
