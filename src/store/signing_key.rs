//! Approvers' signing keys. A key's bytes never change; it is registered, perhaps limited in time, and revoked.

use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::audit::Actor;
use super::batch::BatchStatement;
use super::error::StoreError;
use super::tenant_scope::TenantScope;
use super::{Store, rows};
use crate::protocol::decision::SigningKey;
use crate::protocol::id::{ApproverId, OperationId, SignerKeyId, TenantId};
use crate::protocol::signature::PublicKey;
use crate::protocol::timestamp::Timestamp;

#[derive(Debug)]
pub struct KeysRow {
    pub operation: OperationId,
    pub tenant: TenantId,
    pub approver: ApproverId,
}

/// The query that reads keys, revoked ones included.
pub struct ReadKeys;

impl BatchStatement for ReadKeys {
    const NAME: &'static str = "read_keys";
    type Row = KeysRow;
    type Fact = Vec<SigningKey>;

    fn tenant_scope(rows: &[KeysRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn conflict_keys(_: &KeysRow) -> Vec<String> {
        Vec::new()
    }

    fn bytes(_: &KeysRow) -> usize {
        256
    }

    async fn run(
        &self,
        connection: &mut PgConnection,
        rows: &[KeysRow],
    ) -> Result<Vec<Vec<SigningKey>>, sqlx::Error> {
        let found = sqlx::query!(
            r#"
            select i.operation_id as "operation!", k.signer_key_id, k.public_key, k.not_before, k.not_after, k.created_at,
                   k.revoked_at
              from unnest($1::uuid[], $2::text[], $3::text[]) as i (operation_id, tenant_id, approver_id)
              join signing_keys k on k.tenant_id = i.tenant_id and k.approver_id = i.approver_id
             order by k.created_at, k.signer_key_id
            "#,
            &rows.iter().map(|row| row.operation.0).collect::<Vec<Uuid>>(),
            &rows::texts(rows, |row| row.tenant.as_str()) as _,
            &rows::texts(rows, |row| row.approver.as_str()) as _,
        )
        .fetch_all(connection)
        .await?;
        let mut keys: std::collections::HashMap<Uuid, Vec<SigningKey>> =
            std::collections::HashMap::new();
        for row in found {
            keys.entry(row.operation).or_default().push(SigningKey {
                id: rows::id(&row.signer_key_id)?,
                public_key: PublicKey::from_bytes(&row.public_key).ok_or_else(|| {
                    sqlx::Error::Decode("the database holds a key that is none".into())
                })?,
                not_before: row.not_before.map(Into::into),
                not_after: row.not_after.map(Into::into),
                created_at: row.created_at.into(),
                revoked_at: row.revoked_at.map(Into::into),
            });
        }
        Ok(rows
            .iter()
            .map(|row| keys.remove(&row.operation.0).unwrap_or_default())
            .collect())
    }
}

#[derive(Debug)]
pub struct NewSigningKey {
    pub id: SignerKeyId,
    pub public_key: PublicKey,
    pub not_before: Option<Timestamp>,
    /// Valid until.
    pub not_after: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    Registered,
    /// There is no such tenant.
    NoTenant,
    /// The name belongs to another key, or to one that was revoked.
    Taken,
    /// The approver has, or had, a key: only an administrator adds more.
    NotTheFirst,
}

impl Store {
    /// Registers a key. With `first_only`, only if the approver never had one; the same key again is no change.
    pub async fn register_key(
        &self,
        actor: &Actor,
        tenant: &TenantId,
        approver: &ApproverId,
        key: &NewSigningKey,
        first_only: bool,
    ) -> Result<Registration, StoreError> {
        let mut lease = self.background.lease(TenantScope::Tenant(tenant)).await?;
        let outcome = self
            .register(
                lease.connection()?,
                actor,
                (tenant, approver),
                key,
                first_only,
            )
            .await;
        // A failure may have left the transaction open: the connection is not used again.
        match outcome {
            Ok(outcome) => Ok(lease.settle(Ok(outcome))?),
            Err(error) => Err(error.into()),
        }
    }

    /// Revokes a key. False if there is none to revoke.
    pub async fn revoke_key(
        &self,
        actor: &Actor,
        tenant: &TenantId,
        approver: &ApproverId,
        key: &SignerKeyId,
    ) -> Result<bool, StoreError> {
        let mut lease = self.background.lease(TenantScope::Tenant(tenant)).await?;
        let known = sqlx::query_scalar!(
            r#"
            with revoked as (
                update signing_keys
                   set revoked_at = clock_timestamp() + $4::interval
                 where tenant_id = $1 and approver_id = $2 and signer_key_id = $3 and revoked_at is null
                returning tenant_id, approver_id, signer_key_id, revoked_at
            ),
            audited as (
                insert into audit_events (tenant_id, at, event_id, actor, principal, action, subject, address, node)
                select r.tenant_id, r.revoked_at, $5, $6, $7, 'key.revoked', r.approver_id || '/' || r.signer_key_id, $8, $9
                  from revoked r
            )
            select exists (select from signing_keys
                            where tenant_id = $1 and approver_id = $2 and signer_key_id = $3) as "known!"
            "#,
            tenant.as_str(),
            approver.as_str(),
            key.as_str(),
            self.clock.offset(),
            self.clock.operation_id().0,
            actor.name,
            actor.source.principal.as_deref(),
            actor.source.address(),
            self.node.as_str(),
        )
        .fetch_one(lease.connection()?)
        .await;
        Ok(lease.settle(known)?)
    }

    async fn register(
        &self,
        connection: &mut PgConnection,
        actor: &Actor,
        (tenant, approver): (&TenantId, &ApproverId),
        key: &NewSigningKey,
        first_only: bool,
    ) -> Result<Registration, sqlx::Error> {
        let mut transaction = connection.begin().await?;
        // Two first keys at once would both find none; registration is rare enough to take turns.
        sqlx::query!(
            "select pg_advisory_xact_lock(hashtextextended($1 || chr(10) || $2, 0))",
            tenant.as_str(),
            approver.as_str()
        )
        .execute(&mut *transaction)
        .await?;
        let written = sqlx::query!(
        r#"
        with others as (
            select exists (select from signing_keys
                            where tenant_id = $1 and approver_id = $2 and signer_key_id <> $3) as found,
                   exists (select from tenants where tenant_id = $1 and disabled_at is null) as tenant,
                   exists (select from signing_keys
                            where tenant_id = $1 and approver_id = $2 and signer_key_id = $3
                              and public_key = $4 and revoked_at is null
                              and ($7 or row(not_before, not_after) is not distinct from row($5::timestamptz, $6::timestamptz))
                          ) as same
        ),
        written as (
            insert into signing_keys as k (tenant_id, approver_id, signer_key_id, public_key, not_before, not_after)
            select $1, $2, $3, $4, $5, $6
              from others o
             where o.tenant and not ($7 and o.found) and not o.same
            on conflict on constraint signing_keys_pkey do update
               set not_before = excluded.not_before, not_after = excluded.not_after
             where not $7 and k.public_key = excluded.public_key and k.revoked_at is null
            returning k.tenant_id, k.approver_id, k.signer_key_id
        ),
        audited as (
            insert into audit_events (tenant_id, at, event_id, actor, principal, action, subject, address, node)
            select w.tenant_id, clock_timestamp() + $8::interval, $9, $10, $11, 'key.registered',
                   w.approver_id || '/' || w.signer_key_id, $12, $13
              from written w
        )
        select exists (select from written) or o.same and not ($7 and o.found) as "stands!", o.found as "others!",
               o.tenant as "tenant!"
          from others o
        "#,
        tenant.as_str(),
        approver.as_str(),
        key.id.as_str(),
        key.public_key.as_bytes().as_slice(),
        key.not_before.map(Timestamp::inner),
        key.not_after.map(Timestamp::inner),
        first_only,
        self.clock.offset(),
        self.clock.operation_id().0,
        actor.name,
        actor.source.principal.as_deref(),
        actor.source.address(),
        self.node.as_str(),
    )
    .fetch_one(&mut *transaction)
    .await?;
        transaction.commit().await?;
        Ok(match written {
            row if !row.tenant => Registration::NoTenant,
            row if row.stands => Registration::Registered,
            row if first_only && row.others => Registration::NotTheFirst,
            _ => Registration::Taken,
        })
    }
}
