//! The use cases of the platform endpoints: checks rights, then calls `administration`.

use std::net::IpAddr;
use std::sync::Arc;

use crate::gateway::context::GatewayContext;
use crate::gateway::error::{Error, Result, found};
use crate::gateway::identity::administration::{
    AdminService, CredentialRequest, CredentialScope, MadeCredential,
};
use crate::gateway::identity::authenticate::ClientCertificate;
use crate::gateway::identity::caller::{
    Admin, AdminOrOperator, ApproverOrAdmin, EnforcerOrAdmin, Member, Operator,
};
use crate::gateway::page::{ListPage, PageRequest};
use crate::protocol::credential::RoleName;
use crate::protocol::decision::SigningKey;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::{ApproverId, EnforcerId, SignerKeyId, TenantId};
use crate::protocol::key_proof::KeyProof;
use crate::protocol::listing::{BoundCredential, CredentialLine, ExchangeLine, Tenant};
use crate::protocol::token::RevocationLine;
use crate::store::audit::AuditActor;
use crate::store::database::listing::ListPart;
use crate::store::exchanges::listing::ExchangeFilter;
use crate::store::identity::signing_key::NewSigningKey;

#[derive(Debug, Default)]
pub struct ExchangeListing {
    pub state: Option<ExchangeState>,
    pub enforcer: Option<EnforcerId>,
    pub approver: Option<ApproverId>,
    pub page: PageRequest,
}

/// The caller's tenant. An approver may act for itself only.
fn key_owner<'c>(caller: &'c ApproverOrAdmin, approver: &ApproverId) -> Result<&'c TenantId> {
    if let ApproverOrAdmin::Approver(caller) = caller {
        caller.acting(Some(approver.clone()), "approverId")?;
    }
    Ok(&caller.origin().tenant)
}

/// The actor that manages an approver's keys, for the audit log.
fn key_keeper(caller: &ApproverOrAdmin, approver: &ApproverId) -> AuditActor {
    match caller {
        ApproverOrAdmin::Admin(admin) => admin.actor(),
        ApproverOrAdmin::Approver(caller) => caller.actor(approver),
    }
}

impl GatewayContext {
    /// Refuses callers that may not read the keys and devices of this approver. The approver
    /// itself, administrators, and enforcers that are paired with it or have asked it may. For
    /// other enforcers there is no such approver.
    pub(in crate::gateway) async fn check_reader(
        &self,
        caller: &Member,
        approver: &ApproverId,
    ) -> Result<()> {
        match caller {
            Member::Admin(_) => Ok(()),
            Member::Approver(caller) => caller
                .acting(Some(approver.clone()), "approverId")
                .map(drop),
            Member::Enforcer(caller) => {
                let (tenant, enforcer) = (&caller.origin.tenant, caller.bound.as_ref());
                let store = &self.store.credentials;
                let known = store.knows_approver(tenant, enforcer, approver);
                found(known.await?)
            }
        }
    }
}

/// Administration over the API.
pub struct PlatformService {
    pub(in crate::gateway) context: Arc<GatewayContext>,
}

impl PlatformService {
    pub(in crate::gateway) fn new(context: &Arc<GatewayContext>) -> Self {
        Self {
            context: Arc::clone(context),
        }
    }

    /// The administration, in the name of `actor`. It checks no rights.
    pub fn administration(&self, actor: AuditActor) -> AdminService {
        AdminService::new(&self.context.store, self.context.clock.clone(), actor)
    }

    /// The administration of the credentials that the caller manages, in its name.
    pub fn managed_by(&self, caller: &AdminOrOperator) -> AdminService {
        let actor = match caller {
            AdminOrOperator::Admin(admin) => admin.actor(),
            AdminOrOperator::Operator(operator) => operator.actor(),
        };
        self.administration(actor).within(Self::scope(caller))
    }

