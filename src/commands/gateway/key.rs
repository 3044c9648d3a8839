//! Signing keys of approvers on the command line.

use anyhow::Context as _;
use clap::Subcommand;
use countersign::gateway::identity::administration::AdminService;
use countersign::http::api::platform::key_json;
use countersign::protocol::id::SignerKeyId;
use countersign::protocol::signature::PublicKey;
use countersign::store::identity::signing_key::NewSigningKey;

use super::administer::{ApproverArgs, found, id, time};
use crate::commands::output::{print_json, print_line, remark};

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
                // A user of this command line can write to the database, and so may import keys.
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
            keys.iter().try_for_each(|key| {
                let revoked = key.revoked_at.map_or("", |_| "  (revoked)");
                print_line(&format!(
                    "{}  {}{revoked}",
                    key.id,
                    key.public_key.to_text()
                ))
            })
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
