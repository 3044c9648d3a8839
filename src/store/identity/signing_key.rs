//! Registers and revokes approvers' signing keys. The bytes of a key never change.

use crate::protocol::id::{ApproverId, EnforcerId, SignerKeyId, TenantId};
use crate::protocol::signature::PublicKey;
use crate::protocol::timestamp::Timestamp;
use crate::store::CredentialStore;
use crate::store::audit::AuditActor;
use crate::store::database::clock_offset::clock_offset;
use crate::store::error::Result;

#[derive(Debug)]
pub struct NewSigningKey {
    pub id: SignerKeyId,
    pub public_key: PublicKey,
    pub not_before: Option<Timestamp>,
    pub not_after: Option<Timestamp>,
    /// The nonce of the proof that its holder registers it. It counts once per approver.
    pub proof_nonce: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRegistration {
    Registered,
    NoTenant,
    /// The id belongs to another key, or to a revoked one.
    Taken,
    /// The approver has or had a key: only an administrator adds more.
    NotTheFirst,
    /// The approver has this key, for another period: only an administrator changes that.
    OtherPeriod,
    /// The id is a device's, whose key comes and goes with the device.
    OfDevice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRevocation {
    /// Now or before.
    Revoked,
    NotFound,
    OfDevice,
}

impl CredentialStore {
    /// Whether an enforcer, or any of the tenant (`None`), is paired with an approver or has asked
    /// it.
    pub async fn knows_approver(
        &self,
        tenant: &TenantId,
        enforcer: Option<&EnforcerId>,
        approver: &ApproverId,
    ) -> Result<bool> {
        let query = sqlx::query!(
            r#"
            select exists (select from asked_approvers k
                            where k.tenant_id = $1 and k.approver_id = $2 and ($3::text is null or k.enforcer_id = $3))
                or exists (select from pairings p
                            where p.tenant_id = $1 and p.approver_id = $2 and ($3::text is null or p.enforcer_id = $3)
                              and coalesce(p.revoked_at, 'infinity') = 'infinity') as "known!"
            "#,
            tenant.as_str(),
            approver.as_str(),
            enforcer.map(EnforcerId::as_str),
        )
        .map(|row| row.known);
        self.database.pool.fetch_one(tenant, query).await
    }

    /// Registers a key, or changes its period. With `first_only`, only if the approver never had
    /// one. The same key for the same period again changes nothing.
    pub async fn register_key(
        &self,
        actor: &AuditActor,
        tenant: &TenantId,
        approver: &ApproverId,
        key: &NewSigningKey,
        first_only: bool,
    ) -> Result<KeyRegistration> {
        let query = sqlx::query!(
            r#"
        with input as materialized (
            select $1::text as tenant_id, $2::text as approver_id,
                   $3::text as signer_key_id, $4::bytea as public_key,
                   $5::timestamptz as not_before,
                   $6::timestamptz as not_after, $7::boolean as first_only,
                   $8::text as proof_nonce,
                   $9::interval as clock_offset,
                   $10::text::json as origin
        ),
        own_keys as materialized (
            select k.signer_key_id, k.public_key, k.not_before, k.not_after, k.revoked_at
              from signing_keys k
              join input i on i.tenant_id = k.tenant_id and i.approver_id = k.approver_id
        ),
        state as materialized (
            select exists (select from own_keys k where k.signer_key_id <> i.signer_key_id) as others,
                   exists (select from tenants t where t.tenant_id = i.tenant_id and t.disabled_at is null) as tenant,
                   exists (select from own_keys k
                            where k.signer_key_id = i.signer_key_id and k.public_key = i.public_key
                              and k.revoked_at is null) as known,
                   exists (select from own_keys k
                            where k.signer_key_id = i.signer_key_id and k.public_key = i.public_key
                              and k.revoked_at is null
                              and row(k.not_before, k.not_after)
                                  is not distinct from row(i.not_before, i.not_after)) as same,
                   exists (select from device_statements s
                            where s.tenant_id = i.tenant_id and s.approver_id = i.approver_id
                              and s.device_id = i.signer_key_id) as device
              from input i
        ),
        written_key as (
            insert into signing_keys as k (tenant_id, approver_id, signer_key_id, public_key, not_before, not_after,
                                           proof_nonce)
            select i.tenant_id, i.approver_id, i.signer_key_id, i.public_key, i.not_before, i.not_after, i.proof_nonce
              from input i
             cross join state s
             where s.tenant and not (i.first_only and s.others) and not s.same and not s.device
            on conflict on constraint signing_keys_pkey do update
               set not_before = excluded.not_before, not_after = excluded.not_after
             where not (select i.first_only from input i) and k.public_key = excluded.public_key and k.revoked_at is null
            returning k.tenant_id, k.approver_id, k.signer_key_id
        ),
        inserted_audit as (
            insert into audit_events
            select a.*
              from written_key w
             cross join input i
             cross join audit_event(i.origin, w.tenant_id, clock_timestamp() + i.clock_offset, 'key.registered',
                                    w.approver_id || '/' || w.signer_key_id) a
        )
        select exists (select from written_key) or s.same and not (i.first_only and s.others) as "stands!",
               s.others as "others!", s.known as "known!", s.tenant as "tenant!", s.device as "device!"
          from input i
         cross join state s
        "#,
            tenant.as_str(),
            approver.as_str(),
            key.id.as_str(),
            key.public_key.as_bytes().as_slice(),
            key.not_before.map(Timestamp::inner),
            key.not_after.map(Timestamp::inner),
            first_only,
            key.proof_nonce.as_deref(),
            clock_offset(&self.database.clock),
            self.database.audit_origin(actor),
        );
        let background = &self.database.background;
        let written = background.fetch_one_in_turn(tenant, approver, query);
        let written = written.await?;
        Ok(match written {
            row if !row.tenant => KeyRegistration::NoTenant,
            row if row.device => KeyRegistration::OfDevice,
            row if row.stands => KeyRegistration::Registered,
            row if first_only && row.others => KeyRegistration::NotTheFirst,
            row if first_only && row.known => KeyRegistration::OtherPeriod,
            _ => KeyRegistration::Taken,
        })
    }

    /// Revokes a key; that of a device only with `of_device`.
    pub async fn revoke_key(
        &self,
        actor: &AuditActor,
        tenant: &TenantId,
        approver: &ApproverId,
        key: &SignerKeyId,
        of_device: bool,
    ) -> Result<KeyRevocation> {
        let query = sqlx::query!(
            r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as approver_id,
                       $3::text as signer_key_id, $4::boolean as of_device,
                       $5::interval as clock_offset,
                       $6::text::json as origin
            ),
            named_key as materialized (
                select i.tenant_id, i.approver_id, i.signer_key_id, i.clock_offset,
                       not i.of_device and exists (select from device_statements s
                                                    where s.tenant_id = i.tenant_id and s.approver_id = i.approver_id
                                                      and s.device_id = i.signer_key_id) as device,
                       exists (select from signing_keys k
                                where k.tenant_id = i.tenant_id and k.approver_id = i.approver_id
                                  and k.signer_key_id = i.signer_key_id) as known
                  from input i
            ),
            revoked_key as (
                update signing_keys k
                   set revoked_at = clock_timestamp() + n.clock_offset
                  from named_key n
                 where k.tenant_id = n.tenant_id and k.approver_id = n.approver_id and k.signer_key_id = n.signer_key_id
                   and k.revoked_at is null and not n.device
                returning k.tenant_id, k.approver_id, k.signer_key_id, k.revoked_at
            ),
            deleted_introductions as (
                delete from introductions i using revoked_key r
                 where i.tenant_id = r.tenant_id and i.approver_id = r.approver_id and i.device_id = r.signer_key_id
            ),
            deleted_notifications as (
                delete from notifications n using revoked_key r
                 where n.tenant_id = r.tenant_id and n.approver_id = r.approver_id and n.device_id = r.signer_key_id
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from revoked_key r
                 cross join input i
                 cross join audit_event(i.origin, r.tenant_id, r.revoked_at, 'key.revoked',
                                        r.approver_id || '/' || r.signer_key_id) a
            )
            select n.known as "known!", n.device as "device!" from named_key n
            "#,
            tenant.as_str(),
            approver.as_str(),
            key.as_str(),
            of_device,
            clock_offset(&self.database.clock),
            self.database.audit_origin(actor),
        )
        .map(|row| match row {
            row if !row.known => KeyRevocation::NotFound,
            row if row.device => KeyRevocation::OfDevice,
            _ => KeyRevocation::Revoked,
        });
        self.database.background.fetch_one(tenant, query).await
    }
}
