//! Manages tenants, credentials and signing keys. Checks no rights: `platform` and the command line
//! do.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::clock::Clock;
use crate::gateway::error::{Error, Result, found};
use crate::gateway::identity::authenticate::FreshKey;
use crate::protocol::credential::{BindingCode, CredentialKind, CredentialProfile, RoleName};
use crate::protocol::decision::SigningKey;
use crate::protocol::error::DeviceError;
use crate::protocol::id::{
    ApproverId, CredentialId, EnforcerId, ID_EXPECTED, SignerKeyId, TenantId, TextId,
};
use crate::protocol::listing::{BoundCredential, CredentialLine, Tenant};
use crate::protocol::reader::InvalidMember;
use crate::protocol::timestamp::Timestamp;
use crate::protocol::token::{RevocationKind, RevocationLine, RevocationRequest};
use crate::store::audit::AuditActor;
use crate::store::database::listing::ListPart;
use crate::store::error::StoreError;
use crate::store::identity::credential::{CredentialProof, NewCode, NewCredential};
use crate::store::identity::signing_key::{KeyRegistration, KeyRevocation, NewSigningKey};
use crate::store::identity::token_revocation::RevocationFact;
use crate::store::{CredentialStore, Store};

pub const MAX_NAME_CHARS: usize = 128;

/// How long the code that binds a certificate is valid.
const CODE_LIFETIME: Duration = Duration::from_secs(3_600);

#[derive(Debug)]
pub struct CredentialRequest {
    pub role: RoleName,
    /// The one id it may act as.
    pub bound_id: Option<String>,
    /// Whether an enforcer or approver may act as any id of its role. Never by default.
    pub unbound: bool,
    pub kind: CredentialKind,
    pub profile: CredentialProfile,
    pub expires_at: Option<Timestamp>,
}

/// A new credential. It holds the key or the code, so it must not be printed.
pub struct MadeCredential {
    pub id: CredentialId,
    /// Shown only this once.
    pub api_key: Option<String>,
    /// The same for a certificate: what its holder binds it with.
    pub code: Option<MadeCode>,
}

/// It must not be printed.
pub struct MadeCode {
    pub code: String,
    pub expires_at: Timestamp,
}

/// The credentials that may be managed: those of one tenant and one role where these are given.
#[derive(Debug, Clone, Default)]
pub struct CredentialScope {
    pub tenant: Option<TenantId>,
    pub role: Option<RoleName>,
}

#[derive(Clone)]
pub struct AdminService {
    pub(in crate::gateway) store: Arc<CredentialStore>,
    pub(in crate::gateway) clock: Clock,
    pub(in crate::gateway) actor: AuditActor,
    pub(in crate::gateway) scope: CredentialScope,
}

impl AdminService {
    /// `actor` is whom the audit log names. The scope is everything.
    pub fn new(store: &Store, clock: Clock, actor: AuditActor) -> Self {
        Self {
            store: Arc::clone(&store.credentials),
            clock,
            actor,
            scope: CredentialScope::default(),
        }
    }

    #[must_use]
    pub(in crate::gateway) fn within(self, scope: CredentialScope) -> Self {
        Self { scope, ..self }
    }

    /// A new id, without the underscore that separates the parts of an API key.
    pub(in crate::gateway) fn new_id<T: TextId>(&self) -> Result<T> {
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
        Ok(self.store.tenants(&ListPart::default()).await?.0)
    }

