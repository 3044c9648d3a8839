//! Tenants, credentials and signing keys on the command line.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use countersign::gateway::administration::{AdminService, CredentialRequest, MadeCode};
use countersign::gateway::error::Error;
use countersign::http::api::platform::key_json;
use countersign::protocol::credential::CredentialKind;
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
    /// Create a credential and print its API key, or the code that binds its certificate. Neither is shown again.
    Create {
        /// The tenant's id.
        #[arg(long)]
        tenant: String,
        /// enforcer, approver or admin.
        #[arg(long)]
        role: String,
        /// The only id it may act as; an enforcer or approver needs it.
        #[arg(long)]
        bound_id: Option<String>,
        /// Instead of --bound-id: it may act as any id of its role. For trusted backends only.
        #[arg(long, conflicts_with = "bound_id")]
        unbound: bool,
        /// For a client certificate, which its holder binds with the printed code, instead of an API key.
        #[arg(long)]
        certificate: bool,
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
    /// Print a new code for a credential with --certificate: if the last one was not used, or for a renewed certificate.
    Code {
        /// Its id.
        credential: String,
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
    pub(super) async fn parse(
        &self,
        administration: &AdminService,
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

pub(super) fn time(text: &str) -> anyhow::Result<Timestamp> {
    Timestamp::parse(text).with_context(|| format!("{text} should be an RFC 3339 time"))
}

/// The tenant with this id, which must exist.
pub(super) async fn existing_tenant(
    administration: &AdminService,
    text: &str,
) -> anyhow::Result<TenantId> {
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
pub(super) fn found<T>(outcome: Result<T, Error>, missing: &str) -> anyhow::Result<T> {
    outcome.map_err(|error| match error {
        Error::NotFound => anyhow::anyhow!("{missing}"),
        error => error.into(),
    })
}

pub async fn tenant(
    administration: &AdminService,
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

fn print_code(id: &CredentialId, made: &MadeCode, json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(&serde_json::json!({
            "credentialId": id, "code": made.code, "codeExpiresAt": made.expires_at,
        }));
    }
    remark(&format!(
        "The code of credential {id}, which is not shown again. The holder of the certificate sends it to \
         POST /platform/v1/certificates, over a connection that presents the certificate, once and before {}:",
        made.expires_at
    ));
    print_line(&made.code)
}

pub async fn credential(
    administration: &AdminService,
    command: CredentialCommand,
    json: bool,
) -> anyhow::Result<()> {
    match command {
        CredentialCommand::Create {
            tenant,
            role,
            bound_id,
            unbound,
            certificate,
            expires_at,
        } => {
            let role = RoleName::parse(&role);
            let role = role.context("role should be enforcer, approver or admin")?;
            anyhow::ensure!(
                role == RoleName::Admin || bound_id.is_some() || unbound,
                "name the one id that this {0} credential may act as with --bound-id ID; \
                 --unbound instead makes one that may act as every {0} of the tenant",
                role.as_str()
            );
            let request = CredentialRequest {
                role,
                bound_id,
                unbound,
                kind: if certificate {
                    CredentialKind::Certificate
                } else {
                    CredentialKind::ApiKey
                },
                expires_at: expires_at.as_deref().map(time).transpose()?,
            };
            let tenant = existing_tenant(administration, &tenant).await?;
            let made = administration.create_credential(&tenant, request).await;
            let made = found(made, &format!("tenant {tenant} is disabled"))?;
            if let Some(code) = made.code {
                return print_code(&made.id, &code, json);
            }
            if json {
                let made = serde_json::json!({ "credentialId": made.id, "apiKey": made.api_key });
                return print_json(&made);
            }
            remark(&format!(
                "The API key of credential {}, which is not shown again:",
                made.id
            ));
            print_line(&made.api_key.unwrap_or_default())
        }
        CredentialCommand::Code { credential } => {
            let id = id::<CredentialId>("credential", &credential)?;
            let made = administration.issue_code(&id).await;
            let missing = "with --certificate that is not revoked; list them with `countersign credential list`";
            let made = found(made, &format!("no credential {credential:?} {missing}"))?;
            print_code(&id, &made, json)
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
                let waits = credential.kind == CredentialKind::Certificate.as_str()
                    && credential.thumbprint.is_none();
                let state = match credential.revoked_at {
                    Some(_) => "  (revoked)",
                    None if waits => "  (no certificate yet)",
                    None => "",
                };
                print_line(&format!(
                    "{}  tenant {}  {:<8}  {}{state}",
                    credential.credential_id,
                    credential.tenant_id,
                    credential.role.as_str(),
                    credential.bound_id.as_deref().unwrap_or("(any id)"),
                ))?;
            }
            Ok(())
        }
        CredentialCommand::Revoke { credential } => {
            let id = id::<CredentialId>("credential", &credential)?;
            let revoked = administration.revoke_credential(&id).await;
            let missing = "list them with `countersign credential list`";
            found(revoked, &format!("no credential {credential:?}; {missing}"))?;
            remark("revoked");
            Ok(())
        }
    }
}

pub async fn key(
    administration: &AdminService,
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
                // Whoever can write to the database may import keys.
                proof_nonce: None,
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
            let revoked = administration
                .revoke_key(&tenant, &approver, &key, true)
                .await;
            let missing = "list them with `countersign key list`";
            found(revoked, &format!("{approver} has no key {key}; {missing}"))?;
            remark("revoked");
            Ok(())
        }
    }
}
