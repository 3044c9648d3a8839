//! Approvers' signing keys: reads, registers and revokes them. The bytes of a key never change.

use sqlx::{Connection, PgConnection};

use super::CredentialStore;
use super::audit::AuditActor;
use super::batch::{BatchResult, BatchStatement};
use super::device::lock_keys;
use super::error::Result;
use super::rows::{by_row, column};
use super::tenant_scope::TenantScope;
use crate::protocol::decision::SigningKey;
use crate::protocol::id::{ApproverId, EnforcerId, SignerKeyId, TenantId};
use crate::protocol::signature::PublicKey;
use crate::protocol::timestamp::Timestamp;
use crate::store::clock_offset::clock_offset;

#[derive(Debug)]
pub struct KeysRow {
    pub tenant: TenantId,
    pub approver: ApproverId,
}

pub struct ReadKeys;

impl BatchStatement for ReadKeys {
    const NAME: &'static str = "read_keys";
    type Row = KeysRow;
    type Fact = Vec<SigningKey>;

    fn tenant_scope(rows: &[KeysRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let found = sqlx::query!(
            r#"
            select i.n as "n!", k.signer_key_id as "id: SignerKeyId", k.public_key as "public_key: PublicKey",
                   k.not_before as "not_before: Timestamp", k.not_after as "not_after: Timestamp",
                   k.created_at as "created_at: Timestamp", k.revoked_at as "revoked_at: Timestamp"
              from unnest($1::text[], $2::text[]) with ordinality as i (tenant_id, approver_id, n)
              join signing_keys k on k.tenant_id = i.tenant_id and k.approver_id = i.approver_id
             order by k.created_at, k.signer_key_id
            "#,
            column(rows, |row| &row.tenant) as _,
            column(rows, |row| &row.approver) as _,
        )
        .fetch_all(connection)
        .await?;
        let keys = found.into_iter().map(|row| {
            let key = SigningKey {
                id: row.id,
                public_key: row.public_key,
                not_before: row.not_before,
                not_after: row.not_after,
                created_at: row.created_at,
                revoked_at: row.revoked_at,
            };
            (row.n, key)
        });
        by_row(rows.len(), keys)
    }
}

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
    /// Whether an enforcer, or any of the tenant (`None`), is paired with an approver or has asked it.
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

