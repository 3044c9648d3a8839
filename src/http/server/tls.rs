//! TLS terminated by the node: certificate, key, client authorities and their revocation lists from
//! files that are reloaded when they change. Only a complete, verified set takes effect; anything
//! else is logged and changes nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime};
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use x509_parser::prelude::FromDer as _;
use x509_parser::revocation_list::CertificateRevocationList;

use super::client_certificate;
use super::self_or_ca::SelfOrCaVerifier;
use crate::config::{self, ClientAuth, ConfigError};
use crate::gateway::identity::authenticate::ClientCertificate;
use crate::jitter::jitter;
use crate::telemetry::Metrics;

pub struct TlsListener {
    config: config::Tls,
    /// Held for a few instructions, never across an await.
    current: RwLock<Arc<ServerConfig>>,
}

impl TlsListener {
    /// Reads and verifies the configured files. The digest identifies their contents.
    fn load(config: &config::Tls) -> Result<(Self, [u8; 32]), ConfigError> {
        let files = TlsFiles::read(config)?;
        let tls = Self {
            config: config.clone(),
            current: RwLock::new(files.build(config.client_auth)?),
        };
        Ok((tls, files.digest()))
    }

    /// Verifies that the configured files can be used.
    pub fn check(config: &config::Tls) -> Result<(), ConfigError> {
        Self::load(config).map(drop)
    }

    /// TLS from these files, and the task that reloads them.
    pub(super) fn open(
        config: &config::Tls,
        metrics: &Arc<Metrics>,
    ) -> Result<(Arc<Self>, impl Future<Output = ()> + Send + use<>), ConfigError> {
        let (tls, digest) = Self::load(config)?;
        let tls = Arc::new(tls);
        let every = Duration::from_secs(config.reload_seconds);
        let reloading = Arc::clone(&tls).reload(digest, every, Arc::clone(metrics));
        Ok((tls, reloading))
    }

    /// Reads the files again and again. Connections keep the configuration they began with.
    async fn reload(self: Arc<Self>, mut seen: [u8; 32], every: Duration, metrics: Arc<Metrics>) {
        // The fault of the files last read, and the fault last logged.
        let (mut fault, mut logged) = (None, None);
        let mut was_stale = false;
        loop {
            tokio::time::sleep(jitter(every)).await;
            let tls = Arc::clone(&self);
            let Ok(read) = tokio::task::spawn_blocking(move || TlsFiles::read(&tls.config)).await
            else {
                continue;
            };
            let mut stale = false;
            let wrong = match read {
                Ok(files) => {
                    stale = files.has_stale_list(UnixTime::now());
                    let digest = files.digest();
                    // Remembered even if they cannot be used, so that a fault is logged once.
                    if digest != seen {
                        seen = digest;
                        fault = self.replace(&files).err().map(|error| error.to_string());
                    }
                    fault.clone()
                }
                Err(error) => Some(error.to_string()),
            };
            if let Some(error) = &wrong
                && logged != wrong
            {
                tracing::warn!(
                    error,
                    "the TLS files changed and cannot be used; the old ones stay in force"
                );
            }
            if stale && !was_stale {
                tracing::warn!(
                    "a list in tls.client_crl_file is past its next update: its authority's certificates are refused until \
                     there is a newer one"
                );
            }
            let refused = f64::from(u8::from(wrong.is_some() || stale));
            metrics.tls_refused.set(refused);
            (logged, was_stale) = (wrong, stale);
        }
    }

    fn replace(&self, files: &TlsFiles) -> Result<(), ConfigError> {
        let built = files.build(self.config.client_auth)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = built;
        tracing::info!("new TLS files are in force");
        Ok(())
    }

    /// Completes a handshake: the stream, and the client's certificate if it presented one.
    pub async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<ClientCertificate>)> {
        let config = Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner));
        let handshake = TlsAcceptor::from(config).accept(stream);
        let time_limit = Duration::from_secs(self.config.handshake_timeout_seconds);
        let stream = tokio::time::timeout(time_limit, handshake)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let (_, session) = stream.get_ref();
        let presented = session.peer_certificates().and_then(<[_]>::first);
        let certificate = presented.and_then(|der| client_certificate::read(der));
        Ok((stream, certificate))
    }
}

/// Named here, so that nothing depends on what another crate installs as the process default.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

pub fn certificates(
    key: &'static str,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    pem_items(key, pem, "there is no certificate in it")
}

/// The items of one kind in a PEM file, which must have one.
fn pem_items<T: PemObject>(
    key: &'static str,
    pem: &[u8],
    missing: &str,
) -> Result<Vec<T>, ConfigError> {
    let found = T::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(unusable(key, &missing)),
        Err(error) => Err(unusable(key, &error)),
    }
}

