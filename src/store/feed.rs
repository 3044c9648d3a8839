//! What an approver's channel has to send: it lists what is unacknowledged, and reads bodies as it sends them.

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::batch::Work;
use super::channel::PUSHED_FOR_SECONDS;
use super::reach::Reach;
use super::rows;
use crate::clock::Clock;
use crate::protocol::id::{ApproverId, MessageId, OperationId, TenantId};
use crate::protocol::message::{ApprovalRequest, Withdrawal};
use crate::protocol::timestamp::Timestamp;

/// A listing of what an approver has not acknowledged.
#[derive(Debug)]
pub struct ListRow {
    /// This call.
    pub operation: OperationId,
    /// The tenant.
    pub tenant: TenantId,
    /// The approver.
    pub approver: ApproverId,
    /// Only what comes after this row.
    pub after: (OffsetDateTime, Uuid),
    /// Whether withdrawals are listed too.
    pub withdrawals: bool,
    /// How many at most.
    pub limit: i64,
}

/// A line of that listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// The message.
    pub message: MessageId,
    /// When it was created.
    pub created_at: OffsetDateTime,
    /// Roughly how many bytes it has.
    pub bytes: usize,
}

/// The query that lists.
pub struct ListUnacked {
    /// The clock whose offset the database's gets.
    pub clock: Clock,
}

impl Work for ListUnacked {
    const NAME: &'static str = "list_unacked";
    type Row = ListRow;
    type Fact = Vec<Listed>;

    fn reach(rows: &[ListRow]) -> Reach<'_> {
        Reach::of(rows.iter().map(|row| &row.tenant))
    }

    fn twins(_: &ListRow) -> Vec<String> {
        Vec::new()
    }

    fn bytes(row: &ListRow) -> usize {
        usize::try_from(row.limit).unwrap_or_default() * 32
    }

    async fn run(
        &self,
        connection: &mut PgConnection,
        rows: &[ListRow],
    ) -> Result<Vec<Vec<Listed>>, sqlx::Error> {
        let found = sqlx::query!(
            r#"
            select i.operation_id as "operation!", l.message_id as "message_id!", l.created_at as "created_at!",
                   (select coalesce(pg_column_size(y.body), 0) + coalesce(pg_column_size(y.trace), 0)
                      from exchange_payloads y
                     where y.tenant_id = i.tenant_id and y.request_id = l.request_id and y.part = 'artifact') as "bytes?"
              from unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[], $5::uuid[], $6::boolean[], $7::bigint[])
                   as i (operation_id, tenant_id, approver_id, after_at, after_id, withdrawals, most)
             cross join lateral (
                 select u.message_id, u.created_at, u.request_id
                   from (
                       (select x.message_id, x.created_at, x.request_id
                          from inbox_items x
                         where x.tenant_id = i.tenant_id and x.approver_id = i.approver_id
                           and x.closed_at is null and x.removed_at is null and x.acked_at is null
                           and x.expires_at > clock_timestamp() + $8::interval
                           and (x.created_at, x.message_id) > (i.after_at, i.after_id)
                         order by x.created_at, x.message_id
                         limit i.most)
                       union all
                       (select m.message_id, m.created_at, null::text as request_id
                          from messages m
                         where i.withdrawals and m.tenant_id = i.tenant_id and m.recipient_kind = 'approver'
                           and m.recipient = i.approver_id and m.acked_at is null
                           and m.created_at > clock_timestamp() + $8::interval - make_interval(secs => $9)
                           and (m.created_at, m.message_id) > (i.after_at, i.after_id)
                         order by m.created_at, m.message_id
                         limit i.most)
                   ) u
                  order by u.created_at, u.message_id
                  limit i.most) l
             order by l.created_at, l.message_id
            "#,
            &rows.iter().map(|row| row.operation.0).collect::<Vec<Uuid>>(),
            &rows::texts(rows, |row| row.tenant.as_str()) as _,
            &rows::texts(rows, |row| row.approver.as_str()) as _,
            &rows.iter().map(|row| row.after.0).collect::<Vec<OffsetDateTime>>(),
            &rows.iter().map(|row| row.after.1).collect::<Vec<Uuid>>(),
            &rows.iter().map(|row| row.withdrawals).collect::<Vec<bool>>(),
            &rows.iter().map(|row| row.limit).collect::<Vec<i64>>(),
            self.clock.offset(),
            PUSHED_FOR_SECONDS,
        )
        .fetch_all(connection)
        .await?;
        let mut lists: std::collections::HashMap<Uuid, Vec<Listed>> =
            std::collections::HashMap::new();
        for row in found {
            let listed = Listed {
                message: MessageId(row.message_id),
                created_at: row.created_at,
                bytes: usize::try_from(row.bytes.unwrap_or_default()).unwrap_or_default() + 512,
            };
            lists.entry(row.operation).or_default().push(listed);
        }
        Ok(rows
            .iter()
            .map(|row| lists.remove(&row.operation.0).unwrap_or_default())
            .collect())
    }
}

