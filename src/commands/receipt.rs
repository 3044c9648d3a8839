//! `receipt prove`: adds proofs from the gateway's log to a receipt.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use countersign::client::ClientError;
use countersign::client::log::{LogCheck, LogScope};
use countersign::clock::Clock;
use countersign::e2e::Receipt;
use countersign::protocol::json;
use tokio::time::Instant;

use super::client_options::ClientOptions;
use super::exit_action::ExitAction;
use super::log::CHECK_TIMEOUT;
use super::output::{remark, save};

#[derive(Args)]
pub struct ReceiptArgs {
    #[command(subcommand)]
    pub command: ReceiptCommand,
}

#[derive(Subcommand)]
pub enum ReceiptCommand {
    /// Add the proof that the gateway's log has the decisions of a receipt.
    ///
    /// `verify` then proves that an agent's machine asked, to everyone who trusts the log's key.
    #[command(after_help = "Example:\n  countersign receipt prove receipt.json")]
    Prove {
        #[command(flatten)]
        options: ClientOptions,
        /// A receipt that `ask --save` or `run --save` wrote. It is replaced.
        file: PathBuf,
    },
}

pub async fn prove(options: &ClientOptions, path: &Path) -> anyhow::Result<ExitAction> {
    let name = || path.display().to_string();
    let text = std::fs::read(path).with_context(name)?;
    let malformed = |error: countersign::e2e::Error| ClientError::Record(error.to_string());
    let mut receipt = Receipt::parse(&text).map_err(malformed)?;
    let file = options.file()?;
    let profile = file.load()?;
    let enforcer = profile.enforcer.map(|it| it.gateway);
    let gateways = enforcer
        .into_iter()
        .chain(profile.approver.map(|it| it.gateway));
    let mut own = gateways.filter(|it| it.tenant == receipt.tenant.as_str());
    let problem = ClientError::Choice("this profile has no gateway with the receipt's tenant");
    let gateway = own.next().ok_or(problem)?;
    let check = LogCheck {
        client: &gateway.client()?,
        tenant: &receipt.tenant.clone(),
        file: &file,
        now: Clock::system().now(),
        deadline: Instant::now() + CHECK_TIMEOUT,
    };
    let report = check.run(LogScope::New).await?;
    anyhow::ensure!(
        report.problems.is_empty(),
        "the gateway's log: {}",
        report.problems.join("; ")
    );
    let mut proofs = Vec::new();
    for part in &receipt.parts {
        let decision = json::parse(part.decision.as_bytes());
        let decision = decision.map_err(|error| ClientError::Record(error.to_string()))?;
        proofs.push(check.prove(&part.request_id, &decision).await?);
    }
    receipt.log = proofs;
    let text = receipt.to_text().map_err(malformed)?;
    let part = path.with_extension("part");
    save(&part, &text)?;
    std::fs::rename(&part, path).with_context(name)?;
    remark("added the proofs; check them with: countersign verify");
    Ok(ExitAction::DONE)
}
