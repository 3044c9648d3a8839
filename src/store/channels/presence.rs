//! Presence of enforcers: writes their hellos and calls, in batches sorted by key, and reads both
//! together with their channels. An open channel writes nothing here; `close_statement` and
//! `lifecycle` record its end.

use std::collections::HashMap;

use time::OffsetDateTime;
use tokio::time::Instant;

use crate::protocol::id::{ApproverId, EnforcerId, TenantId};
use crate::protocol::message::raw;
use crate::protocol::presence::{CallFacts, ChannelFacts, PresenceFacts, Transport};
use crate::protocol::timestamp::Timestamp;
use crate::store::ChannelStore;
use crate::store::channels::hello_statement::HelloRow;
use crate::store::channels::terms::LEASE_SECONDS;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;

const CALLS_PER_STATEMENT: usize = 1_000;

impl ChannelStore {
    /// Writes what an enforcer's client says of itself.
    pub async fn hello(&self, row: HelloRow) -> Result<()> {
        self.hellos.run(row).await?.locked()
    }

    /// The presence of a tenant's enforcers, or of one, sorted by id; at most `most`, those that
    /// were seen last. Labels are those of the last pairing, with this approver where one is named.
    pub async fn enforcers(
        &self,
        tenant: &TenantId,
        enforcer: Option<&EnforcerId>,
        approver: Option<&ApproverId>,
        most: u32,
    ) -> Result<Vec<PresenceFacts>> {
        // Heartbeats are stored without the clock's offset, everything else with it: so times that
        // come from heartbeats are shifted when they are read.
        let query = sqlx::query!(
            r#"
            with channel as (
                select c.identity, c.transport, c.opened_at, c.channel_id,
                       c.active and n.heartbeat_at > clock_timestamp() - make_interval(secs => $1) as live,
                       greatest(c.opened_at, n.heartbeat_at) + $2::interval as seen_at,
                       -- One that went silent ended when it was opened.
                       greatest(c.opened_at, case when n.heartbeat_at <= clock_timestamp() - make_interval(secs => $1)
                                                  then n.heartbeat_at + make_interval(secs => $1) end)
                           + $2::interval as ended_at
                  from channels c
                  join nodes n on n.node_id = c.node_id
                 -- A range and not a choice, so that the key finds one.
                 where c.tenant_id = $3 and c.kind = 'enforcer'
                   and c.identity >= coalesce($4::text, '') and c.identity <= coalesce($4::text, chr(1114111))
            ),
            held as (
                select identity as enforcer_id, bool_or(live) as live, max(seen_at) as seen_at, max(ended_at) as ended_at,
                       (array_agg(transport order by live desc, opened_at desc, channel_id desc))[1] as transport
                  from channel
                 group by identity
            ),
            -- Those seen last, and those with a channel, which were seen when it was opened.
            listed as (
                (select s.enforcer_id
                   from enforcers s
                  where $4::text is null and s.tenant_id = $3 and coalesce(s.seen_at, 'infinity') > '-infinity'
                  order by s.seen_at desc, s.enforcer_id
                  limit $5)
                union
                select h.enforcer_id from held h
                union
                select $4 where $4 is not null
            ),
            noted as (
                select e.enforcer_id, e.label, e.workspace_name, e.capabilities, e.transport, e.called_at, e.closed_at,
                       e.seen_at
                  from unnest(array(select enforcer_id from listed)) as l (enforcer_id)
                  join enforcers e on e.tenant_id = $3 and e.enforcer_id = l.enforcer_id
            )
            select coalesce(e.enforcer_id, h.enforcer_id) as "enforcer_id!: EnforcerId",
                   -- Its own report does not change the label that it was paired under.
                   case when g.approver_id is null then e.label else g.enforcer_label end as "label?",
                   e.workspace_name as "workspace_name?", e.capabilities::text as "capabilities?",
                   e.transport as "noted_transport?: Transport", e.called_at as "called_at?: Timestamp",
                   e.closed_at as "closed_at?: Timestamp", e.seen_at as "seen_at?: Timestamp", h.live as "live?",
                   h.transport as "held_transport?: Transport", h.seen_at as "held_seen_at?: Timestamp",
                   h.ended_at as "ended_at?: Timestamp", clock_timestamp() + $2::interval as "now!: Timestamp"
              from noted e
              full join held h on h.enforcer_id = e.enforcer_id
              left join lateral (
                  select p.approver_id, p.enforcer_label
                    from pairings p
                   where p.tenant_id = $3 and p.enforcer_id = coalesce(e.enforcer_id, h.enforcer_id)
                     and ($6::text is null or p.approver_id = $6)
                   order by p.paired_at desc
                   limit 1) g on true
             order by greatest(e.seen_at, h.seen_at) desc, 1
             limit $5
            "#,
            LEASE_SECONDS,
            clock_offset(&self.database.clock),
            tenant.as_str(),
            enforcer.map(EnforcerId::as_str),
            i64::from(most),
            approver.map(ApproverId::as_str),
        );
        let mut facts = Vec::new();
        for row in self.database.pool.fetch_all(tenant, query).await? {
            let noted = row.noted_transport.zip(row.seen_at);
            let noted = noted.map(|(transport, seen_at)| CallFacts {
                transport,
                called_at: row.called_at,
                closed_at: row.closed_at,
                seen_at,
            });
            let held = row.held_transport.zip(row.held_seen_at.zip(row.ended_at));
            let held = held.map(|(transport, (seen_at, ended_at))| ChannelFacts {
                live: row.live.unwrap_or_default(),
                transport,
                seen_at,
                ended_at,
            });
            let capabilities = row.capabilities.map(raw).transpose();
            facts.push(PresenceFacts {
                enforcer: row.enforcer_id,
                label: row.label,
                workspace_name: row.workspace_name,
                capabilities: capabilities.map_err(|error| sqlx::Error::Decode(error.into()))?,
                noted,
                held,
                now: row.now,
            });
        }
        facts.sort_by(|one: &PresenceFacts, other| {
            one.enforcer.as_str().cmp(other.enforcer.as_str())
        });
        Ok(facts)
    }

