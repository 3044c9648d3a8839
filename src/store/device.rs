//! Statements about the devices of approvers: appended, never changed. The signing key of a device is registered and revoked in
//! the transaction that appends.

use sqlx::{Connection as _, PgConnection};

use super::CredentialStore;
use super::audit::AuditActor;
use super::error::Result;
use crate::protocol::device::DeviceChange;
use crate::protocol::id::{ApproverId, TenantId};
use crate::protocol::signature::PublicKey;
use crate::protocol::timestamp::Timestamp;
use crate::store::clock_offset::clock_offset;

#[derive(Debug)]
pub struct StatementRow {
    pub position: i32,
    pub change: DeviceChange,
    pub accepted_at: Timestamp,
    /// The device that is added or revoked, and the one that signed; none in a reset.
    pub device: Option<String>,
    pub by: Option<String>,
    pub bundle: Option<String>,
    pub name: Option<String>,
    /// SHA-256 of the canonical statement.
    pub hash: Option<Vec<u8>>,
    /// The signed statement as it was received.
    pub signed: Option<String>,
    /// Whether the device's signing key is registered and not revoked.
    pub key_in_force: bool,
    pub key_revoked_at: Option<Timestamp>,
}

/// Changes whenever a list of devices does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceVersion {
    pub position: i32,
    pub ended: i64,
    pub at: Option<Timestamp>,
}

#[derive(Debug)]
pub struct NewStatement<'a> {
    /// The last position that it was judged by.
    pub after: i32,
    pub change: DeviceChange,
    pub device: &'a str,
    pub by: &'a str,
    pub bundle: Option<&'a str>,
    pub name: Option<&'a str>,
    pub hash: [u8; 32],
    pub signed: &'a str,
    /// The signing key of a new device.
    pub key: Option<PublicKey>,
    /// Whether it adds the first device, which signs for itself.
    pub first: bool,
    /// Whether the approver must never have had another signing key.
    pub only_key: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementFact {
    Written(Timestamp),
    /// Others have written meanwhile, or the signer was revoked: judge it again.
    Stale,
    NoTenant,
    /// The approver has or had a signing key.
    NotFirst,
    /// The device's id is that of another or a revoked signing key.
    KeyTaken,
}

impl CredentialStore {
    /// All statements about an approver's devices, and the resets between them, in their order.
    pub async fn device_statements(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
    ) -> Result<Vec<StatementRow>> {
        let query = sqlx::query_as!(
            StatementRow,
            r#"
            select s.position, s.change as "change: DeviceChange", s.accepted_at as "accepted_at: Timestamp",
                   s.device_id as device, s.by_device as by, s.bundle, s.name, s.statement_hash as hash,
                   s.signed::text as signed,
                   k.signer_key_id is not null and k.revoked_at is null as "key_in_force!",
                   k.revoked_at as "key_revoked_at?: Timestamp"
              from device_statements s
              left join signing_keys k on k.tenant_id = s.tenant_id and k.approver_id = s.approver_id
                                      and k.signer_key_id = s.device_id
             where s.tenant_id = $1 and s.approver_id = $2
             order by s.position
            "#,
            tenant.as_str(),
            approver.as_str(),
        );
        self.database.pool.fetch_all(tenant, query).await
    }

    pub async fn device_version(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
    ) -> Result<DeviceVersion> {
        let query = sqlx::query_as!(
            DeviceVersion,
            r#"
            select coalesce(max(s.position), 0) as "position!",
                   count(distinct s.device_id) filter (where s.change = 'add' and (k.signer_key_id is null
                                                                                   or k.revoked_at is not null)) as "ended!",
                   max(s.accepted_at) as "at: Timestamp"
              from device_statements s
              left join signing_keys k on k.tenant_id = s.tenant_id and k.approver_id = s.approver_id
                                      and k.signer_key_id = s.device_id
             where s.tenant_id = $1 and s.approver_id = $2
            "#,
            tenant.as_str(),
            approver.as_str(),
        );
        self.database.pool.fetch_one(tenant, query).await
    }

