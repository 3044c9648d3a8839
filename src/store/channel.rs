//! Nodes and the channels they hold. A node's heartbeat is the lease of all its channels: once it is 15 s old, they count as
//! closed.

use time::OffsetDateTime;
use uuid::Uuid;

use super::ChannelStore;
use super::error::Result;
use super::rows::column;
use super::tenant_scope::TenantScope;
use crate::protocol::id::{ApproverId, TenantId, TextId};
use crate::protocol::wake_key::Key;

/// How long a message is pushed at all; afterwards it can still be fetched.
pub const PUSHED_FOR_SECONDS: f64 = 24.0 * 3_600.0;
/// How old a heartbeat may be.
pub const LEASE_SECONDS: f64 = 15.0;

#[derive(Debug, Clone, Copy)]
pub struct Heartbeat {
    /// Whether the lease was still valid; if not, others may have acted on its end.
    pub renewed: bool,
    /// Whether another live node has another cluster secret.
    pub secrets_differ: bool,
}

/// Whose channel a wake key stands for, as it is stored: tenant, kind, identity.
pub fn owner(key: &Key) -> Option<(&TenantId, &'static str, &str)> {
    match key {
        Key::Approver(tenant, id) => Some((tenant, "approver", id.as_str())),
        Key::Enforcer(tenant, id) => Some((tenant, "enforcer", id.as_str())),
        Key::Exchange(..) => None,
    }
}

pub(super) fn key_of(tenant: TenantId, kind: &str, identity: &str) -> sqlx::Result<Key> {
    let key = match kind {
        "approver" => TextId::parse(identity).map(|id| Key::Approver(tenant, id)),
        _ => TextId::parse(identity).map(|id| Key::Enforcer(tenant, id)),
    };
    key.ok_or_else(|| sqlx::Error::Decode("not the identity of a channel".into()))
}

impl ChannelStore {
    /// Registers this node or renews its lease, and compares its cluster secret with those of the others by their hashes.
    pub async fn heartbeat(&self, secret_check: &[u8]) -> Result<Heartbeat> {
        // All: nodes belong to no tenant.
        let mut lease = self.database.background.lease(TenantScope::All).await?;
        let before = self.database.clock.now();
        let query = sqlx::query!(
            r#"
            with renewed as (
                update nodes set heartbeat_at = clock_timestamp(), secret_check = $4
                 where node_id = $1 and heartbeat_at > clock_timestamp() - make_interval(secs => $3)
                returning node_id
            ),
            joined as (
                insert into nodes (node_id, name, started_at, heartbeat_at, secret_check)
                select $1, $2, clock_timestamp(), clock_timestamp(), $4
                 where not exists (select from renewed)
                on conflict on constraint nodes_pkey do update
                   set heartbeat_at = excluded.heartbeat_at, secret_check = excluded.secret_check
            )
            select clock_timestamp() + $5::interval as "now!",
                   exists (select from renewed) as "renewed!",
                   exists (select from nodes n
                            where n.node_id <> $1 and n.secret_check <> $4
                              and n.heartbeat_at > clock_timestamp() - make_interval(secs => $3)) as "secrets_differ!"
            "#,
            self.database.instance,
            self.database.node.as_str(),
            LEASE_SECONDS,
            secret_check,
            self.database.clock.offset(),
        );
        let beat = query.fetch_one(lease.connection()?);
        let beat = self.database.background.within(beat).await;
        let beat = lease.settle(beat)?;
        self.database
            .compare_clocks(before, beat.now, self.database.clock.now());
        Ok(Heartbeat {
            renewed: beat.renewed,
            secrets_differ: beat.secrets_differ,
        })
    }

    /// Records whether a channel's peer still responds.
    pub async fn set_channel_active(&self, key: &Key, channel: Uuid, active: bool) -> Result<()> {
        let Some((tenant, kind, identity)) = owner(key) else {
            return Ok(());
        };
        let query = sqlx::query!(
            r#"
            update channels set active = $5
             where tenant_id = $1 and kind = $2 and identity = $3 and channel_id = $4
            "#,
            tenant.as_str(),
            kind,
            identity,
            channel,
            active,
        );
        self.database.pool.execute(tenant, query).await?;
        Ok(())
    }

    /// Of these recipients, the ones with a message that may not have been sent: a recent one, or one due again.
    pub async fn recipients_with_messages(
        &self,
        keys: &[Key],
        recent_seconds: f64,
    ) -> Result<Vec<Key>> {
        let owners: Vec<_> = keys.iter().filter_map(owner).collect();
        let query = sqlx::query!(
            r#"
            select i.tenant_id as "tenant_id!: TenantId", i.kind as "kind!", i.identity as "identity!"
              from unnest($1::text[], $2::text[], $3::text[]) as i (tenant_id, kind, identity)
             cross join (select clock_timestamp() + $4::interval as at) c
             where exists (select
                             from (values ('enforcer', 'decision.deliver', c.at - make_interval(secs => $6)),
                                          ('enforcer', 'refresh.request', '-infinity'),
                                          ('enforcer', 'prompt.send', '-infinity'),
                                          ('approver', 'exchange.withdrawn', c.at - make_interval(secs => $5)))
                                  as k (recipient_kind, kind, since)
                            -- One index scan per kind: the limit keeps the planner from joining the other way around.
                            cross join lateral (
                                select from messages m
                                 where m.tenant_id = i.tenant_id and m.recipient_kind = i.kind and m.recipient = i.identity
                                   and m.kind = k.kind and m.created_at > k.since and m.acked_at is null
                                   and (m.expires_at is null or m.expires_at > c.at)
                                   and (m.next_attempt_at is null or m.next_attempt_at <= c.at)
                                 limit 1) m
                            where k.recipient_kind = i.kind)
                or (i.kind = 'approver'
                    and exists (select from inbox_items x
                                 where x.tenant_id = i.tenant_id and x.approver_id = i.identity
                                   and x.closed_at is null and x.removed_at is null and x.acked_at is null
                                   and x.created_at > c.at - make_interval(secs => $5)))
            "#,
            column(&owners, |(tenant, _, _)| *tenant) as _,
            column(&owners, |(_, kind, _)| *kind) as _,
            column(&owners, |(_, _, identity)| *identity) as _,
            self.database.clock.offset(),
            recent_seconds,
            PUSHED_FOR_SECONDS,
        );
        let scope = TenantScope::of(owners.iter().map(|(tenant, ..)| *tenant));
        let found = self.database.background.fetch_all(scope, query).await?;
        let keys = found
            .into_iter()
            .map(|row| key_of(row.tenant_id, &row.kind, &row.identity));
        Ok(keys.collect::<Result<_, _>>()?)
    }

    /// When a message of this approver was created; `None` if it has no such message.
    pub async fn message_created(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        message: Uuid,
    ) -> Result<Option<OffsetDateTime>> {
        let query = sqlx::query!(
            "select created_at from inbox_items where tenant_id = $1 and approver_id = $2 and message_id = $3",
            tenant.as_str(),
            approver.as_str(),
            message,
        )
        .map(|row| row.created_at);
        self.database.pool.fetch_optional(tenant, query).await
    }
}
