//! Sessions: accepts the events that enforcers report, and shows a session to those who may read
//! it.

use std::sync::Arc;

use crate::gateway::channels::presence::EnforcerPresence;
use crate::gateway::context::GatewayContext;
use crate::gateway::error::{Error, Result};
use crate::gateway::exchanges::generic::{metadata_enforcer, sending_enforcer};
use crate::gateway::identity::caller::{Enforcer, Member};
use crate::protocol::framing::{FramedBody, Framing};
use crate::protocol::id::{EnforcerId, SessionId};
use crate::protocol::json::JsonNode;
use crate::protocol::listing::SessionDetails;
use crate::protocol::session::{self, EventRules, ReportOutcome, SessionReport, judge_report};
use crate::store::SessionStore;
use crate::store::session::ReportRow;

#[derive(Debug)]
pub struct ReportCommand {
    /// If the message names no enforcer: the refusal, unless the session is known and tells it.
    enforcer: Result<EnforcerId>,
    pub report: SessionReport,
}

pub struct SessionService {
    context: Arc<GatewayContext>,
    store: Arc<SessionStore>,
    presence: Arc<EnforcerPresence>,
}

impl SessionService {
    pub(in crate::gateway) fn new(
        context: &Arc<GatewayContext>,
        presence: &Arc<EnforcerPresence>,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            store: Arc::clone(&context.store.sessions),
            presence: Arc::clone(presence),
        }
    }

    /// Reads a report in any framing, from a body of `length` bytes.
    pub fn read_report(
        &self,
        caller: &Enforcer,
        document: &JsonNode<'_>,
        length: usize,
    ) -> Result<ReportCommand> {
        let framed = session::unframe(document, self.context.clock.now())?;
        let limits = &self.context.config.limits;
        if !session::is_snapshot(&framed) && length > limits.body_bytes {
            return Err(Error::BodyTooLarge {
                limit: limits.body_bytes,
            });
        }
        self.context.check_created(framed.envelope.created_at)?;
        let rules = EventRules {
            latest: self.context.in_seconds(limits.clock_skew_seconds),
            max_payload: limits.snapshot_bytes,
        };
        let report = session::parse(&framed, &rules)?;
        let enforcer = match sending_enforcer(caller, &framed) {
            Err(nameless) if is_nameless(caller, &framed) => Err(nameless),
            enforcer => Ok(enforcer?),
        };
        Ok(ReportCommand { enforcer, report })
    }

    /// Accepts a report. Reports may arrive in any order, repeatedly, and on any node.
    pub async fn report(&self, caller: &Enforcer, command: ReportCommand) -> Result<ReportOutcome> {
        let tenant = &caller.origin.tenant;
        let ReportCommand { enforcer, report } = command;
        let enforcer = match enforcer {
            Ok(enforcer) => enforcer,
            Err(nameless) => {
                let known = self.store.session_enforcer(tenant, &report.session_id);
                known.await?.ok_or(nameless)?
            }
        };
        self.presence.seen(tenant, &enforcer);
        let operation = self.context.clock.operation_id();
        let row = ReportRow {
            operation,
            tenant,
            enforcer: &enforcer,
            report: &report,
        };
        let fact = self.store.report(&row).await?;
        judge_report(fact, operation, &enforcer, &report)
    }

    /// A session, for its enforcer, the approvers paired with it, and administrators.
    pub async fn session(&self, caller: &Member, session: &SessionId) -> Result<SessionDetails> {
        let approver = match caller {
            Member::Approver(approver) => approver.bound.as_ref(),
            Member::Enforcer(_) | Member::Admin(_) => None,
        };
        let tenant = &caller.origin().tenant;
        let found = self.store.session(tenant, session, approver).await?;
        let (session, paired) = found.ok_or(Error::NotFound)?;
        let may_read = match caller {
            Member::Enforcer(enforcer) => enforcer.may_be(&session.enforcer_id),
            Member::Approver(_) => paired,
            Member::Admin(_) => true,
        };
        may_read.then_some(session).ok_or(Error::NotFound)
    }
}

/// Whether nothing names the message's sender.
fn is_nameless(caller: &Enforcer, framed: &FramedBody<'_, '_>) -> bool {
    framed.framing == Framing::Bare
        && caller.bound.is_none()
        && matches!(metadata_enforcer(framed.envelope.body), Ok(None))
}