    /// Creates a credential: an administrator any of its tenant, the operator only administrators.
    pub async fn create_credential(
        &self,
        caller: &AdminOrOperator,
        tenant: Option<TenantId>,
        request: CredentialRequest,
    ) -> Result<MadeCredential> {
        let tenant = Self::tenant_for(caller, tenant, request.role)?;
        let managed = self.managed_by(caller);
        managed.create_credential(&tenant, request).await
    }

    /// The tenant in which a caller may make credentials of this role: an administrator any in its
    /// own, the operator administrators in the one it names.
    pub(in crate::gateway) fn tenant_for(
        caller: &AdminOrOperator,
        tenant: Option<TenantId>,
        role: RoleName,
    ) -> Result<TenantId> {
        match (caller, tenant) {
            (AdminOrOperator::Admin(admin), None) => Ok(admin.origin.tenant.clone()),
            (AdminOrOperator::Admin(admin), Some(tenant)) if tenant == admin.origin.tenant => {
                Ok(tenant)
            }
            (AdminOrOperator::Admin(_), Some(_)) => Err(Error::Forbidden {
                pointer: Some("/tenantId".into()),
                expected: "your own tenant",
            }),
            (AdminOrOperator::Operator(_), None) => Err(Error::invalid(
                "/tenantId",
                "the tenant to make an administrator for (required)",
            )),
            (AdminOrOperator::Operator(_), Some(_)) if role != RoleName::Admin => {
                Err(Error::Forbidden {
                    pointer: Some("/role".into()),
                    expected: "admin",
                })
            }
            (AdminOrOperator::Operator(_), Some(tenant)) => Ok(tenant),
        }
    }

    /// The credentials that a caller manages: those of its tenant, or all administrators.
    pub(in crate::gateway) fn scope(caller: &AdminOrOperator) -> CredentialScope {
        match caller {
            AdminOrOperator::Admin(admin) => CredentialScope {
                tenant: Some(admin.origin.tenant.clone()),
                role: None,
            },
            AdminOrOperator::Operator(_) => CredentialScope {
                tenant: None,
                role: Some(RoleName::Admin),
            },
        }
    }

    pub(in crate::gateway) fn part(
        &self,
        listing: &str,
        request: &PageRequest,
    ) -> Result<ListPart> {
        Ok(ListPart {
            after: request.after(listing)?,
            limit: Some(self.context.page_limit(request)?),
        })
    }

    pub async fn tenants(&self, _: &Operator, request: &PageRequest) -> Result<ListPage<Tenant>> {
        let part = self.part("tenants", request)?;
        let (items, next) = self.context.store.credentials.tenants(&part).await?;
        Ok(ListPage::new("tenants", items, next.as_ref()))
    }

    /// Lists credentials without secrets, oldest first.
    pub async fn credentials(
        &self,
        caller: &AdminOrOperator,
        request: &PageRequest,
    ) -> Result<ListPage<CredentialLine>> {
        let CredentialScope { tenant, role } = Self::scope(caller);
        let tenant = tenant.as_ref();
        let listing = format!("credentials\n{}", tenant.map_or("", TenantId::as_str));
        let part = self.part(&listing, request)?;
        let store = &self.context.store.credentials;
        let (items, next) = store.credentials(tenant, role, &part).await?;
        Ok(ListPage::new(&listing, items, next.as_ref()))
    }

    /// Binds the certificate that the caller presents to the credential that the code is for.
    pub async fn bind_certificate(
        &self,
        code: &str,
        certificate: &ClientCertificate,
        from: IpAddr,
    ) -> Result<BoundCredential> {
        if certificate.expires_at <= self.context.clock.now() {
            return Err(Error::NoCertificate);
        }
        self.administration(AuditActor::certificate_holder(Some(from)))
            .bind_certificate(code, &certificate.thumbprint)
            .await
    }

