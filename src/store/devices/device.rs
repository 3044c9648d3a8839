//! Statements about the devices of approvers: appended, never changed. The signing key of a device is registered and revoked in
//! the transaction that appends.

use crate::protocol::device::DeviceChange;
use crate::protocol::id::{ApproverId, TenantId};
use crate::protocol::signature::PublicKey;
use crate::protocol::timestamp::Timestamp;
use crate::store::CredentialStore;
use crate::store::audit::AuditActor;
use crate::store::database::clock_offset::clock_offset;
use crate::store::error::Result;

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
        let query = sqlx::query!(
            r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as approver_id, $3::int as after,
                       $4::text as change, $5::text as device_id, $6::text as by_device,
                       $7::text as bundle, $8::text as name, $9::bytea as statement_hash,
                       $10::text::json as signed, $11::bytea as public_key,
                       $12::boolean as is_first, $13::boolean as only_key,
                       $14::interval as clock_offset,
                       $15::text::json as origin
            ),
            -- Locked, so that a revocation of the signer comes before or after.
            signer as materialized (
                select k.signer_key_id
                  from signing_keys k
                  join input i on i.tenant_id = k.tenant_id and i.approver_id = k.approver_id and i.by_device = k.signer_key_id
                 where k.revoked_at is null
                   for share of k
            ),
            own_keys as materialized (
                select k.signer_key_id, k.public_key, k.revoked_at
                  from signing_keys k
                  join input i on i.tenant_id = k.tenant_id and i.approver_id = k.approver_id
            ),
            state as materialized (
                select coalesce((select max(s.position) from device_statements s
                                  where s.tenant_id = i.tenant_id and s.approver_id = i.approver_id), 0) = i.after
                       and (i.is_first or exists (select from signer)) as current,
                       exists (select from tenants t where t.tenant_id = i.tenant_id and t.disabled_at is null) as tenant,
                       i.only_key and exists (select from own_keys k where k.signer_key_id <> i.device_id) as others,
                       i.public_key is not null
                       and exists (select from own_keys k
                                    where k.signer_key_id = i.device_id
                                      and (k.public_key <> i.public_key or k.revoked_at is not null)) as taken
                  from input i
            ),
            inserted_statement as (
                insert into device_statements (tenant_id, approver_id, position, change, accepted_at, device_id, by_device,
                                               bundle, name, statement_hash, signed)
                select i.tenant_id, i.approver_id, i.after + 1, i.change, clock_timestamp() + i.clock_offset, i.device_id,
                       i.by_device, i.bundle, i.name, i.statement_hash, i.signed
                  from input i
                 cross join state s
                 where s.current and s.tenant and not s.others and not s.taken
                returning tenant_id, approver_id, change, accepted_at, device_id, by_device, name
            ),
            inserted_key as (
                insert into signing_keys (tenant_id, approver_id, signer_key_id, public_key)
                select w.tenant_id, w.approver_id, w.device_id, i.public_key
                  from inserted_statement w
                 cross join input i
                 where i.public_key is not null
                on conflict on constraint signing_keys_pkey do nothing
            ),
            revoked_key as (
                update signing_keys k
                   set revoked_at = w.accepted_at
                  from inserted_statement w
                 where w.change = 'revoke' and k.tenant_id = w.tenant_id and k.approver_id = w.approver_id
                   and k.signer_key_id = w.device_id and k.revoked_at is null
            ),
            deleted_introductions as (
                delete from introductions i using inserted_statement w
                 where w.change = 'revoke' and i.tenant_id = w.tenant_id and i.approver_id = w.approver_id
                   and i.device_id = w.device_id
            ),
            deleted_notifications as (
                delete from notifications n using inserted_statement w
                 where w.change = 'revoke' and n.tenant_id = w.tenant_id and n.approver_id = w.approver_id
                   and n.device_id = w.device_id
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from inserted_statement w
                 cross join input i
                 cross join audit_event(i.origin, w.tenant_id, w.accepted_at,
                                        case when w.change = 'revoke' then 'device.revoked'
                                             when i.public_key is null then 'device.endorsed'
                                             else 'device.added' end,
                                        w.approver_id || '/' || w.device_id, concat_ws(' ', 'by', w.by_device, w.name)) a
            )
            select s.current as "current!", s.tenant as "tenant!", s.others as "others!", s.taken as "taken!",
                   (select w.accepted_at from inserted_statement w) as "at?: Timestamp"
              from state s
            "#,
            tenant.as_str(),
            approver.as_str(),
            new.after,
            new.change.as_str(),
            new.device,
            new.by,
            new.bundle,
            new.name,
            new.hash.as_slice(),
            new.signed,
            new.key.as_ref().map(|key| key.as_bytes().as_slice()),
            new.first,
            new.only_key,
            clock_offset(&self.database.clock),
            self.database.audit_origin(actor),
        );
        let found = self
            .database
            .pool
            .fetch_one_in_turn(tenant, approver, query);
        let found = found.await?;
        Ok(match found.at {
            Some(at) => StatementFact::Written(at),
            None if !found.tenant => StatementFact::NoTenant,
            None if !found.current => StatementFact::Stale,
            None if found.others => StatementFact::NotFirst,
            None => StatementFact::KeyTaken,
        })
    }

    /// Ends all devices of an approver, and lets the next one be the first. The same again changes nothing. False if the
    /// approver never had a device or a signing key.
    pub async fn reset_devices(
        &self,
        actor: &AuditActor,
        tenant: &TenantId,
        approver: &ApproverId,
    ) -> Result<bool> {
        let query = sqlx::query!(
            r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as approver_id,
                       $3::interval as clock_offset,
                       $4::text::json as origin
            ),
            last_statement as materialized (
                select s.position, s.change
                  from device_statements s
                  join input i on i.tenant_id = s.tenant_id and i.approver_id = s.approver_id
                 order by s.position desc
                 limit 1
            ),
            state as materialized (
                select coalesce((select l.position from last_statement l), 0) as position,
                       coalesce((select l.change from last_statement l), '') as change,
                       exists (select from last_statement)
                       or exists (select from signing_keys k
                                   where k.tenant_id = i.tenant_id and k.approver_id = i.approver_id) as known
                  from input i
            ),
            inserted_statement as (
                insert into device_statements (tenant_id, approver_id, position, change, accepted_at)
                select i.tenant_id, i.approver_id, s.position + 1, 'reset', clock_timestamp() + i.clock_offset
                  from input i
                 cross join state s
                 where s.known and s.change <> 'reset'
                returning tenant_id, approver_id, accepted_at
            ),
            revoked_keys as (
                update signing_keys k
                   set revoked_at = w.accepted_at
                  from inserted_statement w
                 where k.tenant_id = w.tenant_id and k.approver_id = w.approver_id and k.revoked_at is null
                   and exists (select from device_statements s
                                where s.tenant_id = k.tenant_id and s.approver_id = k.approver_id
                                  and s.device_id = k.signer_key_id and s.change = 'add')
                returning k.signer_key_id
            ),
            deleted_introductions as (
                delete from introductions i using inserted_statement w
                 where i.tenant_id = w.tenant_id and i.approver_id = w.approver_id
            ),
            deleted_notifications as (
                delete from notifications n using inserted_statement w
                 where n.tenant_id = w.tenant_id and n.approver_id = w.approver_id and n.kind = 'webpush'
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from inserted_statement w
                 cross join input i
                 cross join (select count(*) || ' ended' as detail from revoked_keys) r
                 cross join audit_event(i.origin, w.tenant_id, w.accepted_at, 'devices.reset', w.approver_id, r.detail) a
            )
            select s.known as "known!" from state s
            "#,
            tenant.as_str(),
            approver.as_str(),
            clock_offset(&self.database.clock),
            self.database.audit_origin(actor),
        )
        .map(|row| row.known);
        let background = &self.database.background;
        background.fetch_one_in_turn(tenant, approver, query).await
    }
}