    /// Appends a statement that was judged by all others up to `after`, and registers or revokes the device's signing key.
    pub async fn append_statement(
        &self,
        actor: &AuditActor,
        tenant: &TenantId,
        approver: &ApproverId,
        new: &NewStatement<'_>,
    ) -> Result<StatementFact> {
        let mut lease = self.database.pool.lease(tenant).await?;
        let outcome = self.append(lease.connection()?, actor, (tenant, approver), new);
        let outcome = self.database.pool.within(outcome).await;
        Ok(lease.settle_transaction(outcome)?)
    }

    /// Ends all devices of an approver, and lets the next one be the first. The same again changes nothing. False if the
    /// approver never had a device or a signing key.
    pub async fn reset_devices(
        &self,
        actor: &AuditActor,
        tenant: &TenantId,
        approver: &ApproverId,
    ) -> Result<bool> {
        let mut lease = self.database.background.lease(tenant).await?;
        let outcome = self.reset(lease.connection()?, actor, tenant, approver);
        let outcome = self.database.background.within(outcome).await;
        Ok(lease.settle_transaction(outcome)?)
    }

    async fn append(
        &self,
        connection: &mut PgConnection,
        actor: &AuditActor,
        (tenant, approver): (&TenantId, &ApproverId),
        new: &NewStatement<'_>,
    ) -> sqlx::Result<StatementFact> {
        let mut transaction = connection.begin().await?;
        lock_keys(&mut transaction, tenant, approver).await?;
        // The signer's key is locked, so that whoever revokes it meanwhile comes before or after.
        let found = sqlx::query!(
            r#"
            with signer as materialized (
                select k.signer_key_id
                  from signing_keys k
                 where k.tenant_id = $1 and k.approver_id = $2 and k.signer_key_id = $3 and k.revoked_at is null
                   for share of k
            ),
            state as materialized (
                select coalesce((select max(s.position) from device_statements s
                                  where s.tenant_id = $1 and s.approver_id = $2), 0) = $4
                       and ($5 or exists (select from signer)) as current,
                       exists (select from tenants t where t.tenant_id = $1 and t.disabled_at is null) as tenant,
                       $6 and exists (select from signing_keys k
                                        where k.tenant_id = $1 and k.approver_id = $2 and k.signer_key_id <> $7) as others,
                       $8::bytea is not null
                       and exists (select from signing_keys k
                                    where k.tenant_id = $1 and k.approver_id = $2 and k.signer_key_id = $7
                                      and (k.public_key <> $8 or k.revoked_at is not null)) as taken
            ),
            written as (
                insert into device_statements (tenant_id, approver_id, position, change, accepted_at, device_id, by_device,
                                               bundle, name, statement_hash, signed)
                select $1, $2, $4 + 1, $9, clock_timestamp() + $10::interval, $7, $3, $11, $12, $13, $14::text::json
                  from state s
                 where s.current and s.tenant and not s.others and not s.taken
                returning accepted_at
            ),
            registered as (
                insert into signing_keys as k (tenant_id, approver_id, signer_key_id, public_key)
                select $1, $2, $7, $8
                  from written w
                 where $8::bytea is not null
                on conflict on constraint signing_keys_pkey do nothing
            ),
            revoked as (
                update signing_keys k
                   set revoked_at = w.accepted_at
                  from written w
                 where $9 = 'revoke' and k.tenant_id = $1 and k.approver_id = $2 and k.signer_key_id = $7
                   and k.revoked_at is null
            ),
            forgotten as (
                delete from introductions i using written w
                 where $9 = 'revoke' and i.tenant_id = $1 and i.approver_id = $2 and i.device_id = $7
            ),
            silenced as (
                delete from notifications n using written w
                 where $9 = 'revoke' and n.tenant_id = $1 and n.approver_id = $2 and n.device_id = $7
            ),
            audited as (
                insert into audit_events (tenant_id, at, event_id, actor, principal, action, subject, detail, address, node)
                select $1, w.accepted_at, $15, $16, $17,
                       case when $9 = 'revoke' then 'device.revoked' when $8::bytea is null then 'device.endorsed'
                            else 'device.added' end,
                       $2 || '/' || $7, concat_ws(' ', 'by', $3, $12), $18, $19
                  from written w
            )
            select s.current as "current!", s.tenant as "tenant!", s.others as "others!", s.taken as "taken!",
                   (select w.accepted_at from written w) as "at?: Timestamp"
              from state s
            "#,
            tenant.as_str(),
            approver.as_str(),
            new.by,
            new.after,
            new.first,
            new.only_key,
            new.device,
            new.key.as_ref().map(|key| key.as_bytes().as_slice()),
            new.change.as_str(),
            clock_offset(&self.database.clock),
            new.bundle,
            new.name,
            new.hash.as_slice(),
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
        Ok(match found.at {
            Some(at) => StatementFact::Written(at),
            None if !found.tenant => StatementFact::NoTenant,
            None if !found.current => StatementFact::Stale,
            None if found.others => StatementFact::NotFirst,
            None => StatementFact::KeyTaken,
        })
    }

    async fn reset(
        &self,
        connection: &mut PgConnection,
        actor: &AuditActor,
        tenant: &TenantId,
        approver: &ApproverId,
    ) -> sqlx::Result<bool> {
        let mut transaction = connection.begin().await?;
        lock_keys(&mut transaction, tenant, approver).await?;
        let known = sqlx::query_scalar!(
            r#"
            with last as materialized (
                select s.position, s.change
                  from device_statements s
                 where s.tenant_id = $1 and s.approver_id = $2
                 order by s.position desc
                 limit 1
            ),
            state as materialized (
                select coalesce((select l.position from last l), 0) as position,
                       coalesce((select l.change from last l), '') as change,
                       exists (select from last)
                       or exists (select from signing_keys k where k.tenant_id = $1 and k.approver_id = $2) as known
            ),
            written as (
                insert into device_statements (tenant_id, approver_id, position, change, accepted_at)
                select $1, $2, s.position + 1, 'reset', clock_timestamp() + $3::interval
                  from state s
                 where s.known and s.change <> 'reset'
                returning accepted_at
            ),
            ended as (
                update signing_keys k
                   set revoked_at = w.accepted_at
                  from written w
                 where k.tenant_id = $1 and k.approver_id = $2 and k.revoked_at is null
                   and exists (select from device_statements s
                                where s.tenant_id = $1 and s.approver_id = $2 and s.device_id = k.signer_key_id
                                  and s.change = 'add')
                returning k.signer_key_id
            ),
            forgotten as (
                delete from introductions i using written w where i.tenant_id = $1 and i.approver_id = $2
            ),
            silenced as (
                delete from notifications n using written w
                 where n.tenant_id = $1 and n.approver_id = $2 and n.kind = 'webpush'
            ),
            audited as (
                insert into audit_events (tenant_id, at, event_id, actor, principal, action, subject, detail, address, node)
                select $1, w.accepted_at, $4, $5, $6, 'devices.reset', $2, (select count(*) from ended) || ' ended', $7, $8
                  from written w
            )
            select s.known as "known!" from state s
            "#,
            tenant.as_str(),
            approver.as_str(),
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
        Ok(known)
    }
}

/// Serialises what gives an approver keys: two first ones at once would both find none, and a decision without a signature asks
/// whether there is one. Rare enough.
pub(super) async fn lock_keys(
    connection: &mut PgConnection,
    tenant: &TenantId,
    approver: &ApproverId,
) -> sqlx::Result<()> {
    sqlx::query!(
        "select pg_advisory_xact_lock(hashtextextended($1 || chr(10) || $2, 0))",
        tenant.as_str(),
        approver.as_str()
    )
    .execute(connection)
    .await?;
    Ok(())
}