    /// Writes when enforcers last called. A call must never be recorded later than it was, or one
    /// from before a channel's end would count as one after it: so the database's clock is read
    /// first, and the age of each call subtracted.
    pub async fn note_calls(&self, calls: &HashMap<(TenantId, EnforcerId), Instant>) -> Result<()> {
        if calls.is_empty() {
            return Ok(());
        }
        let mut sorted: Vec<_> = calls.iter().collect();
        sorted.sort_by_key(|(key, _)| *key);
        let query = sqlx::query!(
            r#"select clock_timestamp() + $1::interval as "now!""#,
            clock_offset(&self.database.clock),
        )
        .map(|row| row.now);
        // All: only the clock is read.
        let scope = TenantScope::All;
        let now = self.database.background.fetch_one(scope, query).await?;
        // Read after the database's clock: ages come out too long by the network delay, never too
        // short.
        let here = Instant::now();
        for chunk in sorted.chunks(CALLS_PER_STATEMENT) {
            let at: Vec<OffsetDateTime> = chunk
                .iter()
                .map(|(_, at)| now - here.saturating_duration_since(**at))
                .collect();
            let scope = TenantScope::of(chunk.iter().map(|((tenant, _), _)| tenant));
            let query = sqlx::query!(
                r#"
                insert into enforcers (tenant_id, enforcer_id, transport, called_at, seen_at)
                select i.tenant_id, i.enforcer_id, 'poll', i.called_at, i.called_at
                  from unnest($1::text[], $2::text[], $3::timestamptz[]) as i (tenant_id, enforcer_id, called_at)
                 order by i.tenant_id collate "C", i.enforcer_id collate "C"
                on conflict on constraint enforcers_pkey do update
                   set called_at = greatest(enforcers.called_at, excluded.called_at),
                       seen_at = greatest(enforcers.seen_at, excluded.seen_at),
                       transport = case when enforcers.closed_at >= excluded.called_at then enforcers.transport
                                        else excluded.transport end
                "#,
                column(chunk, |((tenant, _), _)| tenant) as _,
                column(chunk, |((_, enforcer), _)| enforcer) as _,
                &at,
            );
            self.database.background.execute(scope, query).await?;
        }
        Ok(())
    }
}
