//! Resolves pairing codes and counts wrong ones. One statement reads, counts and judges, so that guesses on several nodes at
//! once are serialised by the counters' rows. A principal's counter is locked first, then its tenant's.

use std::time::Duration;

use crate::protocol::id::{ApproverId, TenantId};
use crate::protocol::pairing::Nonce;
use crate::store::PairingStore;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::interval::seconds;
use crate::store::error::Result;

/// How long a window of guesses lasts, from its first wrong one.
pub const WINDOW_SECONDS: u64 = 60;

/// Wrong codes in a window that are answered as such.
#[derive(Debug, Clone, Copy)]
pub struct GuessLimits {
    pub per_principal: u32,
    pub per_tenant: u32,
}

#[derive(Debug)]
pub struct ResolvedCode {
    pub nonce: Nonce,
    pub label: Option<String>,
    pub workspace: Option<String>,
    pub public_key: Option<String>,
}

#[derive(Debug)]
pub enum ResolveFact {
    Found(ResolvedCode),
    /// It is wrong, used or expired.
    Wrong,
    /// Too many were wrong, so this one was not checked.
    Refused {
        retry_after: Duration,
    },
}

impl PairingStore {
    /// Resolves a code by its hash. One that an approver has offered is for that approver alone.
    ///
    /// A principal at its limit is refused. In a tenant at its limit, so is any principal with a wrong guess in this window;
    /// one without is still accepted with a right code, so that guessers cannot keep others from pairing. That leaves each
    /// principal one guess per window.
    pub async fn resolve_code(
        &self,
        tenant: &TenantId,
        principal: &str,
        approver: Option<&ApproverId>,
        code_hash: &[u8],
        limits: GuessLimits,
    ) -> Result<ResolveFact> {
        let query = sqlx::query!(
            r#"
            with clock as materialized (select clock_timestamp() + $1::interval as at),
            found as materialized (
                select s.nonce, s.enforcer_label, s.workspace_name, s.enforcer_key
                  from pairing_sessions s, clock c
                 where s.tenant_id = $2 and s.code_hash = $3 and s.completed_at is null and s.expires_at > c.at
                   and s.enforcer_id is not null and (s.offered_by is null or s.offered_by = $8)
            ),
            guess as materialized (
                select c.at, case when exists (select from found) then 0 else 1 end as wrong
                  from clock c
            ),
            own as (
                insert into pairing_guesses as g (tenant_id, principal, started_at, failures)
                select $2, $4, u.at, u.wrong
                  from guess u
                on conflict on constraint pairing_guesses_pkey do update
                   set started_at = case when g.failures = 0 or g.started_at <= excluded.started_at - $5::interval
                                         then excluded.started_at else g.started_at end,
                       failures = case when g.started_at <= excluded.started_at - $5::interval
                                       then 0 else g.failures end + excluded.failures
                returning g.started_at, g.failures
            ),
            -- The count before this guess; the counter is locked now.
            mine as materialized (
                select u.at, u.wrong, o.started_at, o.failures - u.wrong as before, o.failures - u.wrong >= $6 as full
                  from own o, guess u
            ),
            -- A principal at its limit is refused, so its attempts do not count against the tenant.
            everyone as (
                insert into pairing_guesses as g (tenant_id, principal, started_at, failures)
                select $2, '', m.at, m.wrong
                  from mine m
                 where not m.full
                on conflict on constraint pairing_guesses_pkey do update
                   set started_at = case when g.failures = 0 or g.started_at <= excluded.started_at - $5::interval
                                         then excluded.started_at else g.started_at end,
                       failures = case when g.started_at <= excluded.started_at - $5::interval
                                       then 0 else g.failures end + excluded.failures
                returning g.started_at, g.failures
            ),
            judged as materialized (
                select m.full as own_full,
                       coalesce(e.failures - m.wrong >= $7 and (m.wrong = 1 or m.before > 0), false) as tenant_full,
                       case when m.full then m.started_at else e.started_at end as started_at
                  from mine m
                  left join everyone e on true
            ),
            marked as (
                update pairing_sessions s
                   set resolved_at = c.at
                  from found f, judged j, clock c
                 where s.tenant_id = $2 and s.nonce = f.nonce and s.resolved_at is null
                   and not j.own_full and not j.tenant_full
            )
            select j.own_full or j.tenant_full as "refused!",
                   extract(epoch from j.started_at + $5::interval - clock_timestamp() - $1::interval)::float8 as "left!",
                   f.nonce as "nonce?: Nonce", f.enforcer_label as "label?", f.workspace_name as "workspace?",
                   f.enforcer_key as "public_key?"
              from judged j
              left join found f on true
            "#,
            clock_offset(&self.database.clock),
            tenant.as_str(),
            code_hash,
            principal,
            seconds(WINDOW_SECONDS),
            i32::try_from(limits.per_principal).unwrap_or(i32::MAX),
            i32::try_from(limits.per_tenant).unwrap_or(i32::MAX),
            approver.map(ApproverId::as_str),
        );
        let row = self.database.pool.fetch_one(tenant, query).await?;
        if row.refused {
            let retry_after = Duration::try_from_secs_f64(row.left).unwrap_or_default();
            return Ok(ResolveFact::Refused { retry_after });
        }
        let Some(nonce) = row.nonce else {
            return Ok(ResolveFact::Wrong);
        };
        Ok(ResolveFact::Found(ResolvedCode {
            nonce,
            label: row.label,
            workspace: row.workspace,
            public_key: row.public_key,
        }))
    }
}
