//! The messages between a guard and its callers, one line of JSON each. A caller makes one call on
//! a connection. It withdraws a request by closing the connection.

use std::io;
use std::time::Duration;

use countersign::agent::QuestionAnswers;
use countersign::client::enforcer::{
    AcceptedApproval, AcceptedSet, ApprovalDenial, ApprovalRequest, RuleDemand,
};
use countersign::client::visible;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
};

/// More than the largest request: an artifact has at most 4 MiB, and takes more when it is escaped.
const MAX_LINE_BYTES: u64 = 8 << 20;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GuardCall {
    /// The policy that counts here.
    Policy,
    Ask(Box<AskCall>),
    Observe {
        session: AgentSession,
        event: ObservedEvent,
    },
}

/// A request, as the agent's user makes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AskCall {
    pub artifact_type: String,
    pub repository: String,
    pub payload: Map<String, Value>,
    /// Further members of the artifact.
    pub members: Map<String, Value>,
    /// Only this approver.
    pub approver: Option<String>,
    /// The demands of the rules about it, as far as the caller knows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleDemand>,
    pub session: Option<AgentSession>,
    /// Whether a grant may answer it.
    pub may_be_granted: bool,
    /// Whether a grant that is given with the approval is kept.
    pub may_keep: bool,
    pub timeout_ms: u64,
    /// If the gateway does not take the request in this time, nobody is asked.
    pub submit_timeout_ms: u64,
}

impl AskCall {
    /// Outside a session. Grants are neither used nor kept.
    pub fn new(request: ApprovalRequest) -> Self {
        let milliseconds = |time: Duration| time.as_millis().try_into().unwrap_or(u64::MAX);
        Self {
            timeout_ms: milliseconds(request.timeout),
            submit_timeout_ms: milliseconds(request.submit_timeout),
            artifact_type: request.artifact_type,
            repository: request.repository,
            payload: request.payload,
            members: request.members,
            approver: request.approver,
            rules: Vec::new(),
            session: None,
            may_be_granted: false,
            may_keep: false,
        }
    }
}

/// The session of an agent, as the agent calls it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentSession {
    pub agent: String,
    pub id: String,
    /// Whether the model gets to see what people tell it.
    pub takes_context: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ObservedEvent {
    Start,
    /// It begins anew: nothing of it goes on.
    Clear,
    Prompt,
    TurnEnd,
    /// It may go on later.
    End,
    /// It does not come back.
    Close,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GuardReply {
    Policy {
        text: Option<String>,
    },
    /// The request was sent to these approvers. More follows.
    Asked {
        request_id: String,
        approvers: Vec<String>,
        seconds: u64,
    },
    /// The request was approved. The caller answers with a [`ChangeReport`].
    Holds,
    Answered(AskReply),
    Observed {
        context: Option<String>,
    },
    Failed {
        message: String,
    },
}

/// The reason why an approved call would no longer do what was shown, if there is one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangeReport {
    pub change: Option<String>,
}

/// The answer to an [`AskCall`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskReply {
    pub outcome: AskOutcome,
    pub request_id: Option<String>,
    /// The person who decided.
    pub approver: Option<String>,
    pub reason: Option<String>,
    pub action_id: Option<String>,
    /// The answers to an agent's questions.
    #[serde(default)]
    pub answers: Option<QuestionAnswers>,
    /// Messages of people to the agent.
    pub context: Option<String>,
    /// Something that the person at the agent's machine should know.
    #[serde(default)]
    pub remark: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AskOutcome {
    Approved {
        /// The end of the grant that permits it, if a person was not asked.
        until: Option<String>,
        /// The grant that was kept.
        kept: Option<String>,
    },
    Denied {
        /// One word for programs.
        cause: String,
        message: String,
    },
}

impl AskReply {
    pub fn new(outcome: AskOutcome) -> Self {
        Self {
            outcome,
            request_id: None,
            approver: None,
            reason: None,
            action_id: None,
            answers: None,
            context: None,
            remark: None,
        }
    }

    pub fn denied(cause: &str, message: impl Into<String>) -> Self {
        let (cause, message) = (cause.to_owned(), message.into());
        Self::new(AskOutcome::Denied { cause, message })
    }

    /// `kept` describes the grant that was kept.
    pub fn of_approval(id: String, accepted: &AcceptedApproval, kept: Option<String>) -> Self {
        let approval = &accepted.approval;
        Self {
            request_id: Some(id),
            approver: Some(visible(approval.approver.as_str())),
            reason: approval.hints.reason.as_deref().map(visible),
            action_id: approval.hints.action_id.clone(),
            answers: approval.hints.answers.clone(),
            ..Self::new(AskOutcome::Approved { until: None, kept })
        }
    }

    pub fn of_set(id: String, accepted: &AcceptedSet) -> Self {
        let approvals = accepted.approvals.iter();
        let names: Vec<_> = approvals
            .clone()
            .map(|it| visible(it.approver.as_str()))
            .collect();
        let comments = approvals.zip(&names).filter_map(|(approval, name)| {
            let comment = visible(approval.hints.reason.as_deref()?);
            Some(format!("{name} says: {comment}"))
        });
        let comments: Vec<_> = comments.collect();
        Self {
            request_id: Some(id),
            approver: Some(names.join(", ")),
            reason: (!comments.is_empty()).then(|| comments.join("; ")),
            action_id: accepted.choice.action_id.clone(),
            answers: accepted.choice.answers.clone(),
            ..Self::new(AskOutcome::Approved {
                until: None,
                kept: None,
            })
        }
    }

    pub fn of_denial(id: Option<String>, denial: &ApprovalDenial) -> Self {
        let mut reply = Self::denied(cause(denial), denial.to_string());
        reply.request_id = id;
        if let ApprovalDenial::Rejected(rejection) = denial {
            reply.approver = Some(visible(rejection.approver.as_str()));
            reply.reason = rejection.hints.reason.as_deref().map(visible);
            reply.action_id.clone_from(&rejection.hints.action_id);
        }
        reply
    }
}

/// One word for programs.
pub fn cause(denial: &ApprovalDenial) -> &'static str {
    match denial {
        ApprovalDenial::Rejected(_) => "rejected",
        denial if denial.is_timeout() => "timeout",
        ApprovalDenial::Ended(_) | ApprovalDenial::TimedOut => "ended",
        ApprovalDenial::Unavailable(_) => "unavailable",
        ApprovalDenial::Refused(_) => "refused",
        ApprovalDenial::Untrusted(_) => "untrusted",
        ApprovalDenial::TooFew(_) => "missing",
        ApprovalDenial::Parked { .. } => "parked",
        ApprovalDenial::Changed(_) => "changed",
        ApprovalDenial::NoReceipt(_) => "receipt",
        ApprovalDenial::AlreadyUsed => "used",
        ApprovalDenial::KeyReused => "reused",
        ApprovalDenial::Paused(_) => "paused",
        ApprovalDenial::NotPaired => "unpaired",
    }
}

/// The next message; `None` at the end of the connection.
pub async fn read<T: DeserializeOwned>(
    from: &mut (impl AsyncBufRead + Unpin),
) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    from.take(MAX_LINE_BYTES)
        .read_until(b'\n', &mut line)
        .await?;
    match line.as_slice() {
        [] => Ok(None),
        [.., b'\n'] => Ok(Some(serde_json::from_slice(&line)?)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

pub async fn write(to: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line).await?;
    to.flush().await
}
