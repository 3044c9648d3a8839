//! Finds the tenants that have expired rows: one statement for many tenants, so that a pass costs
//! little where nothing is due. Also reads the floors below which no configuration shortens
//! history.

use crate::protocol::id::TenantId;
use crate::store::Database;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;
use crate::store::retention::rules::{RetentionPeriods, TenantRule};

/// A tenant and the rules by which some of its rows may be due.
#[derive(Debug)]
pub struct DueTenant {
    pub tenant: TenantId,
    pub rules: Vec<TenantRule>,
}

/// The fewest seconds that history is kept, as `deploy/roles.sql` has set it.
#[derive(Debug, Clone, Copy)]
pub struct RetentionFloors {
    pub exchanges: u64,
    pub audit: u64,
}

impl Database {
    pub async fn retention_floors(&self) -> Result<RetentionFloors> {
        let query = sqlx::query!(
            r#"
            select ceil(coalesce(max(extract(epoch from f.keep)) filter (where f.history = 'exchange_events'), 0))::bigint
                       as "exchanges!",
                   ceil(coalesce(max(extract(epoch from f.keep)) filter (where f.history = 'audit_events'), 0))::bigint
                       as "audit!"
              from retention_floors f
            "#,
        )
        .map(|row| RetentionFloors {
            exchanges: u64::try_from(row.exchanges).unwrap_or_default(),
            audit: u64::try_from(row.audit).unwrap_or_default(),
        });
        // All: the floors belong to no tenant.
        let scope = TenantScope::All;
        self.background.fetch_one(scope, query).await
    }

    /// At most `limit` tenants after this one, in the order of their ids, whether or not anything
    /// of theirs is due.
    pub async fn due_tenants(
        &self,
        keep: &RetentionPeriods,
        after: Option<&TenantId>,
        limit: i64,
    ) -> Result<Vec<DueTenant>> {
        // Each kind is one look at an index. The limits keep the planner from hashing whole tables,
        // and the orders from using another index.
        let query = sqlx::query!(
            r#"
            select t.tenant_id as "tenant: TenantId",
                   (select true from exchanges e
                     where e.tenant_id = t.tenant_id and e.accepted_at < c.exchanges
                     order by e.accepted_at limit 1) is not null as "exchanges!",
                   (select true from prompts p
                     where p.tenant_id = t.tenant_id and p.accepted_at < c.prompts
                     order by p.accepted_at limit 1) is not null as "prompts!",
                   (select true from sessions s
                     where s.tenant_id = t.tenant_id and s.heard_at < c.sessions
                     order by s.heard_at limit 1) is not null as "sessions!",
                   (select true from enforcers n
                     where n.tenant_id = t.tenant_id and n.seen_at < c.sessions
                       and coalesce(n.seen_at, 'infinity') > '-infinity'
                     order by n.seen_at limit 1) is not null as "enforcers!",
                   (select true from audit_events a
                     where a.tenant_id = t.tenant_id and a.at < c.audit
                     order by a.at limit 1) is not null as "audit!",
                   (select true from pairings g
                     where g.tenant_id = t.tenant_id and g.revoked_at < c.pairings
                     order by g.revoked_at limit 1) is not null as "pairings!",
                   (select true from routing_tokens r
                     where r.tenant_id = t.tenant_id and r.replaced_at < c.pairings
                     order by r.replaced_at limit 1) is not null as "tokens!",
                   (select true from exchange_payloads y
                     where y.tenant_id = t.tenant_id and y.part = 'artifact' and y.stored_at < c.payloads
                     order by y.stored_at limit 1) is not null as "artifacts!",
                   (select true from prompts p
                     where p.tenant_id = t.tenant_id and not p.scrubbed and p.status <> 'queued'
                       and p.accepted_at < c.payloads
                     order by p.accepted_at limit 1) is not null as "texts!",
                   (select true from session_snapshots y
                     where y.tenant_id = t.tenant_id and not y.scrubbed and y.received_at < c.payloads
                     order by y.received_at limit 1) is not null as "snapshots!"
              from (select t.tenant_id from tenants t where t.tenant_id > $8 order by t.tenant_id limit $9) t
             cross join (select n.at - $2::interval as exchanges, n.at - $3::interval as prompts, n.at - $4::interval as sessions,
                                n.at - $5::interval as audit, n.at - $6::interval as pairings, n.at - $7::interval as payloads
                           from (select clock_timestamp() + $1::interval as at) n) c
             order by t.tenant_id
            "#,
            clock_offset(&self.clock),
            keep.exchanges,
            keep.prompts,
            keep.sessions,
            keep.audit,
            keep.pairings,
            keep.payloads,
            after.map_or("", TenantId::as_str),
            limit,
        )
        .map(|row| {
            let due = [
                (TenantRule::Exchanges, row.exchanges),
                (TenantRule::Sessions, row.sessions),
                (TenantRule::Enforcers, row.enforcers),
                (TenantRule::Audit, row.audit),
                (TenantRule::Prompts, row.prompts),
                (TenantRule::Pairings, row.pairings),
                (TenantRule::Tokens, row.tokens),
                (TenantRule::Snapshots, row.snapshots),
                (TenantRule::Artifacts, row.artifacts),
                (TenantRule::PromptTexts, row.texts),
            ];
            let due = due.into_iter().filter(|(_, due)| *due);
            DueTenant {
                tenant: row.tenant,
                rules: due.map(|(rule, _)| rule).collect(),
            }
        });
        // All: the sweep serves every tenant.
        let scope = TenantScope::All;
        self.background.fetch_all(scope, query).await
    }
}
