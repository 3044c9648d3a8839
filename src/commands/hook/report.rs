//! What people are told of an agent's session, and what they have to tell it. Nothing is decided here, nothing waits long for
//! it, and a report that is lost is not sent again.

use std::time::Duration;

use countersign::agent::{Agent, Event, EventKind, takes_context};
use countersign::client::enforcer::{Enforcer, TakenPrompt};
use countersign::client::profile::ProfileFile;
use countersign::client::{ClientError, visible, visible_lines};
use countersign::clock::Clock;
use countersign::protocol::id::SessionId;
use countersign::protocol::session::{EndReason, SessionState};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// All reports of one event.
const WITHIN: Duration = Duration::from_secs(5);
/// After a decision the agent waits for us.
const AFTER_DECISION: Duration = Duration::from_secs(3);

/// The session that an event belongs to, as the protocol calls it.
pub fn session_of(enforcer: &Enforcer, agent: Agent, event: &Event) -> Option<SessionId> {
    let id = event.session.as_deref()?;
    enforcer.session(agent.as_str(), id).ok()
}

/// Reports an event that is no call. What it returns is for the model.
pub async fn observe(agent: Agent, event: &Event, file: ProfileFile) -> Option<String> {
    let mut enforcer = Enforcer::open(&file, &Clock::system()).ok()?;
    let session = session_of(&enforcer, agent, event)?;
    let deadline = Instant::now() + WITHIN;
    let _unheard = match &event.kind {
        EventKind::SessionStart => {
            let host = agent.title();
            enforcer.start_session(&session, host, deadline).await
        }
        EventKind::Prompt => {
            let state = SessionState::Planning;
            enforcer.session_status(&session, state, deadline).await
        }
        EventKind::SessionEnd => {
            let reason = EndReason::UserEnd;
            let _unheard = enforcer.end_session(&session, reason, deadline).await;
            return None;
        }
        EventKind::Call(_) | EventKind::TurnEnd | EventKind::Other => return None,
    };
    prompts(&mut enforcer, agent, event, &session, deadline).await
}

/// Says that an agent waits, until it does not wait any more. It has a connection of its own, so that asking never waits for it.
pub struct Waiting {
    decided: oneshot::Sender<Decided>,
    reporting: JoinHandle<Option<String>>,
}

/// How the waiting ended.
enum Decided {
    /// A person has answered, so the gateway can be reached.
    Answered,
    Not,
}

impl Waiting {
    pub fn begin(agent: Agent, event: Event, file: ProfileFile) -> Self {
        let (decided, until) = oneshot::channel();
        let reporting = tokio::spawn(async move {
            let opening = move || Enforcer::open(&file, &Clock::system());
            let mut enforcer = tokio::task::spawn_blocking(opening).await.ok()?.ok()?;
            let session = session_of(&enforcer, agent, &event)?;
            let state = SessionState::WaitingApproval;
            let deadline = Instant::now() + WITHIN;
            let _unheard = enforcer.session_status(&session, state, deadline).await;
            let Ok(Decided::Answered) = until.await else {
                return None;
            };
            let deadline = Instant::now() + AFTER_DECISION;
            let state = SessionState::Executing;
            let _unheard = enforcer.session_status(&session, state, deadline).await;
            prompts(&mut enforcer, agent, &event, &session, deadline).await
        });
        Self { decided, reporting }
    }

    /// What people have to tell the agent.
    pub async fn answered(self) -> Option<String> {
        let _gone = self.decided.send(Decided::Answered);
        self.reporting.await.ok().flatten()
    }

    pub fn not_answered(self) {
        let _gone = self.decided.send(Decided::Not);
        self.reporting.abort();
    }
}

/// Takes the prompts that wait for this session, as one text for the model; or rejects them if the agent has no way to take them.
async fn prompts(
    enforcer: &mut Enforcer,
    agent: Agent,
    event: &Event,
    session: &SessionId,
    deadline: Instant,
) -> Option<String> {
    if takes_context(agent, event) {
        let taken = enforcer.take_prompts(Some(session), deadline).await;
        return taken.ok().and_then(|taken| as_context(&taken));
    }
    let reason = format!("{} has no way to take prompts", agent.title());
    let _unheard: Result<usize, ClientError> = enforcer
        .refuse_prompts(Some(session), &reason, deadline)
        .await;
    None
}

fn as_context(taken: &[TakenPrompt]) -> Option<String> {
    let texts = taken.iter().map(|prompt| {
        let who = visible(prompt.approver.as_str());
        let words = visible_lines(prompt.opened.prompt.words());
        format!("A message from {who}, who approves what you do:\n{words}")
    });
    let texts: Vec<_> = texts.collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
