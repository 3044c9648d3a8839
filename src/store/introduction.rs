//! Introductions of enforcers by devices of an approver. A row counts while its device's key is in force, and while the pairing is the
//! one that it was made under; whatever ends one of them also deletes the rows.

use sqlx::{Connection as _, PgConnection};

use super::CredentialStore;
use super::audit::AuditActor;
use super::device::lock_keys;
use super::error::Result;
use crate::protocol::device::MAX_INTRODUCTIONS;
use crate::protocol::id::{ApproverId, EnforcerId, TenantId};
use crate::protocol::timestamp::Timestamp;
use crate::store::clock_offset::clock_offset;

#[derive(Debug)]
pub struct NewIntroduction<'a> {
    pub enforcer: &'a EnforcerId,
    pub device: &'a str,
    pub at: Timestamp,
    pub signed: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntroductionFact {
    Written,
    /// The device has introduced the enforcer already, at this time or later.
    Stands(Timestamp),
    NoTenant,
    /// The device's key is not, or no longer, in force.
    NoSigner,
    NotPaired,
    TooMany,
}

impl CredentialStore {
    /// All introductions by devices in force of enforcers that are paired, as they were received.
    pub async fn introductions(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
    ) -> Result<Vec<String>> {
        let query = sqlx::query!(
            r#"
            select i.signed::text as "signed!"
              from introductions i
              join signing_keys k on k.tenant_id = i.tenant_id and k.approver_id = i.approver_id
                                 and k.signer_key_id = i.device_id and k.revoked_at is null
              join pairings p on p.tenant_id = i.tenant_id and p.enforcer_id = i.enforcer_id
                             and p.approver_id = i.approver_id and p.nonce = i.nonce
                             and coalesce(p.revoked_at, 'infinity') = 'infinity'
             where i.tenant_id = $1 and i.approver_id = $2
             order by i.enforcer_id, i.device_id
            "#,
            tenant.as_str(),
            approver.as_str(),
        )
        .map(|row| row.signed);
        self.database.pool.fetch_all(tenant, query).await
    }

    /// Writes an introduction whose signature was verified.
    pub async fn introduce(
        &self,
        actor: &AuditActor,
        tenant: &TenantId,
        approver: &ApproverId,
        new: &NewIntroduction<'_>,
    ) -> Result<IntroductionFact> {
        let mut lease = self.database.pool.lease(tenant).await?;
        let outcome = self.write_introduction(lease.connection()?, actor, (tenant, approver), new);
        let outcome = self.database.pool.within(outcome).await;
        Ok(lease.settle_transaction(outcome)?)
    }

    async fn write_introduction(
        &self,
        connection: &mut PgConnection,
        actor: &AuditActor,
        (tenant, approver): (&TenantId, &ApproverId),
        new: &NewIntroduction<'_>,
    ) -> sqlx::Result<IntroductionFact> {
        let mut transaction = connection.begin().await?;
        // One at a time, so that they can be counted.
        lock_keys(&mut transaction, tenant, approver).await?;
        let found = sqlx::query!(
            r#"
            with signer as materialized (
                select k.signer_key_id
                  from signing_keys k
                 where k.tenant_id = $1 and k.approver_id = $2 and k.signer_key_id = $3 and k.revoked_at is null
                   for share of k
            ),
            paired as materialized (
                select p.nonce
                  from pairings p
                 where p.tenant_id = $1 and p.enforcer_id = $4 and p.approver_id = $2
                   and coalesce(p.revoked_at, 'infinity') = 'infinity'
                   for share of p
            ),
            standing as materialized (
                select i.introduced_at as at
                  from introductions i
                  join paired p on p.nonce = i.nonce
                 where i.tenant_id = $1 and i.approver_id = $2 and i.enforcer_id = $4 and i.device_id = $3
            ),
            state as materialized (
                select exists (select from tenants t where t.tenant_id = $1 and t.disabled_at is null) as tenant,
                       exists (select from signer) as signer,
                       exists (select from paired) as paired,
                       (select s.at from standing s where s.at >= $5) as stands,
                       (select count(*) from introductions i
                         where i.tenant_id = $1 and i.approver_id = $2
                           and (i.enforcer_id, i.device_id) <> ($4, $3)) < $6 as room
            ),
            written as (
                insert into introductions as i (tenant_id, approver_id, enforcer_id, device_id, nonce, introduced_at,
                                                accepted_at, signed)
                select $1, $2, $4, $3, p.nonce, $5, clock_timestamp() + $7::interval, $8::text::json
                  from state s
                 cross join paired p
                 where s.tenant and s.signer and s.stands is null and s.room
                on conflict on constraint introductions_pkey do update
                   set nonce = excluded.nonce, introduced_at = excluded.introduced_at, accepted_at = excluded.accepted_at,
                       signed = excluded.signed
                returning accepted_at
            ),
            audited as (
                insert into audit_events (tenant_id, at, event_id, actor, principal, action, subject, detail, address, node)
                select $1, w.accepted_at, $9, $10, $11, 'enforcer.introduced', $4 || '/' || $2, 'by ' || $3, $12, $13
                  from written w
            )
            select s.tenant as "tenant!", s.signer as "signer!", s.paired as "paired!", s.stands as "stands?: Timestamp",
                   exists (select from written) as "written!"
              from state s
            "#,
            tenant.as_str(),
            approver.as_str(),
            new.device,
            new.enforcer.as_str(),
            new.at.inner(),
            i64::try_from(MAX_INTRODUCTIONS).unwrap_or(i64::MAX),
            clock_offset(&self.database.clock),
            new.signed,
            self.database.clock.operation_id().0,
            actor.name,
            actor.source.principal.as_deref(),
            actor.source.address(),
            self.database.node.as_str(),
        )
        .fetch_one(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(match found {
            found if found.written => IntroductionFact::Written,
            found if !found.tenant => IntroductionFact::NoTenant,
            found if !found.signer => IntroductionFact::NoSigner,
            found if !found.paired => IntroductionFact::NotPaired,
            found => match found.stands {
                Some(at) => IntroductionFact::Stands(at),
                None => IntroductionFact::TooMany,
            },
        })
    }
}
