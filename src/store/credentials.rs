//! Tenants, credentials and signing keys.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use super::batch::Batcher;
use super::credential::Credential;
use super::credential_lookup::{ReadCertificates, ReadCredentials};
use super::database::Database;
use super::error::Result;
use super::signing_key::{KeysRow, ReadKeys};
use super::tenant::ReadTenants;
use crate::protocol::decision::SigningKey;
use crate::protocol::id::{ApproverId, CredentialId, TenantId};

pub struct CredentialStore {
    pub(super) database: Arc<Database>,
    keys: Batcher<ReadKeys>,
    credentials: Batcher<ReadCredentials>,
    certificates: Batcher<ReadCertificates>,
    pub(super) tenants: Batcher<ReadTenants>,
}

impl CredentialStore {
    pub(super) fn new(database: &Arc<Database>, tasks: &TaskTracker) -> Self {
        Self {
            keys: database.batch(ReadKeys, tasks),
            credentials: database.batch(ReadCredentials, tasks),
            certificates: database.batch(ReadCertificates, tasks),
            tenants: database.batch(ReadTenants, tasks),
            database: Arc::clone(database),
        }
    }

    /// Reads an approver's signing keys, revoked ones included.
    pub async fn keys_of(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
    ) -> Result<Vec<SigningKey>> {
        let (tenant, approver) = (tenant.clone(), approver.clone());
        self.keys.run(KeysRow { tenant, approver }).await
    }

    pub async fn credential(&self, id: &CredentialId) -> Result<Option<Credential>> {
        self.credentials.run(id.clone()).await
    }

    /// Reads the credential of a certificate.
    pub async fn certificate(&self, thumbprint: [u8; 32]) -> Result<Option<Credential>> {
        self.certificates.run(thumbprint).await
    }
}