    /// Registers a key. With `first_only`, only if the approver never had another. The same key again changes nothing.
    pub async fn register_key(
        &self,
        actor: &AuditActor,
        tenant: &TenantId,
        approver: &ApproverId,
        key: &NewSigningKey,
        first_only: bool,
    ) -> Result<KeyRegistration> {
        let mut lease = self.database.background.lease(tenant).await?;
        let owner = (tenant, approver);
        let outcome = self.register(lease.connection()?, actor, owner, key, first_only);
        let outcome = self.database.background.within(outcome).await;
        Ok(lease.settle_transaction(outcome)?)
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
            with refused as materialized (
                select not $1 and exists (select from device_statements
                                            where tenant_id = $2 and approver_id = $3 and device_id = $4) as device
            ),
            revoked as (
                update signing_keys
                   set revoked_at = clock_timestamp() + $5::interval
                 where tenant_id = $2 and approver_id = $3 and signer_key_id = $4 and revoked_at is null
                   and not (select r.device from refused r)
                returning tenant_id, approver_id, signer_key_id, revoked_at
            ),
            forgotten as (
                delete from introductions i using revoked r
                 where i.tenant_id = r.tenant_id and i.approver_id = r.approver_id and i.device_id = r.signer_key_id
            ),
            silenced as (
                delete from notifications n using revoked r
                 where n.tenant_id = r.tenant_id and n.approver_id = r.approver_id and n.device_id = r.signer_key_id
            ),
            audited as (
                insert into audit_events (tenant_id, at, event_id, actor, principal, action, subject, address, node)
                select r.tenant_id, r.revoked_at, $6, $7, $8, 'key.revoked', r.approver_id || '/' || r.signer_key_id, $9, $10
                  from revoked r
            )
            select exists (select from signing_keys
                            where tenant_id = $2 and approver_id = $3 and signer_key_id = $4) as "known!",
                   (select r.device from refused r) as "device!"
            "#,
            of_device,
            tenant.as_str(),
            approver.as_str(),
            key.as_str(),
            clock_offset(&self.database.clock),
            self.database.clock.operation_id().0,
            actor.name,
            actor.source.principal.as_deref(),
            actor.source.address(),
            self.database.node.as_str(),
        )
        .map(|row| match row {
            row if !row.known => KeyRevocation::NotFound,
            row if row.device => KeyRevocation::OfDevice,
            _ => KeyRevocation::Revoked,
        });
        self.database.background.fetch_one(tenant, query).await
    }

    async fn register(
        &self,
        connection: &mut PgConnection,
        actor: &AuditActor,
        (tenant, approver): (&TenantId, &ApproverId),
        key: &NewSigningKey,
        first_only: bool,
    ) -> sqlx::Result<KeyRegistration> {
        let mut transaction = connection.begin().await?;
        lock_keys(&mut transaction, tenant, approver).await?;
        let written = sqlx::query!(
        r#"
        with others as (
            select exists (select from signing_keys
                            where tenant_id = $1 and approver_id = $2 and signer_key_id <> $3) as found,
                   exists (select from tenants where tenant_id = $1 and disabled_at is null) as tenant,
                   exists (select from signing_keys
                            where tenant_id = $1 and approver_id = $2 and signer_key_id = $3
                              and public_key = $4 and revoked_at is null
                              and ($5 or row(not_before, not_after) is not distinct from row($6::timestamptz, $7::timestamptz))
                          ) as same,
                   exists (select from device_statements
                            where tenant_id = $1 and approver_id = $2 and device_id = $3) as device
        ),
        written as (
            insert into signing_keys as k (tenant_id, approver_id, signer_key_id, public_key, not_before, not_after,
                                           proof_nonce)
            select $1, $2, $3, $4, $6, $7, $8
              from others o
             where o.tenant and not ($5 and o.found) and not o.same and not o.device
            on conflict on constraint signing_keys_pkey do update
               set not_before = excluded.not_before, not_after = excluded.not_after
             where not $5 and k.public_key = excluded.public_key and k.revoked_at is null
            returning k.tenant_id, k.approver_id, k.signer_key_id
        ),
        audited as (
            insert into audit_events (tenant_id, at, event_id, actor, principal, action, subject, address, node)
            select w.tenant_id, clock_timestamp() + $9::interval, $10, $11, $12, 'key.registered',
                   w.approver_id || '/' || w.signer_key_id, $13, $14
              from written w
        )
        select exists (select from written) or o.same and not ($5 and o.found) as "stands!", o.found as "others!",
               o.tenant as "tenant!", o.device as "device!"
          from others o
        "#,
        tenant.as_str(),
        approver.as_str(),
        key.id.as_str(),
        key.public_key.as_bytes().as_slice(),
        first_only,
        key.not_before.map(Timestamp::inner),
        key.not_after.map(Timestamp::inner),
        key.proof_nonce.as_deref(),
        clock_offset(&self.database.clock),
        self.database.clock.operation_id().0,
        actor.name,
        actor.source.principal.as_deref(),
        actor.source.address(),
        self.database.node.as_str(),
    )
    .fetch_one(&mut *transaction)
    .await?;
        transaction.commit().await?;
        Ok(match written {
            row if !row.tenant => KeyRegistration::NoTenant,
            row if row.device => KeyRegistration::OfDevice,
            row if row.stands => KeyRegistration::Registered,
            row if first_only && row.others => KeyRegistration::NotTheFirst,
            _ => KeyRegistration::Taken,
        })
    }
}
