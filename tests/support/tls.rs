//! Certificates made on the spot, and clients that choose what they speak, trust and show.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Bytes;
use countersign::config::{ClientAuth, Config, TlsMode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams,
    SerialNumber, date_time_ymd,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::answer::Answer;

/// Someone who signs certificates.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key.
pub struct Pair {
    /// The certificate in PEM.
    pub certificate: String,
    /// The key in PEM.
    pub key: String,
    /// The certificate in DER.
    pub der: Vec<u8>,
    serial: SerialNumber,
}

impl Authority {
    /// A new one.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority");
        Self { issuer }
    }

    /// Its own certificate in PEM.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A server's certificate, for this machine.
    pub fn server(&self) -> Pair {
        self.issue(
            ExtendedKeyUsagePurpose::ServerAuth,
            date_time_ymd(2100, 1, 1),
        )
    }

    /// A client's certificate.
    pub fn client(&self) -> Pair {
        self.client_until(date_time_ymd(2100, 1, 1))
    }

    /// A client's certificate that is past its time.
    pub fn expired_client(&self) -> Pair {
        self.client_until(date_time_ymd(2020, 1, 1))
    }

    /// A client's certificate that expires then.
    pub fn client_until(&self, end: OffsetDateTime) -> Pair {
        self.issue(ExtendedKeyUsagePurpose::ClientAuth, end)
    }

    /// Its list of revoked certificates in PEM, with these on it and good until then.
    pub fn revocations(&self, revoked: &[&Pair], next_update: OffsetDateTime) -> String {
        let issued = date_time_ymd(2011, 1, 1);
        let revoked_certs = revoked.iter().map(|pair| RevokedCertParams {
            serial_number: pair.serial.clone(),
            revocation_time: issued,
            reason_code: None,
            invalidity_date: None,
        });
        let params = CertificateRevocationListParams {
            this_update: issued,
            next_update,
            crl_number: SerialNumber::from(1_u64),
            issuing_distribution_point: None,
            revoked_certs: revoked_certs.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = params.signed_by(&self.issuer).expect("a list");
        list.pem().expect("PEM")
    }

    fn issue(&self, usage: ExtendedKeyUsagePurpose, end: OffsetDateTime) -> Pair {
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let mut params = CertificateParams::new(names).expect("parameters");
        params.extended_key_usages = vec![usage];
        params.not_before = date_time_ymd(2010, 1, 1);
        params.not_after = end;
        let mut serial = [1; 16];
        getrandom::fill(&mut serial[1..]).expect("randomness");
        let serial = SerialNumber::from(serial.to_vec());
        params.serial_number = Some(serial.clone());
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            der: certificate.der().to_vec(),
            serial,
        }
    }
}

impl Pair {
    /// SHA-256 of the certificate.
    pub fn thumbprint(&self) -> [u8; 32] {
        Sha256::digest(&self.der).into()
    }
}

/// The files of a node.
pub struct Files {
    directory: tempfile::TempDir,
}

impl Files {
    /// With this pair in them.
    pub fn with(pair: &Pair) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let files = Self { directory };
        files.put("cert.pem", &pair.certificate);
        files.put("key.pem", &pair.key);
        files
    }

    /// Where a file is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file, whole.
    pub fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        write_whole(&path, text);
        path
    }

    /// Makes a configuration use them.
    pub fn configure(&self, config: &mut Config) {
        config.tls.mode = TlsMode::On;
        config.tls.cert_file = Some(self.path("cert.pem"));
        config.tls.key_file = Some(self.path("key.pem"));
    }

    /// The same, with client certificates signed by `authority`.
    pub fn configure_clients(&self, config: &mut Config, auth: ClientAuth, authority: &Authority) {
        self.configure(config);
        config.tls.client_auth = auth;
        config.tls.client_ca_file = Some(self.put("clients.pem", &authority.pem()));
    }
}

fn write_whole(path: &Path, text: &str) {
    let part = path.with_extension("part");
    std::fs::write(&part, text).expect("written");
    std::fs::rename(&part, path).expect("in place");
}