    /// Disables a tenant: its credentials stop working, its data is kept.
    pub async fn disable_tenant(&self, tenant: &TenantId) -> Result<()> {
        found(self.store.disable_tenant(&self.actor, tenant).await?)?;
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
            unbound,
            kind,
            profile,
            expires_at,
        } = request;
        check_binding(role, bound_id.as_deref(), unbound)?;
        if role == RoleName::Admin && profile.is_compat() {
            let expected = "strict, as only enforcers and approvers speak another dialect";
            return Err(Error::invalid("/profile", expected));
        }
        if expires_at.is_some_and(|at| at <= self.clock.now()) {
            return Err(Error::invalid("/expiresAt", "a time in the future"));
        }
        let id: CredentialId = self.new_id()?;
        let (proof, api_key, code) = match kind {
            CredentialKind::ApiKey => {
                let fresh = FreshKey::generate(id.clone())?;
                (CredentialProof::ApiKey(fresh.hash), Some(fresh.key), None)
            }
            CredentialKind::Certificate => {
                let (code, made) = self.new_code(&id)?;
                (CredentialProof::Certificate(code), None, Some(made))
            }
        };
        let new = NewCredential {
            tenant: tenant.clone(),
            id: id.clone(),
            role,
            bound_id,
            proof,
            profile,
            expires_at,
        };
        found(self.store.create_credential(&self.actor, &new).await?)?;
        tracing::info!(%tenant, credential = %id, role = role.as_str(), "a credential was made");
        Ok(MadeCredential { id, api_key, code })
    }

    fn new_code(&self, id: &CredentialId) -> Result<(NewCode, MadeCode)> {
        let fresh = FreshKey::code(id.clone())?;
        let expires_at = Timestamp::from(self.clock.now().inner() + CODE_LIFETIME);
        let code = NewCode {
            hash: fresh.hash,
            expires_at,
        };
        let made = MadeCode {
            code: fresh.key,
            expires_at,
        };
        Ok((code, made))
    }

    /// A new code for a certificate credential in scope. A bound certificate stays valid until
    /// another one is bound.
    pub async fn issue_code(&self, id: &CredentialId) -> Result<MadeCode> {
        let (code, made) = self.new_code(id)?;
        let CredentialScope { tenant, role } = &self.scope;
        let store = &self.store;
        let issued = store.issue_code(&self.actor, tenant.as_ref(), *role, id, &code);
        found(issued.await?)?;
        tracing::info!(credential = %id, "a code for a certificate was issued");
        Ok(made)
    }

    /// Binds a certificate, which the caller has proven to hold, to the credential of the code.
    pub async fn bind_certificate(
        &self,
        code: &str,
        thumbprint: &[u8; 32],
    ) -> Result<BoundCredential> {
        let code = BindingCode::parse(code).ok_or(Error::CodeRefused)?;
        let hash = Sha256::digest(code.secret).into();
        let bound = self
            .store
            .bind_certificate(&self.actor, &code.id, &hash, thumbprint)
            .await;
        match bound {
            Ok(Some(bound)) => {
                tracing::info!(tenant = %bound.tenant_id, credential = %bound.credential_id, "a certificate was bound");
                Ok(bound)
            }
            Ok(None) => Err(Error::CodeRefused),
            // It is bound to another valid credential. The answer does not say to which.
            Err(StoreError::Taken(_)) => Err(Error::CertificateBound),
            Err(error) => Err(error.into()),
        }
    }

    /// All credentials, of one tenant and one role where these are given.
    pub async fn credentials(
        &self,
        tenant: Option<&TenantId>,
        role: Option<RoleName>,
    ) -> Result<Vec<CredentialLine>> {
        let all = ListPart::default();
        Ok(self.store.credentials(tenant, role, &all).await?.0)
    }

    /// Revokes a credential in scope.
    pub async fn revoke_credential(&self, id: &CredentialId) -> Result<()> {
        let CredentialScope { tenant, role } = &self.scope;
        let store = &self.store;
        let revoked = store.revoke_credential(&self.actor, tenant.as_ref(), *role, id);
        found(revoked.await?)?;
        tracing::info!(credential = %id, "a credential was revoked");
        Ok(())
    }

    /// Revokes external tokens: one, those of a subject, or all that were issued before a time.
    pub async fn revoke_tokens(
        &self,
        tenant: &TenantId,
        request: &RevocationRequest,
    ) -> Result<RevocationLine> {
        // The issuer's clock may be ahead, so tokens issued until now may be dated a little later.
        // Any later time would refuse every token to come.
        let latest = Timestamp::from(self.clock.now().inner() + self.store.token_leeway);
        if request.issued_before.is_some_and(|at| at > latest) {
            let expected = "a time that has passed";
            return Err(InvalidMember::timestamp("/issuedBefore", expected).into());
        }
        let mut request = request.clone();
        if request.kind == RevocationKind::Subject {
            request.issued_before.get_or_insert(latest);
        }
        let store = &self.store;
        match store.revoke_tokens(&self.actor, tenant, &request).await? {
            RevocationFact::Revoked(line) => {
                tracing::info!(%tenant, kind = request.kind.as_str(), "tokens were revoked");
                Ok(line)
            }
            RevocationFact::NoTenant => Err(Error::NotFound),
            RevocationFact::Full => Err(Error::TooManyRevocations),
        }
    }

    pub async fn token_revocations(&self, tenant: &TenantId) -> Result<Vec<RevocationLine>> {
        let all = ListPart::default();
        Ok(self.store.token_revocations(tenant, &all).await?.0)
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
        let registered = match registered.await {
            Err(StoreError::Taken(_)) => {
                return Err(Error::Taken {
                    pointer: "/proof/nonce",
                });
            }
            registered => registered?,
        };
        match registered {
            KeyRegistration::Registered => {
                tracing::info!(%tenant, %approver, key = %key.id, "a signing key was registered");
                Ok(())
            }
            KeyRegistration::NoTenant => Err(Error::NotFound),
            KeyRegistration::Taken => Err(Error::Taken {
                pointer: "/publicKey",
            }),
            KeyRegistration::OfDevice => Err(DeviceError::KeyOfDevice.into()),
            KeyRegistration::NotTheFirst => Err(Error::Forbidden {
                pointer: None,
                expected: "an administrator: an approver registers only its first key itself; or a statement that adds a device",
            }),
            KeyRegistration::OtherPeriod => Err(Error::Forbidden {
                pointer: None,
                expected: "the same notBefore and notAfter as before, or an administrator",
            }),
        }
    }

    /// An approver's signing keys, revoked ones included.
    pub async fn keys(&self, tenant: &TenantId, approver: &ApproverId) -> Result<Vec<SigningKey>> {
        Ok(self.store.keys_of(tenant, approver).await?)
    }

    /// Revokes a signing key; that of a device, which ends with it, only with `of_device`.
    pub async fn revoke_key(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        key: &SignerKeyId,
        of_device: bool,
    ) -> Result<()> {
        let store = &self.store;
        let revoked = store.revoke_key(&self.actor, tenant, approver, key, of_device);
        match revoked.await? {
            KeyRevocation::Revoked => {
                tracing::info!(%tenant, %approver, %key, "a signing key was revoked");
                Ok(())
            }
            KeyRevocation::NotFound => Err(Error::NotFound),
            KeyRevocation::OfDevice => Err(Error::Forbidden {
                pointer: Some("signerKeyId".into()),
                expected: "a statement of a device that revokes this one, or an administrator",
            }),
        }
    }
}

