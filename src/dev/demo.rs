//! The demo tenant and its credentials. `dev` keeps the keys with its data, to print the same ones
//! at every start.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::data_dir::DataDir;
use super::private_file::write_private;
use countersign::gateway::InvitationRequest;
use countersign::gateway::identity::administration::{AdminService, CredentialRequest};
use countersign::gateway::identity::authenticate::random_text;
use countersign::protocol::credential::{CredentialKind, CredentialProfile};
use countersign::protocol::id::{ApproverId, TenantId, TextId as _};
use countersign::store::identity::credential::RoleName;

/// The enforcer of the user's profile, and the id that the unbound key is shown with.
pub const ENFORCER: &str = "demo-enforcer";
pub const APPROVER: &str = "demo-approver";
/// Whom the link invites.
pub const INVITED: &str = "me";
const TENANT: &str = "dev";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DemoAccounts {
    pub tenant_id: String,
    pub operator: String,
    #[serde(default)]
    pub cluster_secret: String,
    pub admin: String,
    pub enforcer: String,
    pub approver: String,
    /// The key of the enforcer in the user's profile.
    #[serde(default)]
    pub bound_enforcer: String,
}

impl DemoAccounts {
    /// The demo of the last run on this database if it is still valid, else a new one.
    pub async fn prepare(
        administration: &AdminService,
        data_dir: &DataDir,
    ) -> anyhow::Result<Self> {
        let file = data_dir.demo_file();
        let text = std::fs::read(&file).unwrap_or_default();
        let kept = serde_json::from_slice::<Self>(&text).ok();
        // Kept even if the keys are no longer valid: pairings of other tenants depend on it.
        let secret = kept.as_ref().map(|demo| demo.cluster_secret.clone());
        let mut demo = match kept {
            Some(demo) if demo.is_valid(administration).await? => demo,
            _ => Self::make(administration).await?,
        };
        demo.cluster_secret = match secret {
            Some(secret) if !secret.is_empty() => secret,
            _ => random_text::<32>()?,
        };
        write_private(&file, &serde_json::to_vec_pretty(&demo)?)?;
        Ok(demo)
    }

    async fn is_valid(&self, administration: &AdminService) -> anyhow::Result<bool> {
        let Some(tenant) = TenantId::parse(&self.tenant_id) else {
            return Ok(false);
        };
        let tenants = administration.tenants().await?;
        let mut tenants = tenants.iter();
        if !tenants.any(|known| known.tenant_id == tenant && known.disabled_at.is_none()) {
            return Ok(false);
        }
        let credentials = administration.credentials(Some(&tenant), None).await?;
        Ok([
            &self.admin,
            &self.enforcer,
            &self.approver,
            &self.bound_enforcer,
        ]
        .into_iter()
        .all(|key| {
            credentials.iter().any(|known| {
                known.revoked_at.is_none()
                    && key.starts_with(&format!("csk_{}_", known.credential_id))
            })
        }))
    }

    /// Whether somebody has joined as the approver on a device that is still in force.
    pub async fn has_joined(&self, administration: &AdminService) -> anyhow::Result<bool> {
        let tenant = TenantId::parse(&self.tenant_id).context("no tenant id")?;
        let approver = ApproverId::parse(INVITED).context("no approver id")?;
        let devices = administration.devices(&tenant, &approver).await?;
        Ok(devices.iter().any(|device| device.revoked_at.is_none()))
    }

    /// A link that makes the person who opens it the approver.
    pub async fn invite(
        &self,
        administration: &AdminService,
        page: &str,
    ) -> anyhow::Result<String> {
        let tenant = TenantId::parse(&self.tenant_id).context("no tenant id")?;
        let request = InvitationRequest {
            role: RoleName::Approver,
            bound_id: Some(INVITED.to_owned()),
            name: Some("countersign dev".to_owned()),
            expires_at: None,
        };
        let made = administration.invite(&tenant, request).await?;
        Ok(made.link(page))
    }

    async fn make(administration: &AdminService) -> anyhow::Result<Self> {
        let tenant = administration.create_tenant(TENANT).await?;
        let key = async |role, bound_id: Option<&str>| {
            let request = CredentialRequest {
                role,
                bound_id: bound_id.map(str::to_owned),
                unbound: role != RoleName::Admin && bound_id.is_none(),
                kind: CredentialKind::ApiKey,
                profile: CredentialProfile::Strict,
                expires_at: None,
            };
            let made = administration.create_credential(&tenant, request).await?;
            anyhow::Ok(made.api_key.unwrap_or_default())
        };
        Ok(Self {
            tenant_id: tenant.to_string(),
            operator: format!("cso_{}", random_text::<32>()?),
            cluster_secret: String::new(),
            admin: key(RoleName::Admin, None).await?,
            enforcer: key(RoleName::Enforcer, None).await?,
            approver: key(RoleName::Approver, None).await?,
            bound_enforcer: key(RoleName::Enforcer, Some(ENFORCER)).await?,
        })
    }
}