/// The private key in a PEM file: PKCS#8, PKCS#1 or SEC1.
pub fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, ConfigError> {
    // The parser's error is not shown: it may quote most of a key.
    PrivateKeyDer::from_pem_slice(pem)
        .map_err(|_| unusable("tls.key_file", &"there is no private key in it"))
}

fn unusable(key: &'static str, problem: &dyn std::fmt::Display) -> ConfigError {
    ConfigError::Invalid {
        key,
        problem: format!("cannot be used: {problem}"),
    }
}

pub fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, ConfigError> {
    std::fs::read(path).map_err(|error| ConfigError::File {
        key,
        path: path.to_owned(),
        error,
    })
}

/// The contents of the configured files.
struct TlsFiles {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authorities: Option<Vec<u8>>,
    revocations: Option<Vec<u8>>,
}

impl TlsFiles {
    fn read(config: &config::Tls) -> Result<Self, ConfigError> {
        let read = |key, path: &Option<PathBuf>| match path {
            Some(path) => read(key, path),
            None => Err(ConfigError::Invalid {
                key,
                problem: "is not set".into(),
            }),
        };
        Ok(Self {
            certificate: read("tls.cert_file", &config.cert_file)?,
            key: read("tls.key_file", &config.key_file)?,
            authorities: match config.client_auth {
                ClientAuth::None => None,
                ClientAuth::Optional | ClientAuth::Required => {
                    Some(read("tls.client_ca_file", &config.client_ca_file)?)
                }
            },
            revocations: match &config.client_crl_file {
                Some(_) => Some(read("tls.client_crl_file", &config.client_crl_file)?),
                None => None,
            },
        })
    }

    /// Identifies the contents. Kept instead of them, since one of them is a secret.
    fn digest(&self) -> [u8; 32] {
        let optional = [&self.authorities, &self.revocations];
        let [authorities, revocations] = optional.map(|file| file.as_deref().unwrap_or_default());
        let parts = [&self.certificate, &self.key, authorities, revocations];
        Sha256::digest(parts.map(Sha256::digest).concat()).into()
    }

    fn revocation_lists(&self) -> Result<Vec<CertificateRevocationListDer<'static>>, ConfigError> {
        let Some(pem) = &self.revocations else {
            return Ok(Vec::new());
        };
        pem_items(
            "tls.client_crl_file",
            pem,
            "there is no revocation list in it",
        )
    }

    /// Whether a revocation list is past its next update. Building finds lists that cannot be read.
    fn has_stale_list(&self, now: UnixTime) -> bool {
        let lists = self.revocation_lists().unwrap_or_default();
        lists.iter().any(|list| {
            let next = CertificateRevocationList::from_der(list)
                .ok()
                .and_then(|(_, list)| list.next_update());
            next.is_some_and(|at| u64::try_from(at.timestamp()).unwrap_or(0) <= now.as_secs())
        })
    }

    /// Builds the server configuration, and verifies that key and certificate match.
    fn build(&self, client_auth: ClientAuth) -> Result<Arc<ServerConfig>, ConfigError> {
        let chain = certificates("tls.cert_file", &self.certificate)?;
        let key = private_key(&self.key)?;
        let provider = provider();
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(|error| unusable("tls.mode", &error))?;
        let builder = match &self.authorities {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates("tls.client_ca_file", pem)? {
                    roots
                        .add(authority)
                        .map_err(|error| unusable("tls.client_ca_file", &error))?;
                }
                // With lists, each authority of a chain needs one that is not past its next update:
                // a certificate that may have been revoked is not let in.
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .with_crls(self.revocation_lists()?)
                        .enforce_revocation_expiration();
                let verifier = match client_auth {
                    ClientAuth::Required => verifier,
                    ClientAuth::None | ClientAuth::Optional => verifier.allow_unauthenticated(),
                };
                let verifier = verifier.build().map_err(|error| {
                    let key = match error {
                        VerifierBuilderError::InvalidCrl(_) => "tls.client_crl_file",
                        _ => "tls.client_ca_file",
                    };
                    unusable(key, &error)
                })?;
                builder.with_client_cert_verifier(SelfOrCaVerifier::new(
                    verifier,
                    chain.first().cloned(),
                ))
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| match error {
                rustls::Error::InconsistentKeys(_) => ConfigError::Invalid {
                    key: "tls.key_file",
                    problem: "is not the key of the certificate in tls.cert_file".into(),
                },
                error => unusable("tls.cert_file", &error),
            })?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        if client_auth != ClientAuth::None {
            // A resumed session would outlive the client's certificate.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Arc::new(config))
    }
}
