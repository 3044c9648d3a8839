//! Introductions of enforcers by devices of an approver. A row counts while its device's key is in force, and while the pairing is the
//! one that it was made under; whatever ends one of them also deletes the rows.

use crate::protocol::device::MAX_INTRODUCTIONS;
use crate::protocol::id::{ApproverId, EnforcerId, TenantId};
use crate::protocol::timestamp::Timestamp;
use crate::store::CredentialStore;
use crate::store::audit::AuditActor;
use crate::store::database::clock_offset::clock_offset;
use crate::store::error::Result;

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
        let query = sqlx::query!(
            r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as approver_id,
                       $3::text as enforcer_id, $4::text as device_id, $5::timestamptz as at,
                       $6::text::json as signed, $7::bigint as most,
                       $8::interval as clock_offset,
                       $9::text::json as origin
            ),
            signer as materialized (
                select k.signer_key_id
                  from signing_keys k
                  join input i on i.tenant_id = k.tenant_id and i.approver_id = k.approver_id and i.device_id = k.signer_key_id
                 where k.revoked_at is null
                   for share of k
            ),
            pairing as materialized (
                select p.nonce
                  from pairings p
                  join input i on i.tenant_id = p.tenant_id and i.enforcer_id = p.enforcer_id and i.approver_id = p.approver_id
                 where p.revoked_at is null
                   for share of p
            ),
            standing_introduction as materialized (
                select x.introduced_at as at
                  from introductions x
                  join input i on i.tenant_id = x.tenant_id and i.approver_id = x.approver_id
                              and i.enforcer_id = x.enforcer_id and i.device_id = x.device_id
                  join pairing p on p.nonce = x.nonce
            ),
            state as materialized (
                select exists (select from tenants t where t.tenant_id = i.tenant_id and t.disabled_at is null) as tenant,
                       exists (select from signer) as signer,
                       exists (select from pairing) as paired,
                       (select s.at from standing_introduction s where s.at >= i.at) as stands,
                       (select count(*) from introductions x
                         where x.tenant_id = i.tenant_id and x.approver_id = i.approver_id
                           and (x.enforcer_id, x.device_id) <> (i.enforcer_id, i.device_id)) < i.most as room
                  from input i
            ),
            written_introduction as (
                insert into introductions (tenant_id, approver_id, enforcer_id, device_id, nonce, introduced_at, accepted_at,
                                           signed)
                select i.tenant_id, i.approver_id, i.enforcer_id, i.device_id, p.nonce, i.at,
                       clock_timestamp() + i.clock_offset, i.signed
                  from input i
                 cross join state s
                 cross join pairing p
                 where s.tenant and s.signer and s.stands is null and s.room
                on conflict on constraint introductions_pkey do update
                   set nonce = excluded.nonce, introduced_at = excluded.introduced_at, accepted_at = excluded.accepted_at,
                       signed = excluded.signed
                returning tenant_id, approver_id, enforcer_id, device_id, accepted_at
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from written_introduction w
                 cross join input i
                 cross join audit_event(i.origin, w.tenant_id, w.accepted_at, 'enforcer.introduced',
                                        w.enforcer_id || '/' || w.approver_id, 'by ' || w.device_id) a
            )
            select s.tenant as "tenant!", s.signer as "signer!", s.paired as "paired!", s.stands as "stands?: Timestamp",
                   exists (select from written_introduction) as "written!"
              from state s
            "#,
            tenant.as_str(),
            approver.as_str(),
            new.enforcer.as_str(),
            new.device,
            new.at.inner(),
            new.signed,
            i64::try_from(MAX_INTRODUCTIONS).unwrap_or(i64::MAX),
            clock_offset(&self.database.clock),
            self.database.audit_origin(actor),
        );
        let found = self
            .database
            .pool
            .fetch_one_in_turn(tenant, approver, query);
        let found = found.await?;
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
