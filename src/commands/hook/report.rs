//! Reports about an agent's session to people, and their messages to it. Nothing is decided here,
//! nothing waits long for it, and a report that is lost is not sent again.

use std::time::Duration;

use countersign::agent::Agent;
use countersign::client::enforcer::{Enforcer, TakenPrompt};
use countersign::client::profile::ProfileFile;
use countersign::client::{ClientError, visible, visible_lines};
use countersign::clock::Clock;
use countersign::protocol::id::SessionId;
use countersign::protocol::session::{EndReason, SessionState};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::commands::guard::{AgentSession, ObservedEvent};

/// All reports of one event.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// After a decision the agent waits for us.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(3);

/// The session as the protocol calls it.
pub fn session_of(enforcer: &Enforcer, session: &AgentSession) -> Option<SessionId> {
    enforcer.session(&session.agent, &session.id).ok()
}

/// Reports an event that is no call. Returns a text for the model.
pub async fn observe(
    session: &AgentSession,
    event: ObservedEvent,
    file: &ProfileFile,
) -> Option<String> {
    let mut enforcer = Enforcer::open(file, &Clock::system()).ok()?;
    let id = session_of(&enforcer, session)?;
    let deadline = Instant::now() + REPORT_TIMEOUT;
    let _unheard = match event {
        ObservedEvent::Start => (enforcer.start_session(&id, title_of(session), deadline)).await,
        ObservedEvent::Clear => {
            let ended = enforcer.delete_session_grants(&id);
            let started = enforcer.start_session(&id, title_of(session), deadline);
            ended.and(started.await)
        }
        ObservedEvent::Prompt => {
            let state = SessionState::Planning;
            enforcer.session_status(&id, state, deadline).await
        }
        ObservedEvent::TurnEnd => {
            let _unheard = (enforcer.session_status(&id, SessionState::Idle, deadline)).await;
            return None;
        }
        ObservedEvent::End => {
            let _unheard = enforcer.leave_session(&id, deadline).await;
            return None;
        }
        ObservedEvent::Close => {
            let _unheard = (enforcer.end_session(&id, EndReason::UserEnd, deadline)).await;
            return None;
        }
    };
    prompts(&mut enforcer, session, &id, deadline).await
}

fn title_of(session: &AgentSession) -> &str {
    match session.agent.parse::<Agent>() {
        Ok(agent) => agent.title(),
        Err(_) => &session.agent,
    }
}

/// How the waiting ended.
enum WaitEnd {
    ByPerson,
    /// Without a decision; the agent goes on.
    Undecided,
    /// The agent or its turn has ended.
    Interrupted,
}

/// Says that an agent waits, until it does not wait any more. It has a connection of its own, so
/// that asking never waits for it.
pub struct WaitingNotice {
    end: oneshot::Sender<WaitEnd>,
    reporting: JoinHandle<Option<String>>,
}

impl WaitingNotice {
    pub fn begin(session: AgentSession, file: ProfileFile) -> Self {
        let (end, until) = oneshot::channel();
        let reporting = tokio::spawn(async move {
            let opening = move || Enforcer::open(&file, &Clock::system());
            let mut enforcer = tokio::task::spawn_blocking(opening).await.ok()?.ok()?;
            let id = session_of(&enforcer, &session)?;
            let state = SessionState::WaitingApproval;
            let deadline = Instant::now() + REPORT_TIMEOUT;
            let _unheard = enforcer.session_status(&id, state, deadline).await;
            let end = until.await.ok()?;
            let deadline = Instant::now() + SETTLE_TIMEOUT;
            let state = match end {
                WaitEnd::ByPerson | WaitEnd::Undecided => SessionState::Executing,
                WaitEnd::Interrupted => SessionState::Idle,
            };
            let _unheard = enforcer.session_status(&id, state, deadline).await;
            if !matches!(end, WaitEnd::ByPerson) {
                return None;
            }
            prompts(&mut enforcer, &session, &id, deadline).await
        });
        Self { end, reporting }
    }

    /// Returns messages from people for the agent.
    pub async fn answered(self) -> Option<String> {
        let _gone = self.end.send(WaitEnd::ByPerson);
        self.reporting.await.ok().flatten()
    }

    /// Says that the agent no longer waits, unless the gateway cannot be told.
    pub async fn not_answered(mut self, is_interrupted: bool) {
        let _gone = self.end.send(if is_interrupted {
            WaitEnd::Interrupted
        } else {
            WaitEnd::Undecided
        });
        if timeout(SETTLE_TIMEOUT, &mut self.reporting).await.is_err() {
            self.reporting.abort();
        }
    }
}

/// Takes the prompts that wait for this session, as one text for the model; or rejects them if the
/// agent has no way to take them.
async fn prompts(
    enforcer: &mut Enforcer,
    session: &AgentSession,
    id: &SessionId,
    deadline: Instant,
) -> Option<String> {
    if session.takes_context {
        let taken = enforcer.take_prompts(Some(id), deadline).await;
        return taken.ok().and_then(|taken| as_context(&taken));
    }
    let reason = format!("{} cannot receive prompts", title_of(session));
    let refused = enforcer.refuse_prompts(Some(id), &reason, deadline);
    let _unheard: Result<usize, ClientError> = refused.await;
    None
}

fn as_context(taken: &[TakenPrompt]) -> Option<String> {
    let texts = taken.iter().map(|prompt| {
        let who = visible(prompt.approver.as_str());
        let words = visible_lines(prompt.opened.prompt.words());
        format!("A message from {who}, who approves your actions:\n{words}")
    });
    let texts: Vec<_> = texts.collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
