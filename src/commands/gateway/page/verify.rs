//! `countersign page --verify`: compares what a host serves with the page in this program.

use std::path::PathBuf;
use std::time::Duration;

use countersign::client::{GatewayCall, GatewayClient, GatewayLocation, visible};
use countersign::page::{page, policy};
use countersign::protocol::hex;
use tokio::time::Instant;

use crate::commands::output::print_line;

/// For each file.
const FETCH_TIMEOUT: Duration = Duration::from_secs(20);
const CONNECTIONS: &str = "connect-src ";

#[derive(clap::Args)]
pub struct VerifyArgs {
    /// Compare the page on this host with the one in this program.
    #[arg(long, value_name = "URL", conflicts_with_all = ["out", "force"])]
    verify: Option<String>,
    /// Root certificates to trust instead of the system's, for --verify.
    #[arg(long, value_name = "FILE", requires = "verify")]
    ca: Option<PathBuf>,
}

/// Fetches every file as a browser would, without a credential.
pub async fn verify(args: &VerifyArgs, elsewhere: &str) -> anyhow::Result<()> {
    let url = args.verify.clone().unwrap_or_default();
    let location = GatewayLocation {
        urls: std::slice::from_ref(&url),
        ca: args.ca.as_deref(),
        allow_http: true,
    };
    let host = GatewayClient::new(&location, None)?;
    let page = page();
    let mut differing = Vec::new();
    let index = fetch(&host, "").await?;
    let is_own = index.body == page.index.content;
    let is_there = index.status == 200 && (is_own || index.body == elsewhere.as_bytes());
    if !is_there {
        differing.push("index.html".to_owned());
    }
    let versioned = page.versioned.iter();
    let versioned = versioned.map(|(name, file)| (format!("page/{}/{name}", page.version), file));
    let fixed = page.fixed.iter().map(|(name, file)| (name.clone(), file));
    let files: Vec<_> = versioned.chain(fixed).collect();
    for (name, file) in &files {
        let served = fetch(&host, name).await?;
        if served.status != 200 || served.body != file.content {
            differing.push(name.clone());
        }
    }
    let header = index.headers.get("content-security-policy");
    let header = header.and_then(|value| value.to_str().ok());
    match header {
        Some(header) => {
            let (rules, origins) = split(header);
            if rules != split(&policy([])).0 {
                differing.push("the header Content-Security-Policy".to_owned());
            }
            print_line(&format!("the page may connect to: {}", visible(origins)))?;
        }
        // Then its index states the rules.
        None if is_there && !is_own => {}
        None => differing.push("the header Content-Security-Policy".to_owned()),
    }
    for name in &differing {
        print_line(&format!("differs: {name}"))?;
    }
    anyhow::ensure!(
        differing.is_empty(),
        "{} does not serve version {} of the page, the one in this program: it runs another release of Countersign, or \
         someone has changed the page",
        visible(&url),
        page.version
    );
    print_line(&format!(
        "{} serves version {} of the page, all {} files as in this program\nsha256:{}",
        visible(&url),
        page.version,
        files.len() + 1,
        hex::encode(&page.hash)
    ))
}

async fn fetch(
    host: &GatewayClient,
    name: &str,
) -> anyhow::Result<countersign::client::GatewayAnswer> {
    let deadline = Instant::now() + FETCH_TIMEOUT;
    Ok(host
        .call(&GatewayCall::get(format!("/{name}")), deadline)
        .await?)
}

/// A policy without the origins that the page may connect to, and those.
fn split(policy: &str) -> (String, &str) {
    let origins = policy
        .split("; ")
        .find_map(|it| it.strip_prefix(CONNECTIONS));
    let origins = origins.unwrap_or_default();
    let rules = policy.replacen(&format!("{CONNECTIONS}{origins}"), CONNECTIONS, 1);
    (rules, origins)
}