/// A client's trust, certificate and protocol.
pub struct TlsClient<'a> {
    trusted: &'a Authority,
    shown: Option<&'a Pair>,
    versions: Vec<&'static SupportedProtocolVersion>,
    protocols: &'static [&'static [u8]],
}

impl<'a> TlsClient<'a> {
    /// A client that trusts servers of one authority.
    pub fn trusting(trusted: &'a Authority) -> Self {
        Self {
            trusted,
            shown: None,
            versions: rustls::ALL_VERSIONS.to_vec(),
            protocols: &[],
        }
    }

    /// One that shows a certificate.
    pub fn showing(self, pair: &'a Pair) -> Self {
        Self {
            shown: Some(pair),
            ..self
        }
    }

    /// One that speaks this version only.
    pub fn speaking(self, version: &'static SupportedProtocolVersion) -> Self {
        Self {
            versions: vec![version],
            ..self
        }
    }

    /// One that offers these protocols.
    pub fn offering(self, protocols: &'static [&'static [u8]]) -> Self {
        Self { protocols, ..self }
    }

    fn config(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(self.trusted.pem().as_bytes());
        roots.add(authority.expect("PEM")).expect("an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&self.versions)
            .expect("versions")
            .with_root_certificates(roots);
        let mut config = match self.shown {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).expect("a key");
                let chain = vec![CertificateDer::from(pair.der.clone())];
                builder.with_client_auth_cert(chain, key).expect("a pair")
            }
        };
        config.alpn_protocols = self.protocols.iter().map(|name| name.to_vec()).collect();
        config
    }

    /// Shakes hands with a node.
    pub async fn connect(&self, url: &str) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address(url)).await?;
        let name = ServerName::try_from("127.0.0.1").expect("a name");
        let connector = TlsConnector::from(Arc::new(self.config()));
        connector.connect(name, stream).await
    }

    /// One call on a connection of its own; an error if there was no answer.
    pub async fn get(&self, url: &str, path: &str, headers: &[(&str, &str)]) -> io::Result<Answer> {
        self.call(url, path, headers, None).await
    }

    /// The same with a body.
    pub async fn post(&self, url: &str, path: &str, body: &Value) -> io::Result<Answer> {
        self.call(url, path, &[], Some(body)).await
    }

    async fn call(
        &self,
        url: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> io::Result<Answer> {
        let talking = async {
            let stream = self.connect(url).await?;
            let mut calls = Conversation::over(stream).await?;
            calls
                .call(
                    if body.is_some() { "POST" } else { "GET" },
                    path,
                    headers,
                    body,
                )
                .await
        };
        // A peer that ends the connection while we greet it may never be heard of again.
        match tokio::time::timeout(PATIENCE, talking).await {
            Ok(answer) => answer,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Longest wait for an answer.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// Where a node listens.
pub fn address(url: &str) -> &str {
    url.rsplit('/').next().expect("an address")
}

/// A plain connection from a chosen address.
pub async fn from(source: &str, url: &str) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(source.parse().expect("an address"), 0))?;
    socket
        .connect(address(url).parse().expect("an address"))
        .await
}

/// Calls, one after the other, on one connection.
pub struct Conversation {
    sender: SendRequest<Full<Bytes>>,
}

impl Conversation {
    /// Over this stream.
    pub async fn over<S>(stream: S) -> io::Result<Self>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (sender, connection) = handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        tokio::spawn(connection);
        Ok(Self { sender })
    }

    /// One call.
    pub async fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> io::Result<Answer> {
        self.call("GET", path, headers, None).await
    }

    /// One call by this method.
    pub async fn call(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> io::Result<Answer> {
        let mut request = hyper::Request::builder().method(method).uri(path);
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let mut request = request.header("host", "test");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map(|body| Full::from(body.to_string()));
        let request = request.body(body.unwrap_or_default()).expect("a request");
        self.sender.ready().await.map_err(io::Error::other)?;
        let response = self
            .sender
            .send_request(request)
            .await
            .map_err(io::Error::other)?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        Ok(Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            text: String::from_utf8_lossy(&body).into_owned(),
        })
    }
}
