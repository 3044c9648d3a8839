//! Invitations: a caller that may create a credential may instead send a link, which gives that
//! credential once.

use std::net::IpAddr;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::gateway::error::{Error, Result, found};
use crate::gateway::identity::administration::{AdminService, CredentialScope, check_binding};
use crate::gateway::identity::authenticate::{FreshKey, random_text};
use crate::gateway::identity::caller::AdminOrOperator;
use crate::gateway::identity::platform::PlatformService;
use crate::gateway::page::{ListPage, PageRequest};
use crate::protocol::credential::RoleName;
use crate::protocol::id::{CredentialId, InvitationId, TenantId};
use crate::protocol::listing::InvitationLine;
use crate::protocol::reader::InvalidMember;
use crate::protocol::timestamp::Timestamp;
use crate::store::audit::AuditActor;
use crate::store::database::listing::ListPart;
use crate::store::identity::invitation::{InvitationWithdrawal, JoinedCredential, NewInvitation};

pub const MAX_NAME_CHARS: usize = 128;
const INVITATION_LIFETIME: Duration = Duration::from_secs(24 * 3_600);
const MAX_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3_600);

#[derive(Debug)]
pub struct InvitationRequest {
    pub role: RoleName,
    /// The one id that the credential may act as; none for an administrator.
    pub bound_id: Option<String>,
    /// For people.
    pub name: Option<String>,
    pub expires_at: Option<Timestamp>,
}

/// A new invitation. It holds the code, so it must not be printed.
pub struct MadeInvitation {
    pub id: InvitationId,
    pub tenant: TenantId,
    pub expires_at: Timestamp,
    /// Shown only this once.
    code: String,
}

impl MadeInvitation {
    /// The link, for a page at this address. A browser keeps what is behind `#` to itself.
    pub fn link(&self, page: &str) -> String {
        format!("{}/#/join/{}", page.trim_end_matches('/'), self.code)
    }
}

/// The credential that an invitation gave. It holds the key, so it must not be printed.
pub struct IssuedCredential {
    pub credential: JoinedCredential,
    pub id: CredentialId,
    /// Shown only this once.
    pub api_key: String,
}

impl AdminService {
    pub async fn invite(
        &self,
        tenant: &TenantId,
        request: InvitationRequest,
    ) -> Result<MadeInvitation> {
        let InvitationRequest {
            role,
            bound_id,
            name,
            expires_at,
        } = request;
        check_binding(role, bound_id.as_deref(), false)?;
        let now = self.clock.now().inner();
        let expires_at = expires_at.unwrap_or_else(|| Timestamp::from(now + INVITATION_LIFETIME));
        if expires_at.inner() <= now || expires_at.inner() > now + MAX_LIFETIME {
            let expected = "a time in the future, within 7 days";
            return Err(InvalidMember::timestamp("/expiresAt", expected).into());
        }
        let code = random_text::<32>()?;
        let new = NewInvitation {
            tenant: tenant.clone(),
            id: self.new_id()?,
            role,
            bound_id,
            name,
            code_hash: Sha256::digest(&code).into(),
            expires_at,
        };
        found(self.store.create_invitation(&self.actor, &new).await?)?;
        tracing::info!(%tenant, invitation = %new.id, role = role.as_str(), "an invitation was made");
        Ok(MadeInvitation {
            id: new.id,
            tenant: new.tenant,
            expires_at,
            code,
        })
    }

    /// All invitations, of one tenant where one is given.
    pub async fn invitations(&self, tenant: Option<&TenantId>) -> Result<Vec<InvitationLine>> {
        let all = ListPart::default();
        Ok(self.store.invitations(tenant, None, &all).await?.0)
    }

    /// Withdraws an invitation in scope.
    pub async fn withdraw_invitation(&self, id: &InvitationId) -> Result<()> {
        let CredentialScope { tenant, role } = &self.scope;
        let store = &self.store;
        let withdrawn = store.withdraw_invitation(&self.actor, tenant.as_ref(), *role, id);
        match withdrawn.await? {
            InvitationWithdrawal::Withdrawn => {
                tracing::info!(invitation = %id, "an invitation was withdrawn");
                Ok(())
            }
            InvitationWithdrawal::NotFound => Err(Error::NotFound),
            InvitationWithdrawal::Used => Err(Error::InvitationUsed),
        }
    }

    /// Makes the credential that the code stands for. Every wrong code gets the same answer.
    pub async fn join(&self, code: &str) -> Result<IssuedCredential> {
        let fresh = FreshKey::generate(self.new_id()?)?;
        let hash = Sha256::digest(code).into();
        let store = &self.store;
        let joined = store.join(&self.actor, &hash, &fresh.id, &fresh.hash);
        let credential = joined.await?.ok_or(Error::NotFound)?;
        let (tenant, invitation) = (&credential.tenant, &credential.invitation);
        tracing::info!(%tenant, %invitation, credential = %fresh.id, "an invitation was used");
        Ok(IssuedCredential {
            credential,
            id: fresh.id,
            api_key: fresh.key,
        })
    }
}

impl PlatformService {
    /// Invites somebody: an administrator anyone into its tenant, the operator only administrators.
    pub async fn invite(
        &self,
        caller: &AdminOrOperator,
        tenant: Option<TenantId>,
        request: InvitationRequest,
    ) -> Result<MadeInvitation> {
        let tenant = Self::tenant_for(caller, tenant, request.role)?;
        self.managed_by(caller).invite(&tenant, request).await
    }

    /// Lists invitations without their codes, oldest first.
    pub async fn invitations(
        &self,
        caller: &AdminOrOperator,
        request: &PageRequest,
    ) -> Result<ListPage<InvitationLine>> {
        let CredentialScope { tenant, role } = Self::scope(caller);
        let tenant = tenant.as_ref();
        let listing = format!("invitations\n{}", tenant.map_or("", TenantId::as_str));
        let part = self.part(&listing, request)?;
        let store = &self.context.store.credentials;
        let (items, next) = store.invitations(tenant, role, &part).await?;
        Ok(ListPage::new(&listing, items, next.as_ref()))
    }

    /// Uses an invitation. Nobody is authenticated here: the code is all that counts.
    pub async fn join(&self, code: &str, from: Option<IpAddr>) -> Result<IssuedCredential> {
        self.administration(AuditActor::invitation_holder(from))
            .join(code)
            .await
    }
}