/// Something to send to an approver.
#[derive(Debug)]
pub enum ForApprover {
    /// An approval request.
    Request(ApprovalRequest),
    /// The news that an exchange was withdrawn or cancelled.
    Withdrawn(Withdrawal),
}

impl ForApprover {
    /// Its message.
    #[must_use]
    pub fn message(&self) -> MessageId {
        match self {
            Self::Request(request) => request.message_id,
            Self::Withdrawn(withdrawal) => withdrawal.message_id,
        }
    }
}

/// Messages to read for an approver.
#[derive(Debug)]
pub struct BodiesRow {
    /// This call.
    pub operation: OperationId,
    /// The tenant.
    pub tenant: TenantId,
    /// The approver.
    pub approver: ApproverId,
    /// Which messages.
    pub messages: Vec<MessageId>,
    /// Roughly how many bytes they have.
    pub bytes: usize,
}

/// The query that reads them: only what is still unacknowledged and current comes back.
pub struct ReadBodies {
    /// The clock whose offset the database's gets.
    pub clock: Clock,
}

impl Work for ReadBodies {
    const NAME: &'static str = "read_bodies";
    type Row = BodiesRow;
    type Fact = Vec<ForApprover>;

    fn reach(rows: &[BodiesRow]) -> Reach<'_> {
        Reach::of(rows.iter().map(|row| &row.tenant))
    }

    fn twins(_: &BodiesRow) -> Vec<String> {
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
        let found = sqlx::query!(
            r#"
            select i.operation_id as "operation!", x.message_id as "message_id!", e.request_id as "request_id!",
                   x.created_at as "created_at!", e.expires_at as "expires_at!", e.enforcer_id as "enforcer_id!",
                   -- What it calls itself now, else what it was called when the two were paired.
                   coalesce(n.label, g.enforcer_label) as "enforcer_label?",
                   e.form as "form!", e.artifact_type as "artifact_type!", e.artifact_hash as "artifact_hash!",
                   e.state as "state!", e.ended_at as "ended_at?", e.end_reason as "reason?", false as "withdrawn!",
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
            select i.operation_id, m.message_id, e.request_id, m.created_at, e.expires_at, e.enforcer_id, null,
                   e.form, e.artifact_type, e.artifact_hash, e.state, e.ended_at, e.end_reason, true, null, null
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
        let mut bodies: std::collections::HashMap<(Uuid, Uuid), ForApprover> =
            std::collections::HashMap::new();
        for row in found {
            let message_id = MessageId(row.message_id);
            let key = (row.operation, row.message_id);
            let body = if row.withdrawn {
                ForApprover::Withdrawn(Withdrawal {
                    message_id,
                    request_id: rows::id(&row.request_id)?,
                    created_at: row.created_at.into(),
                    expires_at: row.expires_at.into(),
                    state: rows::state(&row.state)?,
                    withdrawn_at: row
                        .ended_at
                        .map_or_else(|| row.created_at.into(), Timestamp::from),
                    reason: row.reason,
                })
            } else {
                ForApprover::Request(ApprovalRequest {
                    message_id,
                    request_id: rows::id(&row.request_id)?,
                    created_at: row.created_at.into(),
                    expires_at: row.expires_at.into(),
                    enforcer_id: rows::id(&row.enforcer_id)?,
                    enforcer_label: row.enforcer_label,
                    approver_id: rows
                        .iter()
                        .find(|call| call.operation.0 == row.operation)
                        .map_or_else(
                            || Err(sqlx::Error::RowNotFound),
                            |call| Ok(call.approver.clone()),
                        )?,
                    form: rows::form(&row.form)?,
                    artifact_type: row.artifact_type,
                    artifact_hash: row.artifact_hash,
                    stored: row.body,
                    trace: row.trace,
                    expired: false,
                })
            };
            bodies.insert(key, body);
        }
        Ok(rows
            .iter()
            .map(|row| {
                row.messages
                    .iter()
                    .filter_map(|message| bodies.remove(&(row.operation.0, message.0)))
                    .collect()
            })
            .collect())
    }
}