    /// Lists the revocations of a tenant's tokens, oldest first.
    pub async fn token_revocations(
        &self,
        caller: &Admin,
        request: &PageRequest,
    ) -> Result<ListPage<RevocationLine>> {
        let tenant = &caller.origin.tenant;
        let listing = format!("token revocations\n{tenant}");
        let part = self.part(&listing, request)?;
        let store = &self.context.store.credentials;
        let (items, next) = store.token_revocations(tenant, &part).await?;
        Ok(ListPage::new(&listing, items, next.as_ref()))
    }

    /// Refuses callers that may not register a key of this approver.
    pub fn check_registrar(caller: &ApproverOrAdmin, approver: &ApproverId) -> Result<()> {
        match caller {
            ApproverOrAdmin::Approver(caller) => caller.speaking_for(approver),
            ApproverOrAdmin::Admin(_) => Ok(()),
        }
    }

    /// Registers a signing key: an administrator any, an approver only its own first with a proof.
    pub async fn register_key(
        &self,
        caller: &ApproverOrAdmin,
        approver: &ApproverId,
        mut key: NewSigningKey,
        proof: Option<KeyProof>,
    ) -> Result<()> {
        Self::check_registrar(caller, approver)?;
        let tenant = key_owner(caller, approver)?;
        let first_only = matches!(caller, ApproverOrAdmin::Approver(_));
        if let Some(proof) = proof {
            let now = self.context.clock.now();
            proof.check(tenant, approver, &key.id, &key.public_key, now)?;
            key.proof_nonce = Some(proof.nonce);
        } else if first_only {
            let expected = "a signature by the key over its own registration (required)";
            return Err(Error::invalid("/proof", expected));
        }
        self.administration(key_keeper(caller, approver))
            .register_key(tenant, approver, &key, first_only)
            .await
    }

    /// An approver's signing keys, so that its decisions can be verified.
    pub async fn signing_keys(
        &self,
        caller: &Member,
        approver: &ApproverId,
    ) -> Result<Vec<SigningKey>> {
        self.context.check_reader(caller, approver).await?;
        let store = &self.context.store.credentials;
        Ok(store.keys_of(&caller.origin().tenant, approver).await?)
    }

    pub async fn revoke_key(
        &self,
        caller: &ApproverOrAdmin,
        approver: &ApproverId,
        key: &SignerKeyId,
    ) -> Result<()> {
        let is_admin = matches!(caller, ApproverOrAdmin::Admin(_));
        self.administration(key_keeper(caller, approver))
            .revoke_key(key_owner(caller, approver)?, approver, key, is_admin)
            .await
    }

    /// Lists exchanges without payloads: an administrator all of its tenant, an enforcer its own.
    pub async fn list_exchanges(
        &self,
        caller: &EnforcerOrAdmin,
        listing: ExchangeListing,
    ) -> Result<ListPage<ExchangeLine>> {
        let limit = self.context.page_limit(&listing.page)?;
        let (tenant, enforcer) = match caller {
            EnforcerOrAdmin::Admin(admin) => (&admin.origin.tenant, listing.enforcer),
            EnforcerOrAdmin::Enforcer(caller) => match (&caller.bound, listing.enforcer) {
                (None, named) => (&caller.origin.tenant, named),
                (Some(bound), named) => {
                    caller.acting(named, "enforcerId")?;
                    (&caller.origin.tenant, Some(bound.clone()))
                }
            },
        };
        let filter = ExchangeFilter {
            state: listing.state,
            enforcer,
            approver: listing.approver,
        };
        let name = format!(
            "newest exchanges\n{tenant}\n{}\n{}\n{}",
            filter.state.map_or("", ExchangeState::as_str),
            filter.enforcer.as_ref().map_or("", EnforcerId::as_str),
            filter.approver.as_ref().map_or("", ApproverId::as_str),
        );
        let start = listing.page.after(&name)?;
        let after = start
            .as_ref()
            .map(|position| (position.at, position.id.as_str()));
        let store = &self.context.store.exchanges;
        let page = store.list_exchanges(tenant, &filter, after, limit).await?;
        Ok(ListPage::new(&name, page.items, page.next.as_ref()))
    }
}
