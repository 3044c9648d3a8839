//! `countersign health`: one GET over a plain socket, or over TLS if the node serves it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use countersign::config::{self, ClientAuth, Config, TlsMode};
use countersign::http::server::tls;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

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
    let asking = async {
        let stream = TcpStream::connect(&address).await?;
        if config.tls.mode == TlsMode::On {
            let connector = TlsConnector::from(Arc::new(client(&config.tls)?));
            let stream = connector.connect(name(&address)?, stream).await?;
            get(stream, &address).await
        } else {
            get(stream, &address).await
        }
    };
    let answer = tokio::time::timeout(HEALTH_TIMEOUT, asking)
        .await
        .context("no response within 5 s")??;
    let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
    anyhow::ensure!(answer.starts_with("HTTP/1.1 200"), "not ready: {body}");
    Ok(body.to_owned())
}

async fn get(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    address: &str,
) -> anyhow::Result<String> {
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// The server name that a client of this address would ask for.
fn name(address: &str) -> anyhow::Result<ServerName<'static>> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok(ServerName::try_from(host.to_owned())?)
}

/// The client's configuration. A node that requires a client certificate is shown its own, which it accepts.
fn client(config: &config::Tls) -> anyhow::Result<ClientConfig> {
    let provider = tls::provider();
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)));
    match (config.client_auth, &config.cert_file, &config.key_file) {
        (ClientAuth::Required, Some(certificate), Some(key)) => {
            let certificate = tls::read("tls.cert_file", certificate)?;
            let chain = tls::certificates("tls.cert_file", &certificate)?;
            let key = tls::private_key(&tls::read("tls.key_file", key)?)?;
            Ok(builder.with_client_auth_cert(chain, key)?)
        }
        (ClientAuth::None | ClientAuth::Optional | ClientAuth::Required, _, _) => {
            Ok(builder.with_no_client_auth())
        }
    }
}

/// Accepts any certificate: nothing secret is sent or received. Requiring the certificate in the file would report a node as
/// unhealthy that has not reloaded it yet.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
