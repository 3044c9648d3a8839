//! `countersign health`: asks a node whether it is ready.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use anyhow::Context as _;
use countersign::config::{self, ClientAuth, Config, TlsMode};
use countersign::http::server::tls;
use reqwest::redirect::Policy;
use reqwest::{Client, Identity, StatusCode};
use rustls::crypto::CryptoProvider;

const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

/// Asks a node whether it is ready: the one at `address`, else the configured one.
pub async fn ask(config: &Config, address: Option<String>) -> anyhow::Result<String> {
    let address = address.unwrap_or_else(|| {
        let mut listen = config.server.listen;
        // A node that listens on every address listens on loopback, too.
        if listen.ip().is_unspecified() {
            listen.set_ip(match listen.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        listen.to_string()
    });
    let client = client(&config.tls)?;
    let scheme = match config.tls.mode {
        TlsMode::On => "https",
        TlsMode::Off | TlsMode::Upstream => "http",
    };
    let asking = async {
        let answer = client.get(format!("{scheme}://{address}/readyz"));
        let answer = answer.send().await?;
        Ok((answer.status(), answer.text().await?))
    };
    let answer = tokio::time::timeout(HEALTH_TIMEOUT, asking).await;
    let answer = answer.context("no response within 5 s")?;
    let (status, body) = answer.map_err(|error: reqwest::Error| {
        anyhow::anyhow!("{}", anyhow::Error::new(error).root_cause())
    })?;
    anyhow::ensure!(status == StatusCode::OK, "not ready: {body}");
    Ok(body)
}

/// Accepts any certificate: nothing secret is sent or received. Requiring the certificate in the
/// file would report a node as unhealthy that has not reloaded it yet. A node that requires a
/// client certificate is shown its own, which it accepts.
fn client(config: &config::Tls) -> anyhow::Result<Client> {
    // Not an error if another one is installed.
    let _installed = CryptoProvider::clone(&tls::provider()).install_default();
    let mut builder = Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .tls_danger_accept_invalid_certs(true);
    if let (TlsMode::On, ClientAuth::Required, Some(certificate), Some(key)) = (
        config.mode,
        config.client_auth,
        &config.cert_file,
        &config.key_file,
    ) {
        let mut identity = tls::read("tls.cert_file", certificate)?;
        identity.push(b'\n');
        identity.extend(tls::read("tls.key_file", key)?);
        builder = builder.identity(Identity::from_pem(&identity)?);
    }
    Ok(builder.build()?)
}
