//! A tool call: prepared, asked about, and answered.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use countersign::agent::{
    Agent, HookEvent, HookOutput, HookVerdict, OwnPolicy, PreparedCall, PreparedRequest,
    ToolAction, ToolCall, normal, own_policy, prepare, takes_context,
};
use countersign::client::profile::ProfileFile;
use serde_json::Map;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::commands::approver::payload_headline;
use crate::commands::enforcer::repository_name;
use crate::commands::guard::{
    AgentSession, AskCall, AskOutcome, AskReply, GuardAddress, INTERRUPTED, answer,
};
use crate::commands::waiting::WaitingFile;

/// A disk that is away may keep a program waiting for ever. Then the answer is no.
const FILES_TIMEOUT: Duration = Duration::from_secs(20);
const QUESTION_SUBMIT_TIMEOUT_MS: u64 = 10_000;

pub struct HookRequest<'a> {
    pub agent: Agent,
    /// Regardless of the policy.
    pub every_call: bool,
    pub file: ProfileFile,
    /// The guard that has the policy and asks, if there is one.
    pub guard: Option<&'a GuardAddress>,
    pub deadline: Instant,
    pub stop: &'a CancellationToken,
}

/// The verdict about a call, and further words for the model.
struct HookAnswer {
    verdict: HookVerdict,
    context: Option<String>,
    remark: Option<String>,
}

/// The session that an event belongs to.
pub fn agent_session(agent: Agent, event: &HookEvent) -> Option<AgentSession> {
    Some(AgentSession {
        agent: agent.to_string(),
        id: event.session.clone()?,
        takes_context: takes_context(agent, event),
    })
}

impl HookRequest<'_> {
    pub async fn answer(&self, event: HookEvent) -> HookOutput {
        let event = Arc::new(event);
        let decided = self.decide(&event).await;
        let answered = decided.unwrap_or_else(|reason| HookVerdict::Denied(reason).into());
        let context = answered.context.as_deref();
        let mut output = HookOutput::of(self.agent, &event, &answered.verdict, context);
        if let Some(remark) = answered.remark {
            output.stderr = format!("{}\n{remark}", output.stderr);
        }
        output
    }

    /// An error is why it is denied before anyone was asked.
    async fn decide(&self, event: &Arc<HookEvent>) -> Result<HookAnswer, String> {
        let (agent, every_call) = (self.agent, self.every_call);
        let (file, known) = (self.file.clone(), event.clone());
        let preparing = async {
            let policy = if let Some(guard) = self.guard {
                OwnPolicy {
                    source: "the policy of the guard".to_owned(),
                    text: guard.policy().await?,
                }
            } else {
                let file = file.clone();
                in_background(move || own_policy(&file)).await??
            };
            let work = move || prepare(agent, &known, &file, &policy, every_call);
            in_background(work).await?
        };
        let prepared = tokio::select! {
            prepared = preparing => prepared?,
            () = self.stop.cancelled() => return Err(INTERRUPTED.to_owned()),
        };
        let ask = match prepared {
            PreparedCall::NotAsked => return Ok(HookVerdict::NotAsked.into()),
            PreparedCall::Ask(ask) => Arc::new(*ask),
        };
        let mut reply = self.ask(event, &ask).await;
        let mut remark = reply.as_mut().ok().and_then(|reply| reply.remark.take());
        let mut answered = match event.call().and_then(ToolCall::questions) {
            Some(questions) => HookAnswer::to_questions(reply, questions.len()),
            None => HookAnswer::from(reply?),
        };
        if let Some(reason) = &ask.ask_all_reason {
            remark = Some(format!("every call needs approval: {reason}"));
        }
        if let Some(remark) = remark {
            answered.remark = Some(format!("countersign: {remark}"));
        }
        // Checked again: a file can change while the acknowledgement is sent.
        if let HookVerdict::Approved(_) = answered.verdict
            && let Err(changed) = still_holds(&ask).await
        {
            answered.verdict = HookVerdict::Denied(changed);
        }
        Ok(answered)
    }

    async fn ask(&self, event: &HookEvent, ask: &Arc<PreparedRequest>) -> Result<AskReply, String> {
        let (directory, is_real) = call_directory(event);
        let left = self.deadline.saturating_duration_since(Instant::now());
        let left = left.as_millis().try_into().unwrap_or(u64::MAX);
        let is_question = event.call().is_some_and(|call| call.questions().is_some());
        let call = AskCall {
            artifact_type: ask.proposal.artifact_type.to_owned(),
            repository: repository_name(&directory),
            payload: ask.proposal.payload.clone(),
            members: Map::new(),
            approver: None,
            rules: ask.rules.clone(),
            session: agent_session(self.agent, event),
            may_be_granted: ask.may_be_granted && is_real && !is_question,
            may_keep: !is_question,
            timeout_ms: left,
            // The agent's own dialog waits behind a question that nobody gets.
            submit_timeout_ms: if is_question {
                left.min(QUESTION_SUBMIT_TIMEOUT_MS)
            } else {
                left
            },
        };
        let holds = async || still_holds(ask).await;
        // Each person of a rule has a request of their own.
        let is_listed = ask.rules.is_empty();
        let sentence = payload_headline(&call.artifact_type, &call.payload);
        let Some(guard) = self.guard else {
            let mut notice = WaitingFile::of_profile(&self.file, self.agent.title(), sentence);
            let asked = &mut |id: &str, approvers: Vec<String>, seconds| {
                if is_listed {
                    notice.show(id, &approvers, seconds);
                }
            };
            return Ok(answer(&self.file, call, self.stop, asked, holds).await);
        };
        let mut notice = WaitingFile::new(&self.file, self.agent.title(), sentence);
        let asked = |id: &str, approvers: &[String], seconds| {
            if is_listed {
                notice.show(id, approvers, seconds);
            }
        };
        tokio::select! {
            reply = guard.ask(call, asked, holds) => reply,
            // The guard withdraws the request when the connection ends.
            () = self.stop.cancelled() => Err(INTERRUPTED.to_owned()),
        }
    }
}

