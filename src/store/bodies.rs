//! Messages for an approver's channel, read as they are sent: only what is still unacknowledged and current comes back.

use std::collections::HashMap;

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::batch::BatchStatement;
use super::rows;
use super::tenant_scope::TenantScope;
use crate::clock::Clock;
use crate::protocol::id::{ApproverId, MessageId, OperationId, TenantId};
use crate::protocol::message::{ApprovalRequest, Withdrawal};
use crate::protocol::timestamp::Timestamp;

#[derive(Debug)]
pub enum ForApprover {
    Request(ApprovalRequest),
    /// The news that an exchange was withdrawn or cancelled.
    Withdrawn(Withdrawal),
}

impl ForApprover {
    #[must_use]
    pub fn message(&self) -> MessageId {
        match self {
            Self::Request(request) => request.message_id,
            Self::Withdrawn(withdrawal) => withdrawal.message_id,
        }
    }
}

/// A message for an approver as it is read. What it says is there if it was asked for.
pub(super) struct Line {
    pub operation: Uuid,
    pub message_id: Uuid,
    pub created_at: OffsetDateTime,
    pub bytes: Option<i32>,
    pub withdrawn: bool,
    pub request_id: Option<String>,
    pub expires_at: Option<OffsetDateTime>,
    pub enforcer_id: Option<String>,
    pub enforcer_label: Option<String>,
    pub form: Option<String>,
    pub artifact_type: Option<String>,
    pub artifact_hash: Option<String>,
    pub state: Option<String>,
    pub ended_at: Option<OffsetDateTime>,
    pub reason: Option<String>,
    pub body: Option<String>,
    pub trace: Option<String>,
}

impl Line {
    /// What is sent to this approver; `None` if only the message was read, and not what it says.
    pub fn for_approver(self, approver: &ApproverId) -> Result<Option<ForApprover>, sqlx::Error> {
        let (Some(request_id), Some(expires_at)) = (self.request_id, self.expires_at) else {
            return Ok(None);
        };
        let message_id = MessageId(self.message_id);
        let request_id = rows::id(&request_id)?;
        let created_at: Timestamp = self.created_at.into();
        let there = |column: Option<String>| column.ok_or_else(|| rows::foreign("message"));
        Ok(Some(if self.withdrawn {
            ForApprover::Withdrawn(Withdrawal {
                message_id,
                request_id,
                created_at,
                expires_at: expires_at.into(),
                state: rows::state(&there(self.state)?)?,
                withdrawn_at: self.ended_at.map_or(created_at, Timestamp::from),
                reason: self.reason,
            })
        } else {
            ForApprover::Request(ApprovalRequest {
                message_id,
                request_id,
                created_at,
                expires_at: expires_at.into(),
                enforcer_id: rows::id(&there(self.enforcer_id)?)?,
                enforcer_label: self.enforcer_label,
                approver_id: approver.clone(),
                form: rows::form(&there(self.form)?)?,
                artifact_type: there(self.artifact_type)?,
                artifact_hash: there(self.artifact_hash)?,
                stored: self.body,
                trace: self.trace,
                expired: false,
            })
        }))
    }
}

#[derive(Debug)]
pub struct BodiesRow {
    pub operation: OperationId,
    pub tenant: TenantId,
    pub approver: ApproverId,
    pub messages: Vec<MessageId>,
    /// Roughly how many bytes they have.
    pub bytes: usize,
}

pub struct ReadBodies {
    pub clock: Clock,
}

impl BatchStatement for ReadBodies {
    const NAME: &'static str = "read_bodies";
    type Row = BodiesRow;
    type Fact = Vec<ForApprover>;

    fn tenant_scope(rows: &[BodiesRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn conflict_keys(_: &BodiesRow) -> Vec<String> {
        Vec::new()
    }

    fn bytes(row: &BodiesRow) -> usize {
        // What comes back is what is large; a batch is to stay bounded.
        row.bytes
    }

    async fn run(
        &self,
        connection: &mut PgConnection,
        rows: &[BodiesRow],
    ) -> Result<Vec<Vec<ForApprover>>, sqlx::Error> {
        let wanted: Vec<_> = rows
            .iter()
            .flat_map(|row| row.messages.iter().map(move |message| (row, message)))
            .collect();
        let found = sqlx::query_as!(
            Line,
            r#"
            select i.operation_id as "operation!", x.message_id as "message_id!", x.created_at as "created_at!",
                   null::int as "bytes?", false as "withdrawn!", e.request_id as "request_id?", e.expires_at as "expires_at?",
                   e.enforcer_id as "enforcer_id?",
                   -- What it calls itself now, else what it was called when the two were paired.
                   coalesce(n.label, g.enforcer_label) as "enforcer_label?",
                   e.form as "form?", e.artifact_type as "artifact_type?", e.artifact_hash as "artifact_hash?",
                   e.state as "state?", e.ended_at as "ended_at?", e.end_reason as "reason?",
                   y.body::text as "body?", y.trace::text as "trace?"
              from unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[])
                   as i (operation_id, tenant_id, approver_id, message_id)
              join inbox_items x on x.tenant_id = i.tenant_id and (x.approver_id = i.approver_id) is true
                                and x.message_id = i.message_id
              join exchanges e on e.tenant_id = x.tenant_id and e.request_id = x.request_id
              left join exchange_payloads y
                     on y.tenant_id = x.tenant_id and y.request_id = x.request_id and y.part = 'artifact'
              left join enforcers n on n.tenant_id = e.tenant_id and n.enforcer_id = e.enforcer_id
              left join pairings g on g.tenant_id = e.tenant_id and g.enforcer_id = e.enforcer_id
                                  and g.approver_id = i.approver_id and g.revoked_at is null
             where x.closed_as is null and x.removed_at is null and x.acked_at is null
               and x.expires_at > clock_timestamp() + $5::interval
            union all
            select i.operation_id, m.message_id, m.created_at, null, true, e.request_id, e.expires_at, e.enforcer_id, null,
                   e.form, e.artifact_type, e.artifact_hash, e.state, e.ended_at, e.end_reason, null, null
              from unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[])
                   as i (operation_id, tenant_id, approver_id, message_id)
              join messages m on m.tenant_id = i.tenant_id and m.recipient_kind = 'approver'
                             and m.recipient = i.approver_id and m.message_id = i.message_id
              join exchanges e on e.tenant_id = m.tenant_id and e.request_id = m.request_id
             where coalesce(m.acked_at, 'infinity') = 'infinity'
            "#,
            &wanted.iter().map(|(row, _)| row.operation.0).collect::<Vec<Uuid>>(),
            &rows::texts(&wanted, |(row, _)| row.tenant.as_str()) as _,
            &rows::texts(&wanted, |(row, _)| row.approver.as_str()) as _,
            &wanted.iter().map(|(_, message)| message.0).collect::<Vec<Uuid>>(),
            self.clock.offset(),
        )
        .fetch_all(connection)
        .await?;
        let mut bodies = HashMap::new();
        for line in found {
            let key = (line.operation, line.message_id);
            let call = rows.iter().find(|row| row.operation.0 == line.operation);
            let call = call.ok_or(sqlx::Error::RowNotFound)?;
            bodies.extend(line.for_approver(&call.approver)?.map(|body| (key, body)));
        }
        Ok(rows
            .iter()
            .map(|row| {
                let ids = row.messages.iter();
                ids.filter_map(|id| bodies.remove(&(row.operation.0, id.0)))
                    .collect()
            })
            .collect())
    }
}