/// An enforcer's or approver's credential names its id, or says explicitly that it may be any.
pub(in crate::gateway) fn check_binding(
    role: RoleName,
    bound_id: Option<&str>,
    unbound: bool,
) -> Result<()> {
    let nobody = "none, as an administrator acts as nobody";
    let required =
        "the one id it may act as (required); for any id of its role, unbound: true instead";
    let invalid = |pointer, expected| Err(Error::invalid(pointer, expected));
    let is_id = match (role, bound_id, unbound) {
        (RoleName::Admin, None, false) | (RoleName::Enforcer | RoleName::Approver, None, true) => {
            return Ok(());
        }
        (RoleName::Admin, Some(_), _) => return invalid("/boundId", nobody),
        (RoleName::Admin, None, true) => return invalid("/unbound", nobody),
        (RoleName::Enforcer | RoleName::Approver, Some(_), true) => {
            return invalid("/unbound", "false or absent, as boundId is there");
        }
        (RoleName::Enforcer | RoleName::Approver, None, false) => {
            return invalid("/boundId", required);
        }
        (RoleName::Enforcer, Some(id), false) => EnforcerId::parse(id).is_some(),
        (RoleName::Approver, Some(id), false) => ApproverId::parse(id).is_some(),
    };
    if is_id {
        Ok(())
    } else {
        invalid("/boundId", ID_EXPECTED)
    }
}
