//! Reads approvers' signing keys, those of many approvers in one statement.

use sqlx::PgConnection;

use crate::protocol::decision::SigningKey;
use crate::protocol::id::{ApproverId, SignerKeyId, TenantId};
use crate::protocol::signature::PublicKey;
use crate::protocol::timestamp::Timestamp;
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::rows::{by_row, column};
use crate::store::database::tenant_scope::TenantScope;

#[derive(Debug)]
pub struct KeysRow {
    pub tenant: TenantId,
    pub approver: ApproverId,
}

pub struct ReadKeys;

impl BatchStatement for ReadKeys {
    const NAME: &'static str = "read_keys";
    const IS_READ: bool = true;
    type Row = KeysRow;
    type Fact = Vec<SigningKey>;

    fn tenant_scope(rows: &[KeysRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let keys = sqlx::query!(
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
        .map(|row| {
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
        by_row(rows.len(), keys.fetch_all(connection).await?)
    }
}
