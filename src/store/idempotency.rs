//! Idempotency keys. A statement that inserts something new binds its key itself; here repeats bind theirs.

use sqlx::PgConnection;
use sqlx::postgres::types::PgInterval;

use super::rows::column;
use crate::clock::Clock;
use crate::protocol::id::{OperationId, RequestId, TenantId};
use crate::protocol::idempotent::{InsertFact, KeyFact};
use crate::store::clock_offset::clock_offset;

#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    pub principal: String,
    pub key: String,
    /// Hash of the request's path and body.
    pub fingerprint: [u8; 32],
}

/// Rows that share a request or an idempotency key must not be in the same batch.
pub(super) fn conflict_keys(
    tenant: &TenantId,
    request: &RequestId,
    key: Option<&IdempotencyKey>,
) -> Vec<String> {
    let mut conflict_keys = vec![format!("{tenant}\n{request}")];
    if let Some(key) = key {
        // Three parts, so that it never equals the one above.
        conflict_keys.push(format!("{tenant}\n{}\n{}", key.principal, key.key));
    }
    conflict_keys
}

/// Compares the fingerprint of a request with the one its key is bound to.
pub(super) fn key_fact(sent: Option<&IdempotencyKey>, bound: Option<Vec<u8>>) -> KeyFact {
    match (sent, bound) {
        (Some(key), Some(bound)) if bound == key.fingerprint => KeyFact::Same,
        (Some(_), Some(_)) => KeyFact::Other,
        _ => KeyFact::Free,
    }
}

/// A key, and the stored request whose outcome it stands for.
pub(super) struct KeyBinding<'a> {
    pub tenant: &'a TenantId,
    pub request_id: &'a RequestId,
    pub submission_id: OperationId,
    pub key: &'a IdempotencyKey,
}

impl<'a> KeyBinding<'a> {
    /// What a repeat has to bind, if it has a key that is not bound yet.
    pub fn of_repeat<W, T, R>(
        tenant: &'a TenantId,
        request_id: &'a RequestId,
        key: Option<&'a IdempotencyKey>,
        fact: &InsertFact<W, T, R>,
    ) -> Option<Self> {
        Some(Self {
            tenant,
            request_id,
            submission_id: fact.unbound_repeat()?,
            key: key?,
        })
    }
}

/// Binds keys to requests that were stored before.
pub(super) async fn bind(
    connection: &mut PgConnection,
    bindings: &[KeyBinding<'_>],
    clock: &Clock,
    lifetime: &PgInterval,
) -> sqlx::Result<()> {
    if bindings.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        r#"
        with settings as (select $1::interval as clock_offset, $2::interval as lifetime)
        insert into idempotency_keys (tenant_id, principal, key, fingerprint, submission_id, request_id, expires_at)
        select i.tenant_id, i.principal, i.key, i.fingerprint, i.submission_id, i.request_id,
               clock_timestamp() + s.clock_offset + s.lifetime
          from unnest($3::text[], $4::text[], $5::text[], $6::bytea[], $7::uuid[], $8::text[])
               as i (tenant_id, principal, key, fingerprint, submission_id, request_id)
         cross join settings s
         order by i.tenant_id collate "C", i.principal collate "C", i.key collate "C"
        on conflict on constraint idempotency_keys_pkey do update
           set fingerprint = excluded.fingerprint,
               submission_id = excluded.submission_id,
               request_id = excluded.request_id,
               expires_at = excluded.expires_at
         -- An expired key is free, whether or not it has been deleted yet.
         where idempotency_keys.expires_at <= clock_timestamp() + (select s.clock_offset from settings s)
        "#,
        clock_offset(&clock),
        lifetime,
        column(bindings, |binding| binding.tenant) as _,
        column(bindings, |binding| &binding.key.principal) as _,
        column(bindings, |binding| &binding.key.key) as _,
        column(bindings, |binding| binding.key.fingerprint) as _,
        column(bindings, |binding| binding.submission_id) as _,
        column(bindings, |binding| binding.request_id) as _,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Frees the keys that refused attempts have bound: their id was taken in the same instant.
pub(super) async fn release(
    connection: &mut PgConnection,
    refused: &[(&TenantId, OperationId, &IdempotencyKey)],
) -> sqlx::Result<()> {
    if refused.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        r#"
        delete from idempotency_keys k
         using unnest($1::text[], $2::text[], $3::text[], $4::uuid[]) as i (tenant_id, principal, key, submission_id)
         where k.tenant_id = i.tenant_id and k.principal = i.principal and k.key = i.key
           and k.submission_id = i.submission_id
        "#,
        column(refused, |(tenant, _, _)| *tenant) as _,
        column(refused, |(_, _, key)| &key.principal) as _,
        column(refused, |(_, _, key)| &key.key) as _,
        column(refused, |(_, operation, _)| operation) as _,
    )
    .execute(connection)
    .await?;
    Ok(())
}
