//! Reads the revocations of tokens, those of many tenants in one statement.

use std::collections::HashMap;

use sqlx::PgConnection;

use crate::protocol::id::TenantId;
use crate::protocol::timestamp::Timestamp;
use crate::protocol::token::{RevocationLine, TokenRevocations};
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;

pub struct ReadRevocations;

impl BatchStatement for ReadRevocations {
    const NAME: &'static str = "read_revocations";
    const IS_READ: bool = true;
    type Row = TenantId;
    type Fact = TokenRevocations;

    fn tenant_scope(rows: &[TenantId]) -> TenantScope<'_> {
        TenantScope::of(rows.iter())
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let found = sqlx::query!(
            r#"
            select r.tenant_id as "tenant_id: TenantId", r.kind, r.name, r.issued_before as "issued_before: Timestamp",
                   r.revoked_at as "revoked_at: Timestamp"
              from token_revocations r
             where r.tenant_id = any($1)
            "#,
            column(rows, |tenant| tenant) as _,
        )
        .fetch_all(connection)
        .await?;
        let mut by_tenant: HashMap<TenantId, Vec<RevocationLine>> = HashMap::new();
        for row in found {
            let line = revocation_line(&row.kind, row.name, row.issued_before, row.revoked_at);
            by_tenant.entry(row.tenant_id).or_default().push(line);
        }
        let read = rows.iter().map(|tenant| {
            let mut revocations = TokenRevocations::default();
            for line in by_tenant.get(tenant).into_iter().flatten() {
                revocations.add(line.clone());
            }
            revocations
        });
        Ok(read.collect())
    }
}

/// A revocation as it is listed, from its columns.
pub(in crate::store) fn revocation_line(
    kind: &str,
    name: String,
    issued_before: Option<Timestamp>,
    revoked_at: Timestamp,
) -> RevocationLine {
    let (token_id, subject) = match kind {
        "token" => (Some(name), None),
        "subject" => (None, Some(name)),
        _ => (None, None),
    };
    RevocationLine {
        token_id,
        subject,
        issued_before,
        revoked_at,
    }
}
