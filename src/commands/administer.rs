//! Tenants, credentials and signing keys on the command line: what can be said of them, and what is done then.

use anyhow::Context as _;
use clap::Subcommand;
use countersign::gateway::administration::{Administration, CredentialRequest};
use countersign::http::platform::parse_thumbprint;
use countersign::protocol::id::{ApproverId, CredentialId, SignerKeyId, TenantId, TextId};
use countersign::protocol::signature::PublicKey;
use countersign::protocol::timestamp::Timestamp;
use countersign::store::credential::RoleName;
use countersign::store::signing_key::NewSigningKey;

use super::{print, say};

/// `countersign tenant`.
#[derive(Subcommand)]
pub enum TenantCommand {
    /// Make a tenant.
    Create {
        /// Its name.
        name: String,
    },
    /// List tenants.
    List,
    /// Disable a tenant: its credentials stop, its data stays.
    Disable {
        /// Its id.
        tenant: String,
    },
}

/// `countersign credential`.
#[derive(Subcommand)]
pub enum CredentialCommand {
    /// Make a credential; its key is shown this once.
    Create {
        /// The tenant's id.
        #[arg(long)]
        tenant: String,
        /// enforcer, approver or admin.
        #[arg(long)]
        role: String,
        /// The one id it may act as.
        #[arg(long)]
        bound_id: Option<String>,
        /// A client certificate's SHA-256 thumbprint, instead of an API key.
        #[arg(long)]
        thumbprint: Option<String>,
        /// When it ends (RFC 3339).
        #[arg(long)]
        expires_at: Option<String>,
    },
    /// List credentials.
    List {
        /// Only of this tenant.
        #[arg(long)]
        tenant: Option<String>,
    },
    /// Revoke a credential.
    Revoke {
        /// Its id.
        credential: String,
    },
}

/// `countersign key`.
#[derive(Subcommand)]
pub enum KeyCommand {
    /// Register a signing key.
    Put {
        /// The tenant's id.
        #[arg(long)]
        tenant: String,
        /// The approver.
        #[arg(long)]
        approver: String,
        /// The key's name.
        #[arg(long)]
        key: String,
        /// The Ed25519 public key, in base64url.
        #[arg(long)]
        public_key: String,
        /// When it begins to be valid (RFC 3339).
        #[arg(long)]
        not_before: Option<String>,
        /// When it ends to be valid (RFC 3339).
        #[arg(long)]
        not_after: Option<String>,
    },
    /// List an approver's keys.
    List {
        /// The tenant's id.
        #[arg(long)]
        tenant: String,
        /// The approver.
        #[arg(long)]
        approver: String,
    },
    /// Revoke a signing key.
    Revoke {
        /// The tenant's id.
        #[arg(long)]
        tenant: String,
        /// The approver.
        #[arg(long)]
        approver: String,
        /// The key's name.
        #[arg(long)]
        key: String,
    },
}

fn id<T: TextId>(what: &'static str, text: &str) -> anyhow::Result<T> {
    T::parse(text).with_context(|| {
        format!(
            "{what} should be {}",
            countersign::protocol::id::ID_EXPECTED
        )
    })
}

/// A time on the command line.
fn time(text: &str) -> anyhow::Result<Timestamp> {
    Timestamp::parse(text).with_context(|| format!("{text} should be an RFC 3339 time"))
}

/// Manages tenants.
pub async fn tenant(administration: &Administration, command: TenantCommand) -> anyhow::Result<()> {
    match command {
        TenantCommand::Create { name } => {
            let tenant = administration.create_tenant(&name).await?;
            print(&serde_json::json!({ "tenantId": tenant, "name": name }))
        }
        TenantCommand::List => print(&administration.tenants().await?),
        TenantCommand::Disable { tenant } => {
            administration
                .disable_tenant(&id::<TenantId>("tenant", &tenant)?)
                .await?;
            say("disabled")
        }
    }
}

/// Manages credentials.
pub async fn credential(
    administration: &Administration,
    command: CredentialCommand,
) -> anyhow::Result<()> {
    match command {
        CredentialCommand::Create {
            tenant,
            role,
            bound_id,
            thumbprint,
            expires_at,
        } => {
            let request = CredentialRequest {
                role: RoleName::parse(&role)
                    .context("role should be enforcer, approver or admin")?,
                bound_id,
                thumbprint: thumbprint
                    .map(|text| {
                        parse_thumbprint(&text)
                            .context("thumbprint should be a SHA-256 in hexadecimal")
                    })
                    .transpose()?,
                expires_at: expires_at.as_deref().map(time).transpose()?,
            };
            let made = administration
                .create_credential(&id("tenant", &tenant)?, request)
                .await?;
            print(&serde_json::json!({ "credentialId": made.id, "apiKey": made.api_key }))
        }
        CredentialCommand::List { tenant } => {
            let tenant = tenant
                .map(|tenant| id::<TenantId>("tenant", &tenant))
                .transpose()?;
            print(&administration.credentials(tenant.as_ref(), None).await?)
        }
        CredentialCommand::Revoke { credential } => {
            let credential = id::<CredentialId>("credential", &credential)?;
            administration
                .revoke_credential(None, None, &credential)
                .await?;
            say("revoked")
        }
    }
}

/// Manages approvers' signing keys.
pub async fn key(administration: &Administration, command: KeyCommand) -> anyhow::Result<()> {
    match command {
        KeyCommand::Put {
            tenant,
            approver,
            key,
            public_key,
            not_before,
            not_after,
        } => {
            let public_key = PublicKey::parse(&public_key)
                .context("public-key should be 32 bytes in base64url")?;
            let key = NewSigningKey {
                id: id("key", &key)?,
                public_key,
                not_before: not_before.as_deref().map(time).transpose()?,
                not_after: not_after.as_deref().map(time).transpose()?,
            };
            let (tenant, approver) = (id("tenant", &tenant)?, id("approver", &approver)?);
            administration
                .register_key(&tenant, &approver, &key, false)
                .await?;
            say("registered")
        }
        KeyCommand::List { tenant, approver } => {
            let (tenant, approver) = (
                id("tenant", &tenant)?,
                id::<ApproverId>("approver", &approver)?,
            );
            let keys = administration.keys(&tenant, &approver).await?;
            print(
                &keys
                    .iter()
                    .map(countersign::http::platform::key_json)
                    .collect::<Vec<_>>(),
            )
        }
        KeyCommand::Revoke {
            tenant,
            approver,
            key,
        } => {
            let (tenant, approver) = (id("tenant", &tenant)?, id("approver", &approver)?);
            administration
                .revoke_key(&tenant, &approver, &id::<SignerKeyId>("key", &key)?)
                .await?;
            say("revoked")
        }
    }
}
