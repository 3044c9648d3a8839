//! The calls of an agent that asks before it acts.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::pending::PendingApproval;
use super::subject::{AskOptions, ReviewSubject, ToolCall};
use crate::enforcer::{AcceptedApproval, ApprovalDenial, Enforcer};
use crate::error::Result;
use crate::profile::ProfileFile;
use countersign_protocol::clock::Clock;

/// Asks people about calls, as the enforcer of a profile. Many calls may wait at once.
///
/// ```no_run
/// use countersign_client::approval::{ApprovalClient, AskOptions, ToolCall};
/// use serde_json::json;
///
/// # async fn agent() -> Result<(), Box<dyn std::error::Error>> {
/// let client = ApprovalClient::from_profile()?;
/// let call = ToolCall::new("transfer", [("iban", json!("DE02")), ("amount", json!(500))]);
/// let sent = client.approval_required(&call, &AskOptions::default(), async |arguments| {
///     format!("sent {} to {}", arguments["amount"], arguments["iban"])
/// });
/// match sent.await {
///     Ok(result) => println!("{result}"),
///     Err(denial) => println!("{}", denial.for_model()),
/// }
/// # Ok(())
/// # }
/// ```
pub struct ApprovalClient {
    enforcer: Enforcer,
}

impl ApprovalClient {
    /// With the profile that `countersign join` wrote: `COUNTERSIGN_PROFILE`, or `default`.
    pub fn from_profile() -> Result<Self> {
        let name = std::env::var("COUNTERSIGN_PROFILE").ok();
        let name = name.filter(|name| !name.is_empty());
        let file = ProfileFile::named(name.as_deref().unwrap_or("default"))?;
        Self::open(&file, &Clock::system())
    }

    pub fn open(file: &ProfileFile, clock: &Clock) -> Result<Self> {
        let enforcer = Enforcer::open(file, clock)?;
        Ok(Self { enforcer })
    }

    /// Asks, and waits for an approval. A caller that no longer waits withdraws the request.
    pub async fn ask(
        &self,
        subject: impl Into<ReviewSubject>,
        options: &AskOptions,
    ) -> Result<AcceptedApproval, ApprovalDenial> {
        let mut enforcer = self.enforcer.another();
        let request = subject.into().request(options)?;
        let mut pending = enforcer.prepare(request).await?;
        let withdrawal = pending.withdrawal_if_dropped();
        let decision = pending.decision(|| ()).await;
        // Nobody should decide a request whose caller has given up.
        if !matches!(
            decision,
            Err(ApprovalDenial::Unavailable(_) | ApprovalDenial::Refused(_))
        ) {
            withdrawal.disarm();
        }
        let accepted = decision?;
        pending.still_counts(&accepted)?;
        Ok(accepted)
    }

    /// Runs `action` with the arguments of exactly this call, if a person approves it.
    pub async fn approval_required<T>(
        &self,
        call: &ToolCall,
        options: &AskOptions,
        action: impl AsyncFnOnce(Map<String, Value>) -> T,
    ) -> Result<T, ApprovalDenial> {
        self.ask(call.clone(), options).await?;
        Ok(action(call.arguments.clone()).await)
    }

    /// Asks, and returns once the gateway has the request. With a `key`, a repeated submission is
    /// the same request, also after a crash.
    pub async fn submit(
        &self,
        subject: impl Into<ReviewSubject>,
        options: &AskOptions,
        key: Option<&str>,
    ) -> Result<PendingApproval, ApprovalDenial> {
        let (mut enforcer, subject) = (self.enforcer.another(), subject.into());
        let is_same = |artifact: &_| subject.is_in(artifact) && options.fit(artifact);
        let submitted = enforcer.submit(subject.request(options)?, key, is_same);
        let request = submitted.await?;
        Ok(PendingApproval::new(enforcer, Arc::new(request)))
    }

    /// A submitted request, from `PendingApproval::to_json` of this or another process, or from the
    /// library of another language.
    pub fn pending(&self, text: &str) -> Result<PendingApproval, ApprovalDenial> {
        let request = self.enforcer.parse_request(text)?;
        Ok(PendingApproval::new(
            self.enforcer.another(),
            Arc::new(request),
        ))
    }
}
