//! Lists of what an approver has not acknowledged. The first new messages come with their content, so that a channel that
//! has caught up needs no second read; the others are read when they are sent.

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::clock::Clock;
use crate::protocol::artifact::Form;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, RequestId, TenantId};
use crate::protocol::timestamp::Timestamp;
use crate::store::channels::approver_messages::{ForApprover, StoredMessage};
use crate::store::channels::terms::PUSHED_FOR_SECONDS;
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows::{by_row, column};
use crate::store::database::tenant_scope::TenantScope;

/// New messages whose content comes with the list, and bytes after which no more does.
const WITH_BODY: i64 = 8;
const BODY_BYTES: i64 = 64 << 10;

#[derive(Debug)]
pub struct ListRow {
    pub tenant: TenantId,
    pub approver: ApproverId,
    /// Only what comes after this row.
    pub after: (OffsetDateTime, Uuid),
    /// When the newest message was created that the channel has seen: later ones are new.
    pub seen: OffsetDateTime,
    pub withdrawals: bool,
    pub limit: i64,
}

#[derive(Debug)]
pub struct UnackedMessage {
    pub message: MessageId,
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
    const IS_READ: bool = true;
    type Row = ListRow;
    type Fact = Vec<UnackedMessage>;

    fn tenant_scope(rows: &[ListRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn bytes(_: &ListRow) -> usize {
        // Most lists are short and their content is small: this bounds a batch of large ones.
        16 << 10
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let found = sqlx::query_as!(
            StoredMessage,
            r#"
            select i.n as "row!", l.message_id as "message_id!: MessageId", l.created_at as "created_at!",
                   l.bytes as "bytes?", false as "withdrawn!", b.request_id as "request_id?: RequestId",
                   b.expires_at as "expires_at?: Timestamp", b.enforcer_id as "enforcer_id?: EnforcerId",
                   b.enforcer_label as "enforcer_label?", b.form as "form?: Form", b.artifact_type as "artifact_type?",
                   b.artifact_hash as "artifact_hash?", null as "state?: ExchangeState", null::timestamptz as "ended_at?: Timestamp",
                   null as "reason?", b.body as "body?", b.trace as "trace?"
              from unnest($1::text[], $2::text[], $3::timestamptz[], $4::uuid[], $5::timestamptz[], $6::boolean[],
                          $7::bigint[])
                   with ordinality as i (tenant_id, approver_id, after_at, after_id, seen_at, withdrawals, most, n)
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
                                 and x.expires_at > clock_timestamp() + $8::interval
                                 and (x.created_at, x.message_id) > (i.after_at, i.after_id)
                               order by x.created_at, x.message_id
                               limit i.most)
                             union all
                             (select m.message_id, m.created_at, null::text as request_id
                                from messages m
                               where i.withdrawals and m.tenant_id = i.tenant_id and m.recipient_kind = 'approver'
                                 and m.recipient = i.approver_id and m.kind = 'exchange.withdrawn' and m.acked_at is null
                                 and m.created_at > (select clock_timestamp() + $8::interval - make_interval(secs => $9))
                                 and (m.created_at, m.message_id) > (i.after_at, i.after_id)
                               order by m.created_at, m.message_id
                               limit i.most)
                         ) v
                        order by v.created_at, v.message_id
                        limit i.most) u
                 window before as (order by u.created_at, u.message_id)) l
             -- The limit keeps this from being turned into a hash of all exchanges.
             left join lateral (
                 select e.request_id, e.expires_at, e.enforcer_id,
                        -- As in `approver_messages`.
                        case when g.approver_id is null then n.label else g.enforcer_label end as enforcer_label, e.form, e.artifact_type, e.artifact_hash, y.body::text as body, y.trace::text as trace
                   from exchanges e
                   left join exchange_payloads y
                          on y.tenant_id = e.tenant_id and y.request_id = e.request_id and y.part = 'artifact'
                   left join enforcers n on n.tenant_id = e.tenant_id and n.enforcer_id = e.enforcer_id
                   left join pairings g on g.tenant_id = e.tenant_id and g.enforcer_id = e.enforcer_id
                                       and g.approver_id = i.approver_id
                  where l.news and l.nth <= $10 and l.total <= $11
                    and e.tenant_id = i.tenant_id and e.request_id = l.request_id
                  limit 1) b on true
             order by l.created_at, l.message_id
            "#,
            column(rows, |row| &row.tenant) as _,
            column(rows, |row| &row.approver) as _,
            &column(rows, |row| row.after.0),
            &column(rows, |row| row.after.1),
            &column(rows, |row| row.seen),
            &column(rows, |row| row.withdrawals),
            &column(rows, |row| row.limit),
            clock_offset(&self.clock),
            PUSHED_FOR_SECONDS,
            WITH_BODY,
            BODY_BYTES,
        )
        .fetch_all(connection)
        .await?;
        let found = by_row(
            rows.len(),
            found.into_iter().map(|found| (found.row, found)),
        )?;
        let lists = rows.iter().zip(found).map(|(row, found)| {
            let listed = found.into_iter().map(|found| UnackedMessage {
                message: found.message_id,
                created_at: found.created_at,
                bytes: usize::try_from(found.bytes.unwrap_or_default()).unwrap_or_default() + 512,
                body: found.for_approver(&row.approver),
            });
            listed.collect()
        });
        Ok(lists.collect())
    }
}
