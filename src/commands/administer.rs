//! Tenants, credentials and signing keys on the command line.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use countersign::gateway::administration::{Administration, CredentialRequest};
use countersign::gateway::error::Error;
use countersign::http::platform::{key_json, parse_thumbprint};
use countersign::protocol::id::{
    ApproverId, CredentialId, ID_EXPECTED, SignerKeyId, TenantId, TextId,
};
use countersign::protocol::signature::PublicKey;
use countersign::protocol::timestamp::Timestamp;
use countersign::store::credential::RoleName;
use countersign::store::signing_key::NewSigningKey;

use super::{print_json, print_line, remark};

#[derive(Subcommand)]
pub enum TenantCommand {
    /// Create a tenant and print its id.
    Create {
        /// Its name, for people.
        name: String,
    },
    /// List tenants.
    List,
    /// Disable a tenant: its credentials stop working, its data is kept.
    Disable {
        /// Its id.
        tenant: String,
    },
}

#[derive(Subcommand)]
pub enum CredentialCommand {
    /// Create a credential and print its API key, which is not shown again.
    Create {
        /// The tenant's id.
        #[arg(long)]
        tenant: String,
        /// enforcer, approver or admin.
        #[arg(long)]
        role: String,
        /// The only id it may act as; without it, any id of its role.
        #[arg(long)]
        bound_id: Option<String>,
        /// The SHA-256 thumbprint of a client certificate, instead of an API key.
        #[arg(long)]
        thumbprint: Option<String>,
        /// When it expires (RFC 3339).
        #[arg(long)]
        expires_at: Option<String>,
    },
    /// List credentials.
    List {
        /// Only those of this tenant.
        #[arg(long)]
        tenant: Option<String>,
    },
    /// Revoke a credential.
    Revoke {
        /// Its id.
        credential: String,
    },
}

// Not a doc comment: it would replace the help of the commands.
#[derive(Args)]
pub struct ApproverArgs {
    /// The tenant's id.
    #[arg(long)]
    tenant: String,
    /// The approver's id.
    #[arg(long)]
    approver: String,
}

impl ApproverArgs {
    async fn parse(
        &self,
        administration: &Administration,
    ) -> anyhow::Result<(TenantId, ApproverId)> {
        let approver = id("approver", &self.approver)?;
        let tenant = existing_tenant(administration, &self.tenant).await?;
        Ok((tenant, approver))
    }
}

#[derive(Subcommand)]
pub enum KeyCommand {
    /// Register a signing key.
    Put {
        #[command(flatten)]
        approver: ApproverArgs,
        /// The key's id.
        #[arg(long)]
        key: String,
        /// The Ed25519 public key, in base64url.
        #[arg(long)]
        public_key: String,
        /// When it becomes valid (RFC 3339).
        #[arg(long)]
        not_before: Option<String>,
        /// When it ceases to be valid (RFC 3339).
        #[arg(long)]
        not_after: Option<String>,
    },
    /// List an approver's keys.
    List {
        #[command(flatten)]
        approver: ApproverArgs,
    },
    /// Revoke a signing key.
    Revoke {
        #[command(flatten)]
        approver: ApproverArgs,
        /// The key's id.
        #[arg(long)]
        key: String,
    },
}

fn id<T: TextId>(what: &'static str, text: &str) -> anyhow::Result<T> {
    T::parse(text).with_context(|| format!("{what} should be {ID_EXPECTED}"))
}

fn time(text: &str) -> anyhow::Result<Timestamp> {
    Timestamp::parse(text).with_context(|| format!("{text} should be an RFC 3339 time"))
}

/// The tenant with this id, which must exist.
async fn existing_tenant(administration: &Administration, text: &str) -> anyhow::Result<TenantId> {
    let tenants = administration.tenants().await?;
    let found = tenants
        .into_iter()
        .find(|tenant| tenant.tenant_id.as_str() == text);
    let found = found.with_context(|| {
        format!("no tenant {text:?}; list them, with their ids, with `countersign tenant list`")
    })?;
    Ok(found.tenant_id)
}

/// Replaces "not found" by an error that says what was not found.
fn found<T>(outcome: Result<T, Error>, missing: &str) -> anyhow::Result<T> {
    outcome.map_err(|error| match error {
        Error::NotFound => anyhow::anyhow!("{missing}"),
        error => error.into(),
    })
}

