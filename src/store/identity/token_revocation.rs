//! Revocations of tokens that others issued. Few rows: those of one subject, and those of a whole
//! tenant, replace each other, and a tenant has a bounded number.

use crate::protocol::cursor::PagePosition;
use crate::protocol::id::TenantId;
use crate::protocol::timestamp::Timestamp;
use crate::protocol::token::{RevocationLine, RevocationRequest};
use crate::store::CredentialStore;
use crate::store::audit::AuditActor;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::listing::ListPart;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;
use crate::store::identity::read_revocations::revocation_line;

/// Most revocations of one tenant: every node has them in memory.
const MAX_REVOCATIONS: i64 = 10_000;

#[derive(Debug)]
pub enum RevocationFact {
    Revoked(RevocationLine),
    /// The tenant does not exist, or is disabled.
    NoTenant,
    Full,
}

impl CredentialStore {
    /// Revokes tokens of a tenant. The same again, or an earlier time, changes nothing.
    pub async fn revoke_tokens(
        &self,
        actor: &AuditActor,
        tenant: &TenantId,
        request: &RevocationRequest,
    ) -> Result<RevocationFact> {
        let query = sqlx::query!(
            r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as kind,
                       $3::text as name, $4::timestamptz as issued_before,
                       clock_timestamp() + $5::interval as at, $6::bigint as most,
                       $7::text::json as origin
            ),
            active_tenant as (
                select t.tenant_id from tenants t join input i on i.tenant_id = t.tenant_id where t.disabled_at is null
            ),
            standing_revocation as (
                select r.issued_before, r.revoked_at
                  from token_revocations r
                  join input i on i.tenant_id = r.tenant_id and i.kind = r.kind and i.name = r.name
            ),
            room as (
                select i.most <= (select count(*) from token_revocations r where r.tenant_id = i.tenant_id) as is_full
                  from input i
            ),
            written_revocation as (
                insert into token_revocations as r (tenant_id, kind, name, issued_before, revoked_at)
                select t.tenant_id, i.kind, i.name, i.issued_before, i.at
                  from active_tenant t
                 cross join input i
                 cross join room o
                 where not o.is_full or i.kind = 'all' or exists (select from standing_revocation)
                on conflict on constraint token_revocations_pkey do update
                   set issued_before = excluded.issued_before, revoked_at = excluded.revoked_at,
                       changed_at = clock_timestamp()
                 where r.issued_before < excluded.issued_before
                returning r.tenant_id, r.kind, r.name, r.issued_before, r.revoked_at
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from written_revocation w
                 cross join input i
                 cross join audit_event(i.origin, w.tenant_id, w.revoked_at, 'tokens.revoked',
                                        case when w.kind = 'all' then 'all' else w.kind || ' ' || w.name end) a
            )
            -- Neither written nor standing: another call has just written the same.
            select exists (select from active_tenant) as "active!",
                   o.is_full and not exists (select from written_revocation)
                       and not exists (select from standing_revocation) as "full!",
                   coalesce((select w.issued_before from written_revocation w),
                            (select s.issued_before from standing_revocation s), i.issued_before) as "issued_before?: Timestamp",
                   coalesce((select w.revoked_at from written_revocation w),
                            (select s.revoked_at from standing_revocation s), i.at) as "revoked_at!: Timestamp"
              from input i
             cross join room o
            "#,
            tenant.as_str(),
            request.kind.as_str(),
            request.name.as_str(),
            request.issued_before.map(Timestamp::inner),
            clock_offset(&self.database.clock),
            MAX_REVOCATIONS,
            self.database.audit_origin(actor),
        );
        let found = self.database.background.fetch_one(tenant, query).await?;
        Ok(match (found.active, found.full) {
            (false, _) => RevocationFact::NoTenant,
            (true, true) => RevocationFact::Full,
            (true, false) => RevocationFact::Revoked(revocation_line(
                request.kind.as_str(),
                request.name.clone(),
                found.issued_before,
                found.revoked_at,
            )),
        })
    }

    /// The revocations of a tenant, oldest first, and where the next page starts.
    pub async fn token_revocations(
        &self,
        tenant: &TenantId,
        part: &ListPart,
    ) -> Result<(Vec<RevocationLine>, Option<PagePosition>)> {
        let (at, id) = part.start();
        let query = sqlx::query!(
            r#"
            select r.kind, r.name, r.issued_before as "issued_before: Timestamp", r.revoked_at
              from token_revocations r
             where r.tenant_id = $1
               and ($2::timestamptz is null or (r.revoked_at, r.kind || ' ' || r.name) > ($2, $3::text))
             order by r.revoked_at, r.kind || ' ' || r.name
             limit $4::bigint
            "#,
            tenant.as_str(),
            at,
            id,
            part.count(),
        );
        let found = self.database.background.fetch_all(tenant, query).await?;
        let (found, next) = part.cut(found, |last| PagePosition {
            at: last.revoked_at,
            id: format!("{} {}", last.kind, last.name),
        });
        let lines = found.into_iter().map(|row| {
            revocation_line(
                &row.kind,
                row.name,
                row.issued_before,
                row.revoked_at.into(),
            )
        });
        Ok((lines.collect(), next))
    }

    /// The tenants whose revocations changed lately, by the database's own clock.
    pub async fn changed_revocations(&self, within_seconds: f64) -> Result<Vec<TenantId>> {
        let query = sqlx::query!(
            r#"
            select distinct r.tenant_id as "tenant_id: TenantId"
              from token_revocations r
             where r.changed_at > (select clock_timestamp() - make_interval(secs => $1))
            "#,
            within_seconds,
        )
        .map(|row| row.tenant_id);
        // All: a node serves tokens of every tenant.
        let scope = TenantScope::All;
        self.database.background.fetch_all(scope, query).await
    }
}
