//! Tenants and credentials on the command line.

use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use countersign::app::AppError;
use countersign::clock::Clock;
use countersign::config::Config;
use countersign::gateway::error::Error;
use countersign::gateway::identity::administration::{AdminService, CredentialRequest, MadeCode};
use countersign::protocol::credential::{CredentialKind, CredentialProfile};
use countersign::protocol::id::{ApproverId, CredentialId, ID_EXPECTED, NodeId, TenantId, TextId};
use countersign::protocol::timestamp::Timestamp;
use countersign::store::Store;
use countersign::store::audit::AuditActor;
use countersign::store::database::schema::{RowSecurity, SchemaState};
use countersign::store::identity::credential::RoleName;
use countersign::telemetry::Metrics;
use serde_json::json;
use tokio_util::task::TaskTracker;

use crate::commands::output::{print_json, print_line, print_list, remark};

#[derive(Subcommand)]
pub enum TenantCommand {
    /// Create a tenant and print its id.
    Create {
        /// Its name.
        name: String,
    },
    /// List tenants.
    List,
    /// Disable a tenant: its credentials stop working, its data stays.
    Disable {
        /// Its id.
        tenant: String,
    },
}

#[derive(Subcommand)]
pub enum CredentialCommand {
    /// Create a credential and print its API key, or the code that binds its certificate. Neither is
    /// shown again.
    Create {
        /// The tenant's id.
        #[arg(long)]
        tenant: String,
        /// enforcer, approver or admin.
        #[arg(long)]
        role: String,
        /// The only id it may act as; required for enforcers and approvers.
        #[arg(long)]
        bound_id: Option<String>,
        /// Let it act as any id of its role, for trusted backends only.
        #[arg(long, conflicts_with = "bound_id")]
        unbound: bool,
        /// For a client certificate instead of an API key. Its holder binds it with the printed code.
        #[arg(long)]
        certificate: bool,
        /// strict, or compat for the published client libraries of an older dialect; see
        /// docs/compatibility.md.
        #[arg(long, default_value = "strict")]
        profile: String,
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
    /// Print a new code for a credential with --certificate, if the last one expired or for a renewed
    /// certificate.
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

pub fn open_store(config: &Config) -> anyhow::Result<Arc<Store>> {
    let node = NodeId::parse("command-line").context("no node id")?;
    let clock = Clock::system();
    let metrics = Arc::new(Metrics::new(&clock));
    Ok(Arc::new(Store::open(
        config,
        &node,
        &clock,
        &metrics,
        &TaskTracker::new(),
    )?))
}

pub async fn administration(config: &Config) -> anyhow::Result<AdminService> {
    config.validate()?;
    let store = open_store(config)?;
    anyhow::ensure!(
        store.database.schema().await? != SchemaState::Behind,
        AppError::Schema("behind this binary")
    );
    // Otherwise every list would be empty.
    anyhow::ensure!(
        store.database.row_security().await? != RowSecurity::Missing,
        RowSecurity::MISSING
    );
    Ok(AdminService::new(
        &store,
        Clock::system(),
        AuditActor::command_line(),
    ))
}

pub(super) fn id<T: TextId>(what: &'static str, text: &str) -> anyhow::Result<T> {
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
        format!("no tenant {text:?}; list tenants and their ids with `countersign tenant list`")
    })?;
    Ok(found.tenant_id)
}

pub(super) async fn optional_tenant(
    administration: &AdminService,
    text: Option<String>,
) -> anyhow::Result<Option<TenantId>> {
    match text {
        Some(text) => existing_tenant(administration, &text).await.map(Some),
        None => Ok(None),
    }
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
                return print_json(&json!({ "tenantId": tenant, "name": name }));
            }
            remark("The tenant's id, for --tenant:");
            print_line(tenant.as_str())
        }
        TenantCommand::List => {
            let tenants = administration.tenants().await?;
            print_list(json, &tenants, |tenant| {
                let disabled = tenant.disabled_at.map_or("", |_| "  (disabled)");
                format!("{}  {}{disabled}", tenant.tenant_id, tenant.name)
            })
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
        return print_json(&json!({
            "credentialId": id, "code": made.code, "codeExpiresAt": made.expires_at,
        }));
    }
    remark(&format!(
        "The code of credential {id}. It isn't shown again. The certificate's holder sends it to \
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
            profile,
            expires_at,
        } => {
            let role = RoleName::parse(&role);
            let role = role.context("role should be enforcer, approver or admin")?;
            anyhow::ensure!(
                role == RoleName::Admin || bound_id.is_some() || unbound,
                "add the id that this {0} credential may act as: --bound-id ID; \
                 or --unbound, to let it act as every {0} of the tenant",
                role.as_str()
            );
            let profile = CredentialProfile::parse(&profile);
            let request = CredentialRequest {
                role,
                bound_id,
                unbound,
                kind: if certificate {
                    CredentialKind::Certificate
                } else {
                    CredentialKind::ApiKey
                },
                profile: profile.context("profile should be strict or compat")?,
                expires_at: expires_at.as_deref().map(time).transpose()?,
            };
            let tenant = existing_tenant(administration, &tenant).await?;
            let made = administration.create_credential(&tenant, request).await;
            let made = found(made, &format!("tenant {tenant} is disabled"))?;
            if let Some(code) = made.code {
                return print_code(&made.id, &code, json);
            }
            if json {
                let made = json!({ "credentialId": made.id, "apiKey": made.api_key });
                return print_json(&made);
            }
            remark(&format!(
                "The API key of credential {}. It isn't shown again:",
                made.id
            ));
            print_line(&made.api_key.unwrap_or_default())
        }
        CredentialCommand::Code { credential } => {
            let id = id::<CredentialId>("credential", &credential)?;
            let made = administration.issue_code(&id).await;
            let missing =
                "with --certificate that is in use; list them with `countersign credential list`";
            let made = found(made, &format!("no credential {credential:?} {missing}"))?;
            print_code(&id, &made, json)
        }
        CredentialCommand::List { tenant } => {
            let tenant = optional_tenant(administration, tenant).await?;
            let credentials = administration.credentials(tenant.as_ref(), None).await?;
            print_list(json, &credentials, |credential| {
                let waits = credential.kind == CredentialKind::Certificate.as_str()
                    && credential.thumbprint.is_none();
                let state = match credential.revoked_at {
                    Some(_) => "  (revoked)",
                    None if waits => "  (no certificate yet)",
                    None => "",
                };
                let profile = match credential.profile {
                    CredentialProfile::Strict => "",
                    CredentialProfile::Compat => "  (compat)",
                };
                format!(
                    "{}  tenant {}  {:<8}  {}{profile}{state}",
                    credential.credential_id,
                    credential.tenant_id,
                    credential.role.as_str(),
                    credential.bound_id.as_deref().unwrap_or("(any id)"),
                )
            })
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