pub async fn tenant(
    administration: &Administration,
    command: TenantCommand,
    json: bool,
) -> anyhow::Result<()> {
    match command {
        TenantCommand::Create { name } => {
            let tenant = administration.create_tenant(&name).await?;
            if json {
                return print_json(&serde_json::json!({ "tenantId": tenant, "name": name }));
            }
            remark("The tenant's id, for --tenant:");
            print_line(tenant.as_str())
        }
        TenantCommand::List => {
            let tenants = administration.tenants().await?;
            if json {
                return print_json(&tenants);
            }
            for tenant in tenants {
                let disabled = tenant.disabled_at.map_or("", |_| "  (disabled)");
                print_line(&format!("{}  {}{disabled}", tenant.tenant_id, tenant.name))?;
            }
            Ok(())
        }
        TenantCommand::Disable { tenant } => {
            let tenant = existing_tenant(administration, &tenant).await?;
            administration.disable_tenant(&tenant).await?;
            remark("disabled");
            Ok(())
        }
    }
}

pub async fn credential(
    administration: &Administration,
    command: CredentialCommand,
    json: bool,
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
            let tenant = existing_tenant(administration, &tenant).await?;
            let made = administration.create_credential(&tenant, request).await;
            let made = found(made, &format!("tenant {tenant} is disabled"))?;
            if json {
                let made = serde_json::json!({ "credentialId": made.id, "apiKey": made.api_key });
                return print_json(&made);
            }
            if let Some(key) = made.api_key {
                remark(&format!(
                    "The API key of credential {}, which is not shown again:",
                    made.id
                ));
                print_line(&key)
            } else {
                remark("The credential's id:");
                print_line(made.id.as_str())
            }
        }
        CredentialCommand::List { tenant } => {
            let tenant = match tenant {
                Some(tenant) => Some(existing_tenant(administration, &tenant).await?),
                None => None,
            };
            let credentials = administration.credentials(tenant.as_ref(), None).await?;
            if json {
                return print_json(&credentials);
            }
            for credential in credentials {
                print_line(&format!(
                    "{}  tenant {}  {:<8}  {}{}",
                    credential.credential_id,
                    credential.tenant_id,
                    credential.role.as_str(),
                    credential.bound_id.as_deref().unwrap_or("(any id)"),
                    credential.revoked_at.map_or("", |_| "  (revoked)"),
                ))?;
            }
            Ok(())
        }
        CredentialCommand::Revoke { credential } => {
            let id = id::<CredentialId>("credential", &credential)?;
            let revoked = administration.revoke_credential(None, None, &id).await;
            let missing = "list them with `countersign credential list`";
            found(revoked, &format!("no credential {credential:?}; {missing}"))?;
            remark("revoked");
            Ok(())
        }
    }
}

pub async fn key(
    administration: &Administration,
    command: KeyCommand,
    json: bool,
) -> anyhow::Result<()> {
    match command {
        KeyCommand::Put {
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
            let (tenant, approver) = approver.parse(administration).await?;
            let registered = administration
                .register_key(&tenant, &approver, &key, false)
                .await;
            found(registered, &format!("tenant {tenant} is disabled"))?;
            remark("registered");
            Ok(())
        }
        KeyCommand::List { approver } => {
            let (tenant, approver) = approver.parse(administration).await?;
            let keys = administration.keys(&tenant, &approver).await?;
            if json {
                return print_json(&keys.iter().map(key_json).collect::<Vec<_>>());
            }
            for key in keys {
                let revoked = key.revoked_at.map_or("", |_| "  (revoked)");
                let public_key = key.public_key.to_text();
                print_line(&format!("{}  {public_key}{revoked}", key.id))?;
            }
            Ok(())
        }
        KeyCommand::Revoke { approver, key } => {
            let key = id::<SignerKeyId>("key", &key)?;
            let (tenant, approver) = approver.parse(administration).await?;
            let revoked = administration.revoke_key(&tenant, &approver, &key).await;
            let missing = "list them with `countersign key list`";
            found(revoked, &format!("{approver} has no key {key}; {missing}"))?;
            remark("revoked");
            Ok(())
        }
    }
}
