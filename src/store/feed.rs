//! What an approver's channel has to send: a list of what is unacknowledged, and what its first news say, so that a channel
//! that has caught up needs no second look. The rest is read as it is sent.

use std::collections::HashMap;

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::batch::BatchStatement;
use super::bodies::{ForApprover, Line};
use super::channel::PUSHED_FOR_SECONDS;
use super::rows;
use super::tenant_scope::TenantScope;
use crate::clock::Clock;
use crate::protocol::id::{ApproverId, MessageId, OperationId, TenantId};

/// News whose bodies come with the list, and bytes after which they end.
const WITH_BODY: i64 = 8;
const BODY_BYTES: i64 = 64 << 10;

/// A listing of what an approver has not acknowledged.
#[derive(Debug)]
pub struct ListRow {
    pub operation: OperationId,
    pub tenant: TenantId,
    pub approver: ApproverId,
    /// Only what comes after this row.
    pub after: (OffsetDateTime, Uuid),
    pub seen: OffsetDateTime,
    pub withdrawals: bool,
    /// How many at most.
    pub limit: i64,
}

#[derive(Debug)]
pub struct Listed {
    pub message: MessageId,
    /// When it was created.
    pub created_at: OffsetDateTime,
    /// Roughly how many bytes it has.
    pub bytes: usize,
    pub body: Option<ForApprover>,
}

pub struct ListUnacked {
    pub clock: Clock,
}

impl BatchStatement for ListUnacked {
    const NAME: &'static str = "list_unacked";
    type Row = ListRow;
    type Fact = Vec<Listed>;

    fn tenant_scope(rows: &[ListRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn conflict_keys(_: &ListRow) -> Vec<String> {
        Vec::new()
    }

    fn bytes(_: &ListRow) -> usize {
        // A list is seldom long, and bodies with it seldom large; this keeps a batch of such within bounds.
        16 << 10
    }

    async fn run(
        &self,
        connection: &mut PgConnection,
        rows: &[ListRow],
    ) -> Result<Vec<Vec<Listed>>, sqlx::Error> {
        let found = sqlx::query_as!(
            Line,
            r#"
            select i.operation_id as "operation!", l.message_id as "message_id!", l.created_at as "created_at!",
                   l.bytes as "bytes?", false as "withdrawn!", b.request_id as "request_id?", b.expires_at as "expires_at?",
                   b.enforcer_id as "enforcer_id?", b.enforcer_label as "enforcer_label?", b.form as "form?",
                   b.artifact_type as "artifact_type?", b.artifact_hash as "artifact_hash?", null as "state?",
                   null::timestamptz as "ended_at?", null as "reason?", b.body as "body?", b.trace as "trace?"
              from unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[], $5::uuid[], $6::timestamptz[], $7::boolean[],
                          $8::bigint[])
                   as i (operation_id, tenant_id, approver_id, after_at, after_id, seen_at, withdrawals, most)
             cross join lateral (
                 select u.message_id, u.created_at, u.request_id, u.bytes,
                        count(*) filter (where u.news) over before as nth,
                        sum(u.bytes) filter (where u.news) over before as total, u.news
                   from (
                       select v.message_id, v.created_at, v.request_id,
                              v.request_id is not null and v.created_at > i.seen_at as news,
                              (select coalesce(pg_column_size(y.body), 0) + coalesce(pg_column_size(y.trace), 0)
                                 from exchange_payloads y
                                where y.tenant_id = i.tenant_id and y.request_id = v.request_id
                                  and y.part = 'artifact') as bytes
                         from (
                             (select x.message_id, x.created_at, x.request_id
                                from inbox_items x
                               where x.tenant_id = i.tenant_id and x.approver_id = i.approver_id
                                 and x.closed_at is null and x.removed_at is null and x.acked_at is null
                                 and x.expires_at > clock_timestamp() + $9::interval
                                 and (x.created_at, x.message_id) > (i.after_at, i.after_id)
                               order by x.created_at, x.message_id
                               limit i.most)
                             union all
                             (select m.message_id, m.created_at, null::text as request_id
                                from messages m
                               where i.withdrawals and m.tenant_id = i.tenant_id and m.recipient_kind = 'approver'
                                 and m.recipient = i.approver_id and m.kind = 'exchange.withdrawn' and m.acked_at is null
                                 and m.created_at > (select clock_timestamp() + $9::interval - make_interval(secs => $10))
                                 and (m.created_at, m.message_id) > (i.after_at, i.after_id)
                               order by m.created_at, m.message_id
                               limit i.most)
                         ) v
                        order by v.created_at, v.message_id
                        limit i.most) u
                 window before as (order by u.created_at, u.message_id)) l
             -- The limit keeps this from being turned into a hash of all exchanges.
             left join lateral (
                 select e.request_id, e.expires_at, e.enforcer_id, coalesce(n.label, g.enforcer_label) as enforcer_label,
                        e.form, e.artifact_type, e.artifact_hash, y.body::text as body, y.trace::text as trace
                   from exchanges e
                   left join exchange_payloads y
                          on y.tenant_id = e.tenant_id and y.request_id = e.request_id and y.part = 'artifact'
                   left join enforcers n on n.tenant_id = e.tenant_id and n.enforcer_id = e.enforcer_id
                   left join pairings g on g.tenant_id = e.tenant_id and g.enforcer_id = e.enforcer_id
                                       and g.approver_id = i.approver_id and g.revoked_at is null
                  where l.news and l.nth <= $11 and l.total <= $12
                    and e.tenant_id = i.tenant_id and e.request_id = l.request_id
                  limit 1) b on true
             order by l.created_at, l.message_id
            "#,
            &rows.iter().map(|row| row.operation.0).collect::<Vec<Uuid>>(),
            &rows::texts(rows, |row| row.tenant.as_str()) as _,
            &rows::texts(rows, |row| row.approver.as_str()) as _,
            &rows.iter().map(|row| row.after.0).collect::<Vec<OffsetDateTime>>(),
            &rows.iter().map(|row| row.after.1).collect::<Vec<Uuid>>(),
            &rows.iter().map(|row| row.seen).collect::<Vec<OffsetDateTime>>(),
            &rows.iter().map(|row| row.withdrawals).collect::<Vec<bool>>(),
            &rows.iter().map(|row| row.limit).collect::<Vec<i64>>(),
            self.clock.offset(),
            PUSHED_FOR_SECONDS,
            WITH_BODY,
            BODY_BYTES,
        )
        .fetch_all(connection)
        .await?;
        let mut lines: HashMap<Uuid, Vec<Line>> = HashMap::new();
        for line in found {
            lines.entry(line.operation).or_default().push(line);
        }
        let lists = rows.iter().map(|row| {
            let lines = lines.remove(&row.operation.0).unwrap_or_default();
            let listed = lines.into_iter().map(|line| listed(line, &row.approver));
            listed.collect()
        });
        lists.collect()
    }
}

fn listed(line: Line, approver: &ApproverId) -> Result<Listed, sqlx::Error> {
    Ok(Listed {
        message: MessageId(line.message_id),
        created_at: line.created_at,
        bytes: usize::try_from(line.bytes.unwrap_or_default()).unwrap_or_default() + 512,
        body: line.for_approver(approver)?,
    })
}
