//! Client certificates: which credential a thumbprint stands for. One over all tenants, since it is all there is to tell
//! the tenant by.

use std::collections::HashMap;

use sqlx::PgConnection;
use uuid::Uuid;

use super::Store;
use super::batch::Work;
use super::credential::{Credential, RoleName};
use super::error::StoreError;
use super::reach::Reach;
use super::rows;
use crate::protocol::id::OperationId;

/// A thumbprint to look up.
#[derive(Debug)]
pub struct CertificateRow {
    /// This call.
    pub operation: OperationId,
    /// SHA-256 of the certificate.
    pub thumbprint: [u8; 32],
}

/// The query that reads credentials by thumbprint: gathered, so that a flood of unknown ones costs few statements.
pub struct ReadCertificates;

impl Work for ReadCertificates {
    type Row = CertificateRow;
    type Fact = Option<Credential>;

    fn reach(_: &[CertificateRow]) -> Reach<'_> {
        // Whose a certificate is, is what is asked.
        Reach::All
    }

    fn twins(_: &CertificateRow) -> Vec<String> {
        Vec::new()
    }

    fn bytes(_: &CertificateRow) -> usize {
        256
    }

    async fn run(
        &self,
        connection: &mut PgConnection,
        rows: &[CertificateRow],
    ) -> Result<Vec<Option<Credential>>, sqlx::Error> {
        let found = sqlx::query!(
            r#"
            select i.operation_id as "operation!", c.tenant_id, c.credential_id, c.role, c.bound_id, c.thumbprint,
                   c.expires_at, c.revoked_at is not null or t.disabled_at is not null as "revoked!"
              from unnest($1::uuid[], $2::bytea[]) as i (operation_id, thumbprint)
              join credentials c on c.thumbprint = i.thumbprint and c.kind = 'certificate'
              join tenants t on t.tenant_id = c.tenant_id
            "#,
            &rows.iter().map(|row| row.operation.0).collect::<Vec<Uuid>>(),
            &rows.iter().map(|row| row.thumbprint.as_slice()).collect::<Vec<_>>() as _,
        )
        .fetch_all(connection)
        .await?;
        let mut credentials = HashMap::with_capacity(found.len());
        for row in found {
            let credential = Credential {
                tenant: rows::id(&row.tenant_id)?,
                id: rows::id(&row.credential_id)?,
                role: RoleName::parse(&row.role)
                    .ok_or_else(|| sqlx::Error::Decode("an unknown role".into()))?,
                bound_id: row.bound_id,
                secret_hash: None,
                thumbprint: row.thumbprint.and_then(|print| print.try_into().ok()),
                expires_at: row.expires_at.map(Into::into),
                revoked: row.revoked,
            };
            credentials.insert(row.operation, credential);
        }
        Ok(rows
            .iter()
            .map(|row| credentials.remove(&row.operation.0))
            .collect())
    }
}

impl Store {
    /// Reads the credential that a certificate stands for.
    pub async fn certificate(
        &self,
        thumbprint: [u8; 32],
    ) -> Result<Option<Credential>, StoreError> {
        let operation = self.clock.operation_id();
        self.certificates
            .run(CertificateRow {
                operation,
                thumbprint,
            })
            .await
    }
}
