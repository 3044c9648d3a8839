//! Invitations on the command line.

#[cfg(feature = "dev")]
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use countersign::config::Config;
#[cfg(feature = "dev")]
use countersign::config::Secret;
use countersign::gateway::InvitationRequest;
use countersign::gateway::error::Error;
use countersign::gateway::identity::administration::AdminService;
use countersign::protocol::id::{ID_EXPECTED, InvitationId, TextId as _};
use countersign::protocol::timestamp::Timestamp;
use countersign::store::identity::credential::RoleName;

use super::administer::{administration, existing_tenant, found, optional_tenant};
use crate::commands::output::{print_json, print_line, print_list, remark};
use crate::commands::terminal::parse_duration;
#[cfg(feature = "dev")]
use crate::dev::RunningDev;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct InviteArgs {
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
    /// The approver to invite, short for `--role approver --id ID`. Without --tenant it is for
    /// the running `countersign dev`.
    #[arg(value_name = "APPROVER", conflicts_with = "id")]
    approver: Option<String>,
    /// The tenant's id.
    #[arg(long)]
    tenant: Option<String>,
    /// The data directory of the running `countersign dev`.
    #[cfg(feature = "dev")]
    #[arg(long, conflicts_with = "tenant", requires = "approver")]
    data_dir: Option<PathBuf>,
    /// enforcer, approver or admin.
    #[arg(long)]
    role: Option<String>,
    /// The id that the invited enforcer or approver gets; required for those roles.
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// A name for the list of invitations.
    #[arg(long)]
    name: Option<String>,
    /// How long the link is valid, such as 30m, 24h or 7d; at most 7 days.
    #[arg(long, value_parser = parse_duration, default_value = "24h")]
    expires: Duration,
    #[command(subcommand)]
    command: Option<InviteCommand>,
}

#[derive(Subcommand)]
pub enum InviteCommand {
    /// List invitations, without their links.
    List {
        /// Only those of this tenant.
        #[arg(long)]
        tenant: Option<String>,
    },
    /// Withdraw an unused invitation.
    Withdraw {
        /// Its id.
        invitation: String,
    },
}

pub async fn invite(
    #[cfg_attr(
        not(feature = "dev"),
        expect(unused_mut, reason = "only `dev` has settings of its own")
    )]
    mut config: Config,
    mut args: InviteArgs,
) -> anyhow::Result<()> {
    if let Some(approver) = args.approver.take() {
        let role = args.role.get_or_insert_with(|| "approver".to_owned());
        anyhow::ensure!(
            role == "approver",
            "{approver} would be an approver; name an enforcer with --id {approver}"
        );
        args.id = Some(approver);
        #[cfg(feature = "dev")]
        if args.tenant.is_none() {
            let running = RunningDev::find(args.data_dir.as_deref())?;
            config.database.url = Secret::from(running.database_url.as_str());
            config.page.url = running.page;
            args.tenant = Some(running.tenant_id);
        }
    }
    let administration = administration(&config).await?;
    match args.command {
        None => create(&config, &administration, args).await,
        Some(InviteCommand::List { tenant }) => {
            let tenant = optional_tenant(&administration, tenant).await?;
            let invitations = administration.invitations(tenant.as_ref()).await?;
            print_list(args.json, &invitations, |line| {
                let state = match (line.used_at, line.withdrawn_at) {
                    (Some(_), _) => "used".to_owned(),
                    (None, Some(_)) => "withdrawn".to_owned(),
                    (None, None) => format!("until {}", line.expires_at),
                };
                format!(
                    "{}  tenant {}  {:<8}  {}  {state}",
                    line.invitation_id,
                    line.tenant_id,
                    line.role.as_str(),
                    line.bound_id.as_deref().unwrap_or("-"),
                )
            })
        }
        Some(InviteCommand::Withdraw { invitation }) => {
            let id = InvitationId::parse(&invitation);
            let id = id.with_context(|| format!("invitation should be {ID_EXPECTED}"))?;
            let withdrawn = administration.withdraw_invitation(&id).await;
            if matches!(withdrawn, Err(Error::InvitationUsed)) {
                anyhow::bail!(
                    "invitation {id} has been used; revoke its credential instead, which `countersign invite list --json` names"
                );
            }
            let missing = "list them with `countersign invite list`";
            found(
                withdrawn,
                &format!("no invitation {invitation:?}; {missing}"),
            )?;
            remark("withdrawn");
            Ok(())
        }
    }
}

async fn create(
    config: &Config,
    administration: &AdminService,
    args: InviteArgs,
) -> anyhow::Result<()> {
    let tenant = args.tenant.context("add the tenant: --tenant ID")?;
    let role = args.role.as_deref().and_then(RoleName::parse);
    let role = role.context("--role should be enforcer, approver or admin")?;
    anyhow::ensure!(
        role == RoleName::Admin || args.id.is_some(),
        "add the id that this {} gets: --id ID",
        role.as_str()
    );
    let tenant = existing_tenant(administration, &tenant).await?;
    let now = countersign::clock::Clock::system().now().inner();
    let request = InvitationRequest {
        role,
        bound_id: args.id.clone(),
        name: args.name,
        expires_at: Some(Timestamp::from(now + args.expires)),
    };
    let made = administration.invite(&tenant, request).await;
    let made = found(made, &format!("tenant {tenant} is disabled"))?;
    let page = match config.page.url.as_str() {
        "" => config.local_url(),
        url => url.to_owned(),
    };
    let link = made.link(&page);
    if args.json {
        return print_json(&serde_json::json!({
            "invitationId": made.id, "link": link, "expiresAt": made.expires_at, "tenantId": made.tenant, "role": role,
            "boundId": args.id,
        }));
    }
    if config.page.url.is_empty() {
        remark(
            "page.url is not set, so the link leads to the address that the node on this machine listens on.",
        );
    }
    remark(&format!(
        "Invitation {}. Anyone with this link can join, once, until {}. It isn't shown again:",
        made.id, made.expires_at
    ));
    print_line(&link)
}
