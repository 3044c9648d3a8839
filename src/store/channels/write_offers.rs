//! Writes the offers of decisions that a channel has read and sent, and that nobody has acknowledged or was offered since. From
//! then on they are due again after a pause, like every other message. No offer is written if a channel was opened since: that one
//! claims the decision as never offered.

use std::time::Duration;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::clock::Clock;
use crate::protocol::id::{EnforcerId, MessageId, TenantId};
use crate::store::channels::terms::LEASE_SECONDS;
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;

#[derive(Debug)]
pub struct OfferRow {
    pub tenant: TenantId,
    pub enforcer: EnforcerId,
    pub channel: Uuid,
    pub message: MessageId,
    /// How long ago it was sent. Not when: the node's clock may have been set since it was last compared with the database's.
    pub age: Duration,
}

pub struct WriteOffers {
    pub clock: Clock,
    /// Pause before a message is offered again, in seconds.
    pub reoffer: f64,
}

impl BatchStatement for WriteOffers {
    const NAME: &'static str = "write_offer";
    type Row = OfferRow;
    type Fact = ();

    fn tenant_scope(rows: &[OfferRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        sqlx::query!(
            r#"
            with input as materialized (
                select i.*
                  from unnest($1::text[], $2::text[], $3::uuid[], $4::uuid[], $5::float8[])
                       as i (tenant_id, enforcer_id, channel_id, message_id, age)
                 -- For this transaction: an offer that a crash loses is made again, so the commit need not wait for the disk.
                 cross join (select set_config('synchronous_commit', 'off', true)) setting
                 -- A channel that was opened since takes it over, and is not to find it locked.
                 where (select true
                          from channels c
                          join nodes n on n.node_id = c.node_id
                         where c.tenant_id = i.tenant_id and c.kind = 'enforcer' and c.identity = i.enforcer_id
                           and c.active and n.heartbeat_at > clock_timestamp() - make_interval(secs => $8)
                           and c.opened_at > clock_timestamp() - make_interval(secs => i.age)
                         limit 1) is null
            ),
            -- One that is locked is being acknowledged, or claimed by another channel.
            locked as materialized (
                select i.channel_id, i.age, m.tenant_id, m.recipient, m.message_id
                  from input i
                  join messages m on m.tenant_id = i.tenant_id and m.recipient_kind = 'enforcer'
                                 and m.recipient = i.enforcer_id and m.message_id = i.message_id
                 where m.offered_at is null and coalesce(m.acked_at, 'infinity') = 'infinity'
                   for no key update of m skip locked
            )
            update messages m
               set target_channel = l.channel_id, offers = 1,
                   offered_at = clock_timestamp() - make_interval(secs => l.age),
                   next_attempt_at = clock_timestamp() + $6::interval + make_interval(secs => $7 - l.age)
              from locked l
             where m.tenant_id = l.tenant_id and m.recipient_kind = 'enforcer' and m.recipient = l.recipient
               and m.message_id = l.message_id and m.offered_at is null
            "#,
            column(rows, |row| &row.tenant) as _,
            column(rows, |row| &row.enforcer) as _,
            &column(rows, |row| row.channel),
            column(rows, |row| row.message) as _,
            &column(rows, |row| row.age.as_secs_f64()),
            clock_offset(&self.clock),
            self.reoffer,
            LEASE_SECONDS,
        )
        .execute(connection)
        .await?;
        Ok(vec![(); rows.len()])
    }
}
