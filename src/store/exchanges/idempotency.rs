//! Idempotency keys. A statement that inserts something new binds its key itself; here repeats bind theirs.

use sqlx::PgConnection;
use sqlx::postgres::types::PgInterval;

use crate::clock::Clock;
use crate::protocol::id::{OperationId, RequestId, TenantId};
use crate::protocol::idempotent::{InsertFact, KeyFact};
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows::column;

#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    pub principal: String,
    pub key: String,
    /// Hash of the request's path and body.
    pub fingerprint: [u8; 32],
}

/// Rows that share a request or an idempotency key must not be in the same batch.
pub(in crate::store) fn conflict_keys(
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
pub(in crate::store) fn key_fact(sent: Option<&IdempotencyKey>, bound: Option<Vec<u8>>) -> KeyFact {
    match (sent, bound) {
        (Some(key), Some(bound)) if bound == key.fingerprint => KeyFact::Same,
        (Some(_), Some(_)) => KeyFact::Other,
        _ => KeyFact::Free,
    }
}

/// A row that was sent with a key, and its fact.
pub(in crate::store) struct KeyedRow<'a, F> {
    pub operation: OperationId,
    pub tenant: &'a TenantId,
    pub request_id: &'a RequestId,
    pub key: &'a IdempotencyKey,
    pub fact: &'a F,
}

/// Binds the keys of repeats that are not bound yet, and frees those of refused rows.
pub(in crate::store) async fn settle_keys<W, T, R>(
    connection: &mut PgConnection,
    rows: &[KeyedRow<'_, InsertFact<W, T, R>>],
    clock: &Clock,
    lifetime: &PgInterval,
) -> sqlx::Result<()> {
    let repeats: Vec<_> = rows
        .iter()
        .filter_map(|row| Some((row, row.fact.unbound_repeat()?)))
        .collect();
    bind(connection, &repeats, clock, lifetime).await?;
    let refused: Vec<_> = rows
        .iter()
        .filter(|row| row.fact.already_exists())
        .collect();
    release(connection, &refused).await
}

/// Binds keys to requests that were stored before.
async fn bind<F>(
    connection: &mut PgConnection,
    repeats: &[(&KeyedRow<'_, F>, OperationId)],
    clock: &Clock,
    lifetime: &PgInterval,
) -> sqlx::Result<()> {
    if repeats.is_empty() {
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
        column(repeats, |(row, _)| row.tenant) as _,
        column(repeats, |(row, _)| &row.key.principal) as _,
        column(repeats, |(row, _)| &row.key.key) as _,
        column(repeats, |(row, _)| row.key.fingerprint) as _,
        column(repeats, |(_, submission)| submission) as _,
        column(repeats, |(row, _)| row.request_id) as _,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Frees the keys that refused attempts have bound: their id was taken in the same instant.
async fn release<F>(
    connection: &mut PgConnection,
    refused: &[&KeyedRow<'_, F>],
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
        column(refused, |row| row.tenant) as _,
        column(refused, |row| &row.key.principal) as _,
        column(refused, |row| &row.key.key) as _,
        column(refused, |row| row.operation) as _,
    )
    .execute(connection)
    .await?;
    Ok(())
}
