//! Messages for an approver's channel, read when they are sent: only those that are still unacknowledged and current.

use std::collections::HashMap;

use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::clock::Clock;
use crate::protocol::artifact::Form;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, RequestId, TenantId};
use crate::protocol::message::{RequestMessage, WithdrawalNotice};
use crate::protocol::timestamp::Timestamp;
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows::{by_row, column};
use crate::store::database::tenant_scope::TenantScope;

#[derive(Debug)]
pub enum ForApprover {
    Request(RequestMessage),
    /// An exchange was withdrawn or cancelled.
    Withdrawn(WithdrawalNotice),
}

impl ForApprover {
    pub fn created_at(&self) -> Timestamp {
        match self {
            Self::Request(request) => request.created_at,
            Self::Withdrawn(withdrawal) => withdrawal.created_at,
        }
    }

    pub fn message(&self) -> MessageId {
        match self {
            Self::Request(request) => request.message_id,
            Self::Withdrawn(withdrawal) => withdrawal.message_id,
        }
    }

    /// Roughly how many bytes it has.
    pub fn bytes(&self) -> usize {
        let stored = match self {
            Self::Request(request) => request.stored.as_ref(),
            Self::Withdrawn(_) => None,
        };
        stored.map_or(0, String::len) + 512
    }
}

/// A message for an approver as it is stored. Its content is there if it was asked for.
pub(in crate::store) struct StoredMessage {
    /// The number of the call's row.
    pub row: i64,
    pub message_id: MessageId,
    pub created_at: OffsetDateTime,
    pub bytes: Option<i32>,
    pub withdrawn: bool,
    pub request_id: Option<RequestId>,
    pub expires_at: Option<Timestamp>,
    pub enforcer_id: Option<EnforcerId>,
    pub enforcer_label: Option<String>,
    pub form: Option<Form>,
    pub artifact_type: Option<String>,
    pub artifact_hash: Option<String>,
    pub state: Option<ExchangeState>,
    pub ended_at: Option<Timestamp>,
    pub reason: Option<String>,
    pub body: Option<String>,
    pub trace: Option<String>,
}

impl StoredMessage {
    /// The message for this approver; `None` if its content was not read.
    pub fn for_approver(self, approver: &ApproverId) -> Option<ForApprover> {
        let (request_id, expires_at) = (self.request_id?, self.expires_at?);
        let created_at = self.created_at.into();
        Some(if self.withdrawn {
            ForApprover::Withdrawn(WithdrawalNotice {
                message_id: self.message_id,
                request_id,
                created_at,
                expires_at,
                state: self.state?,
                withdrawn_at: self.ended_at.unwrap_or(created_at),
                reason: self.reason,
            })
        } else {
            ForApprover::Request(RequestMessage {
                message_id: self.message_id,
                request_id,
                created_at,
                expires_at,
                enforcer_id: self.enforcer_id?,
                enforcer_label: self.enforcer_label,
                approver_id: approver.clone(),
                form: self.form?,
                artifact_type: self.artifact_type?,
                artifact_hash: self.artifact_hash?,
                stored: self.body,
                trace: self.trace,
                expired: false,
            })
        })
    }
}

#[derive(Debug)]
pub struct BodiesRow {
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
    const IS_READ: bool = true;
    type Row = BodiesRow;
    type Fact = Vec<ForApprover>;

    fn tenant_scope(rows: &[BodiesRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn bytes(row: &BodiesRow) -> usize {
        // The answer is what is large, and bounds the batch.
        row.bytes
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let wanted: Vec<_> = (1_i64..)
            .zip(rows)
            .flat_map(|(n, row)| row.messages.iter().map(move |message| (n, row, message)))
            .collect();
        let found = sqlx::query_as!(
            StoredMessage,
            r#"
            select i.n as "row!", x.message_id as "message_id!: MessageId", x.created_at as "created_at!",
                   null::int as "bytes?", false as "withdrawn!", e.request_id as "request_id?: RequestId",
                   e.expires_at as "expires_at?: Timestamp", e.enforcer_id as "enforcer_id?: EnforcerId",
                   -- What the two agreed on, even if the pairing has ended. Only strangers are called what they say.
                   case when g.approver_id is null then n.label else g.enforcer_label end as "enforcer_label?",
                   e.form as "form?: Form", e.artifact_type as "artifact_type?", e.artifact_hash as "artifact_hash?",
                   e.state as "state?: ExchangeState", e.ended_at as "ended_at?: Timestamp", e.end_reason as "reason?",
                   y.body::text as "body?", y.trace::text as "trace?"
              from unnest($1::bigint[], $2::text[], $3::text[], $4::uuid[]) as i (n, tenant_id, approver_id, message_id)
              join inbox_items x on x.tenant_id = i.tenant_id and (x.approver_id = i.approver_id) is true
                                and x.message_id = i.message_id
              join exchanges e on e.tenant_id = x.tenant_id and e.request_id = x.request_id
              left join exchange_payloads y
                     on y.tenant_id = x.tenant_id and y.request_id = x.request_id and y.part = 'artifact'
              left join enforcers n on n.tenant_id = e.tenant_id and n.enforcer_id = e.enforcer_id
              left join pairings g on g.tenant_id = e.tenant_id and g.enforcer_id = e.enforcer_id
                                  and g.approver_id = i.approver_id
             where x.closed_as is null and x.removed_at is null and x.acked_at is null
               and x.expires_at > clock_timestamp() + $5::interval
            union all
            select i.n, m.message_id, m.created_at, null, true, e.request_id, e.expires_at, e.enforcer_id, null,
                   e.form, e.artifact_type, e.artifact_hash, e.state, e.ended_at, e.end_reason, null, null
              from unnest($1::bigint[], $2::text[], $3::text[], $4::uuid[]) as i (n, tenant_id, approver_id, message_id)
              join messages m on m.tenant_id = i.tenant_id and m.recipient_kind = 'approver'
                             and m.recipient = i.approver_id and m.message_id = i.message_id
              join exchanges e on e.tenant_id = m.tenant_id and e.request_id = m.request_id
             where coalesce(m.acked_at, 'infinity') = 'infinity'
            "#,
            &column(&wanted, |(n, _, _)| *n),
            column(&wanted, |(_, row, _)| &row.tenant) as _,
            column(&wanted, |(_, row, _)| &row.approver) as _,
            column(&wanted, |(_, _, message)| message) as _,
            clock_offset(&self.clock),
        )
        .fetch_all(connection)
        .await?;
        let found = by_row(
            rows.len(),
            found.into_iter().map(|found| (found.row, found)),
        )?;
        let read = rows.iter().zip(found).map(|(row, found)| {
            let messages = found.into_iter().map(|found| (found.message_id, found));
            let mut messages: HashMap<_, _> = messages.collect();
            let wanted = row.messages.iter();
            wanted
                .filter_map(|id| messages.remove(id)?.for_approver(&row.approver))
                .collect()
        });
        Ok(read.collect())
    }
}