impl HookAnswer {
    /// A question that nobody has answered is left to the agent's own dialog.
    fn to_questions(reply: Result<AskReply, String>, count: usize) -> Self {
        let unanswered = |why: &str| Self {
            remark: Some(format!(
                "countersign: the question stays with the agent: {why}"
            )),
            ..HookVerdict::NotAsked.into()
        };
        let reply = match reply {
            Ok(reply) => reply,
            Err(problem) => return unanswered(&problem),
        };
        let by = reply.approver.unwrap_or_default();
        let answers = reply.answers.filter(|answers| answers.len() == count);
        let answered = match (reply.outcome, answers, reply.reason) {
            (AskOutcome::Approved { .. }, Some(answers), _) => {
                HookVerdict::Answered { by, answers }.into()
            }
            (AskOutcome::Approved { .. }, None, _) => unanswered(&format!("{by} did not answer")),
            (AskOutcome::Denied { .. }, _, Some(reason)) => {
                HookVerdict::Denied(format!("{by} did not answer, and says: {reason}")).into()
            }
            (AskOutcome::Denied { message, .. }, _, None) => unanswered(&message),
        };
        Self {
            context: reply.context,
            ..answered
        }
    }
}

impl From<HookVerdict> for HookAnswer {
    fn from(verdict: HookVerdict) -> Self {
        Self {
            verdict,
            context: None,
            remark: None,
        }
    }
}

impl From<AskReply> for HookAnswer {
    fn from(reply: AskReply) -> Self {
        let who = reply.approver.unwrap_or_default();
        let verdict = match reply.outcome {
            AskOutcome::Approved { until, .. } => {
                HookVerdict::Approved(match (until, reply.reason) {
                    (Some(until), _) => format!("{who}, until {until}"),
                    (None, Some(reason)) => format!("{who}: {reason}"),
                    (None, None) => who,
                })
            }
            AskOutcome::Denied { message, .. } => HookVerdict::Denied(message),
        };
        Self {
            context: reply.context,
            ..verdict.into()
        }
    }
}

/// Where the call works, and whether links were followed to get there: `..` and links can lead out
/// of a repository.
fn call_directory(event: &HookEvent) -> (PathBuf, bool) {
    let agents = event.directory.as_deref().unwrap_or_default();
    let directory = match event.call().map(|call| &call.action) {
        Some(ToolAction::Command { directory, .. }) => directory.as_deref(),
        _ => None,
    };
    let directory = Path::new(agents).join(directory.unwrap_or_default());
    match std::fs::canonicalize(&directory) {
        Ok(real) => (real, true),
        Err(_) => (normal(&directory), false),
    }
}

/// Whether the call would still do what was shown.
async fn still_holds(ask: &Arc<PreparedRequest>) -> Result<(), String> {
    let ask = ask.clone();
    in_background(move || ask.still_holds()).await?
}

/// Runs what may block. A panic in it is an error here.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    match timeout(FILES_TIMEOUT, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) => {
            Err("countersign failed internally; this is a bug, please report it".to_owned())
        }
        Err(_) => Err("the files that the call touches could not be read in time".to_owned()),
    }
}
