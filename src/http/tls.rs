//! TLS in the process: certificate, key and client authorities from files that are looked at again and again. Whatever
//! is in force is whole and was checked; files that make no sense are logged and change nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::self_or_ca::SelfOrCaVerifier;
use crate::config::{self, ClientAuth, ConfigError};
use crate::jitter::jitter;
use crate::telemetry::Metrics;

struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authorities: Option<Vec<u8>>,
}

impl Contents {
    /// What tells them from others; kept in their place, since one of them is a secret.
    fn digest(&self) -> [[u8; 32]; 3] {
        let authorities = self.authorities.as_deref().unwrap_or_default();
        [&self.certificate, &self.key, authorities].map(|part| Sha256::digest(part).into())
    }
}

struct Files {
    certificate: PathBuf,
    key: PathBuf,
    authorities: Option<PathBuf>,
    client_auth: ClientAuth,
}

pub struct Tls {
    files: Files,
    /// Held for a few instructions, never across an await.
    current: RwLock<Arc<ServerConfig>>,
    handshake_timeout: Duration,
}

impl Tls {
    /// Reads and checks the files of a configuration. With their digest, to tell when they change.
    fn load(config: &config::Tls) -> Result<(Self, [[u8; 32]; 3]), ConfigError> {
        let named = |key, path: &Option<PathBuf>| {
            path.clone().ok_or_else(|| ConfigError::Invalid {
                key,
                problem: "is not set".into(),
            })
        };
        let files = Files {
            certificate: named("tls.cert_file", &config.cert_file)?,
            key: named("tls.key_file", &config.key_file)?,
            authorities: match config.client_auth {
                ClientAuth::None => None,
                ClientAuth::Optional | ClientAuth::Required => {
                    Some(named("tls.client_ca_file", &config.client_ca_file)?)
                }
            },
            client_auth: config.client_auth,
        };
        let contents = files.read()?;
        let current = RwLock::new(files.build(&contents)?);
        let tls = Self {
            files,
            current,
            handshake_timeout: Duration::from_secs(config.handshake_timeout_seconds),
        };
        Ok((tls, contents.digest()))
    }

    /// Checks that the files of a configuration can be used.
    pub fn check(config: &config::Tls) -> Result<(), ConfigError> {
        Self::load(config).map(drop)
    }

    /// TLS from these files, and what keeps it up to date for as long as it runs.
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

    /// Looks at the files again and again. Connections keep what they began with; new ones take what is new.
    async fn reload(
        self: Arc<Self>,
        mut seen: [[u8; 32]; 3],
        every: Duration,
        metrics: Arc<Metrics>,
    ) {
        // What is wrong with the files last seen, and what was last said about it.
        let (mut fault, mut complaint) = (None, None);
        loop {
            tokio::time::sleep(jitter(every)).await;
            let looking = Arc::clone(&self);
            let Ok(read) = tokio::task::spawn_blocking(move || looking.files.read()).await else {
                continue;
            };
            let wrong = match read {
                Ok(contents) => {
                    let digest = contents.digest();
                    // Remembered even if they are no good: a fault is worth one line, not one every few seconds.
                    if digest != seen {
                        seen = digest;
                        fault = self.take(&contents).err().map(|error| error.to_string());
                    }
                    fault.clone()
                }
                Err(error) => Some(error.to_string()),
            };
            if let Some(error) = &wrong
                && complaint != wrong
            {
                tracing::warn!(
                    error,
                    "the TLS files changed and are no good; the old ones stay in force"
                );
            }
            let refused = f64::from(u8::from(wrong.is_some()));
            metrics.tls_refused.set(refused);
            complaint = wrong;
        }
    }

    /// Puts new files into force, if they are good.
    fn take(&self, contents: &Contents) -> Result<(), ConfigError> {
        let built = self.files.build(contents)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = built;
        tracing::info!("new TLS files are in force");
        Ok(())
    }

    /// Greets a client: the encrypted stream, and the thumbprint of the certificate it showed.
    pub async fn greet(
        &self,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<[u8; 32]>)> {
        let config = Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner));
        let greeting = TlsAcceptor::from(config).accept(stream);
        let stream = tokio::time::timeout(self.handshake_timeout, greeting)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let (_, session) = stream.get_ref();
        let shown = session.peer_certificates().and_then(<[_]>::first);
        let thumbprint = shown.map(|certificate| Sha256::digest(certificate).into());
        Ok((stream, thumbprint))
    }
}

/// The cryptography we use: named, so that nothing depends on what another crate made the process's default.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

pub fn certificates(
    key: &'static str,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(unusable(key, &"there is no certificate in it")),
        Err(error) => Err(unusable(key, &error)),
    }
}

/// The private key in a PEM file: PKCS#8, PKCS#1 or SEC1.
pub fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, ConfigError> {
    // What could not be read is not repeated: it may be most of a key.
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

impl Files {
    fn read(&self) -> Result<Contents, ConfigError> {
        Ok(Contents {
            certificate: read("tls.cert_file", &self.certificate)?,
            key: read("tls.key_file", &self.key)?,
            authorities: match &self.authorities {
                Some(path) => Some(read("tls.client_ca_file", path)?),
                None => None,
            },
        })
    }

    /// Puts a server's side together, and checks that the parts belong to each other.
    fn build(&self, contents: &Contents) -> Result<Arc<ServerConfig>, ConfigError> {
        let chain = certificates("tls.cert_file", &contents.certificate)?;
        let key = private_key(&contents.key)?;
        let provider = provider();
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(|error| unusable("tls.mode", &error))?;
        let builder = match &contents.authorities {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates("tls.client_ca_file", pem)? {
                    roots
                        .add(authority)
                        .map_err(|error| unusable("tls.client_ca_file", &error))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = match self.client_auth {
                    ClientAuth::Required => verifier,
                    ClientAuth::None | ClientAuth::Optional => verifier.allow_unauthenticated(),
                };
                let verifier = verifier
                    .build()
                    .map_err(|error| unusable("tls.client_ca_file", &error))?;
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
        if self.client_auth != ClientAuth::None {
            // A session that is taken up again is not verified again: it would outlive the client's certificate.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Arc::new(config))
    }
}
