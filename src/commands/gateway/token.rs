//! Revocation of tokens on the command line.

use clap::Subcommand;
use countersign::gateway::identity::administration::AdminService;
use countersign::protocol::token::RevocationRequest;

use super::administer::{existing_tenant, found, time};
use crate::commands::output::{print_json, print_list, remark};

#[derive(Subcommand)]
pub enum TokenCommand {
    /// Revoke one token by its id, those of a subject, or all that were issued before a time.
    Revoke {
        /// The tenant's id.
        #[arg(long)]
        tenant: String,
        /// The token's `jti`.
        #[arg(long, conflicts_with_all = ["subject", "issued_before"])]
        id: Option<String>,
        /// The tokens' `sub` (or `client_id`, where they have no `sub`).
        #[arg(long)]
        subject: Option<String>,
        /// Only tokens issued before this time (RFC 3339). With --subject the default is now, plus the
        /// leeway for clocks.
        #[arg(long)]
        issued_before: Option<String>,
    },
    /// List revocations.
    List {
        /// The tenant's id.
        #[arg(long)]
        tenant: String,
    },
}

pub async fn token(
    administration: &AdminService,
    command: TokenCommand,
    json: bool,
) -> anyhow::Result<()> {
    match command {
        TokenCommand::Revoke {
            tenant,
            id,
            subject,
            issued_before,
        } => {
            anyhow::ensure!(
                id.is_some() || subject.is_some() || issued_before.is_some(),
                "choose what to revoke: --id ID, --subject SUBJECT or --issued-before TIME"
            );
            let issued_before = issued_before.as_deref().map(time).transpose()?;
            let request = RevocationRequest::new(id, subject, issued_before)?;
            let tenant = existing_tenant(administration, &tenant).await?;
            let revoked = administration.revoke_tokens(&tenant, &request).await;
            let revoked = found(revoked, &format!("tenant {tenant} is disabled"))?;
            if json {
                return print_json(&revoked);
            }
            remark("revoked");
            Ok(())
        }
        TokenCommand::List { tenant } => {
            let tenant = existing_tenant(administration, &tenant).await?;
            let revoked = administration.token_revocations(&tenant).await?;
            print_list(json, &revoked, |line| {
                let what = match (&line.token_id, &line.subject) {
                    (Some(id), _) => format!("token {id}"),
                    (None, Some(subject)) => format!("subject {subject}"),
                    (None, None) => "all".to_owned(),
                };
                let before = line.issued_before;
                let before = before.map(|at| format!("  issued before {at}"));
                format!("{what}{}", before.unwrap_or_default())
            })
        }
    }
}
