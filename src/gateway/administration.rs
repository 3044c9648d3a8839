//! Manages tenants, credentials and signing keys. Checks no rights: that is up to the platform endpoints and the command
//! line.

use std::sync::Arc;

use super::authenticate::FreshKey;
use super::error::{Error, Result};
use crate::clock::Clock;
use crate::protocol::credential::RoleName;
use crate::protocol::decision::SigningKey;
use crate::protocol::id::{ApproverId, CredentialId, EnforcerId, SignerKeyId, TenantId, TextId};
use crate::protocol::listing::{CredentialLine, Tenant};
use crate::protocol::timestamp::Timestamp;
use crate::store::audit::Actor;
use crate::store::credential::{NewCredential, Proof};
use crate::store::error::StoreError;
use crate::store::listing::Part;
use crate::store::signing_key::{NewSigningKey, Registration};
use crate::store::{CredentialStore, Store};

pub const MAX_NAME_CHARS: usize = 128;

#[derive(Debug)]
pub struct CredentialRequest {
    pub role: RoleName,
    /// The one id it may act as.
    pub bound_id: Option<String>,
    /// Of a client certificate; without one the credential is an API key.
    pub thumbprint: Option<[u8; 32]>,
    pub expires_at: Option<Timestamp>,
}

/// A new credential. It holds the key, so it must not be printed.
pub struct MadeCredential {
    pub id: CredentialId,
    /// Shown only this once.
    pub api_key: Option<String>,
}

#[derive(Clone)]
pub struct Administration {
    store: Arc<CredentialStore>,
    clock: Clock,
    actor: Actor,
}

impl Administration {
    /// `actor` is whom the audit log names.
    pub fn new(store: &Store, clock: Clock, actor: Actor) -> Self {
        Self {
            store: Arc::clone(&store.credentials),
            clock,
            actor,
        }
    }

    /// A new id, without the underscore that separates the parts of an API key.
    fn new_id<T: TextId>(&self) -> Result<T> {
        T::parse(&self.clock.operation_id().0.simple().to_string()).ok_or(Error::Internal)
    }

    pub async fn create_tenant(&self, name: &str) -> Result<TenantId> {
        if name.is_empty() || name.chars().nth(MAX_NAME_CHARS).is_some() {
            return Err(Error::invalid("/name", "a string of 1 to 128 characters"));
        }
        let id: TenantId = self.new_id()?;
        self.store.create_tenant(&self.actor, &id, name).await?;
        tracing::info!(tenant = %id, "a tenant was made");
        Ok(id)
    }

    pub async fn tenants(&self) -> Result<Vec<Tenant>> {
        Ok(self.store.tenants(&Part::default()).await?.0)
    }

    /// Disables a tenant: its credentials stop working, its data is kept.
    pub async fn disable_tenant(&self, tenant: &TenantId) -> Result<()> {
        if !self.store.disable_tenant(&self.actor, tenant).await? {
            return Err(Error::NotFound);
        }
        tracing::info!(%tenant, "a tenant was disabled");
        Ok(())
    }

    pub async fn create_credential(
        &self,
        tenant: &TenantId,
        request: CredentialRequest,
    ) -> Result<MadeCredential> {
        let CredentialRequest {
            role,
            bound_id,
            thumbprint,
            expires_at,
        } = request;
        if let Some(bound) = &bound_id {
            let is_id = match role {
                RoleName::Enforcer => EnforcerId::parse(bound).is_some(),
                RoleName::Approver => ApproverId::parse(bound).is_some(),
                RoleName::Admin => {
                    return Err(Error::invalid(
                        "/boundId",
                        "none, as an administrator acts as nobody",
                    ));
                }
            };
            if !is_id {
                return Err(Error::invalid("/boundId", crate::protocol::id::ID_EXPECTED));
            }
        }
        if expires_at.is_some_and(|at| at <= self.clock.now()) {
            return Err(Error::invalid("/expiresAt", "a time to come"));
        }
        let id: CredentialId = self.new_id()?;
        let (proof, api_key) = if let Some(thumbprint) = thumbprint {
            (Proof::Certificate(thumbprint), None)
        } else {
            let fresh = FreshKey::generate(id.clone())?;
            (Proof::ApiKey(fresh.hash), Some(fresh.key))
        };
        let new = NewCredential {
            tenant: tenant.clone(),
            id: id.clone(),
            role,
            bound_id,
            proof,
            expires_at,
        };
        match self.store.create_credential(&self.actor, &new).await {
            Ok(true) => {}
            Ok(false) => return Err(Error::NotFound),
            // Taken by this or another tenant: the thumbprint alone identifies the tenant, so two cannot share one. The
            // answer does not say which tenant has it.
            Err(StoreError::Taken(_)) => {
                return Err(Error::Taken {
                    pointer: "/thumbprint",
                });
            }
            Err(error) => return Err(error.into()),
        }
        tracing::info!(%tenant, credential = %id, role = role.as_str(), "a credential was made");
        Ok(MadeCredential { id, api_key })
    }

    /// All credentials, of one tenant and one role where these are given.
    pub async fn credentials(
        &self,
        tenant: Option<&TenantId>,
        role: Option<RoleName>,
    ) -> Result<Vec<CredentialLine>> {
        let all = Part::default();
        Ok(self.store.credentials(tenant, role, &all).await?.0)
    }

    /// Revokes a credential, of this tenant and role where these are given.
    pub async fn revoke_credential(
        &self,
        tenant: Option<&TenantId>,
        role: Option<RoleName>,
        id: &CredentialId,
    ) -> Result<()> {
        let store = &self.store;
        let revoked = store.revoke_credential(&self.actor, tenant, role, id);
        if !revoked.await? {
            return Err(Error::NotFound);
        }
        tracing::info!(credential = %id, "a credential was revoked");
        Ok(())
    }

    /// Registers a signing key; with `first_only`, only if the approver has never had one.
    pub async fn register_key(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        key: &NewSigningKey,
        first_only: bool,
    ) -> Result<()> {
        let times = key.not_before.zip(key.not_after);
        if times.is_some_and(|(before, after)| before >= after) {
            return Err(Error::invalid("/notAfter", "a time after notBefore"));
        }
        let store = &self.store;
        let registered = store.register_key(&self.actor, tenant, approver, key, first_only);
        match registered.await? {
            Registration::Registered => {
                tracing::info!(%tenant, %approver, key = %key.id, "a signing key was registered");
                Ok(())
            }
            Registration::NoTenant => Err(Error::NotFound),
            Registration::Taken => Err(Error::Taken {
                pointer: "/publicKey",
            }),
            Registration::NotTheFirst => Err(Error::Forbidden {
                pointer: None,
                expected: "an administrator: an approver registers only its first key itself",
            }),
        }
    }

    /// An approver's signing keys, revoked ones included.
    pub async fn keys(&self, tenant: &TenantId, approver: &ApproverId) -> Result<Vec<SigningKey>> {
        Ok(self.store.keys_of(tenant, approver).await?)
    }

    pub async fn revoke_key(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        key: &SignerKeyId,
    ) -> Result<()> {
        let revoked = self.store.revoke_key(&self.actor, tenant, approver, key);
        if !revoked.await? {
            return Err(Error::NotFound);
        }
        tracing::info!(%tenant, %approver, %key, "a signing key was revoked");
        Ok(())
    }
}
