//! `[tls]`: where TLS terminates, in the node or in a trusted proxy. Without either, plain HTTP is
//! served on loopback only.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use http::HeaderName;
use ipnet::IpNet;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::error::ConfigError;
use super::require::require_length;
use super::secret::Secret;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TlsMode {
    /// Plain HTTP, on loopback only.
    Off,
    /// In the node.
    On,
    /// In a proxy.
    Upstream,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientAuth {
    None,
    /// A certificate that is presented must verify.
    Optional,
    Required,
}

section! {
    Tls {
        mode: TlsMode = TlsMode::Off,
        /// The certificate and its chain, in PEM, for `on`.
        cert_file: Option<PathBuf> = None,
        key_file: Option<PathBuf> = None,
        /// The certificate authorities for client certificates, in PEM.
        client_ca_file: Option<PathBuf> = None,
        /// Their revocation lists, in PEM.
        client_crl_file: Option<PathBuf> = None,
        client_auth: ClientAuth = ClientAuth::None,
        /// The networks of the trusted proxies, for `upstream`.
        #[serde(deserialize_with = "networks")]
        proxies: Vec<IpNet> = Vec::new(),
        /// The secret that each of them sends in `X-Proxy-Secret`; required with
        /// `client_cert_header`.
        proxy_secret: Secret = Secret::default(),
        proxy_secret_file: Option<PathBuf> = None,
        /// The header in which they pass the client's certificate on; none if empty.
        client_cert_header: String = String::new(),
    }
    constants {
        reload_seconds: u64 = 10,
        handshake_timeout_seconds: u64 = 10,
    }
}

impl Tls {
    /// Whether a client certificate can authenticate a caller.
    pub fn takes_certificates(&self) -> bool {
        match self.mode {
            TlsMode::Off => false,
            TlsMode::On => self.client_auth != ClientAuth::None,
            TlsMode::Upstream => !self.client_cert_header.is_empty(),
        }
    }

    /// Checks what types cannot express. The files themselves are read when the node is built.
    pub(super) fn validate(&self, listen: SocketAddr) -> Result<(), ConfigError> {
        let invalid = |key, problem| Err(ConfigError::invalid(key, problem));
        match self.mode {
            TlsMode::Off if !listen.ip().to_canonical().is_loopback() => invalid(
                "server.listen",
                "plain HTTP is served on loopback only; set tls.mode = \"on\" with tls.cert_file and tls.key_file, \
                 or tls.mode = \"upstream\" with tls.proxies behind a proxy that terminates TLS, or listen on 127.0.0.1 or [::1]",
            ),
            TlsMode::On if self.cert_file.is_none() => invalid(
                "tls.cert_file",
                "is not set; tls.mode = \"on\" needs a certificate and its chain in PEM",
            ),
            TlsMode::On if self.key_file.is_none() => invalid(
                "tls.key_file",
                "is not set; tls.mode = \"on\" needs the certificate's private key in PEM",
            ),
            TlsMode::On
                if self.client_auth != ClientAuth::None && self.client_ca_file.is_none() =>
            {
                invalid(
                    "tls.client_ca_file",
                    "is not set; client certificates (tls.client_auth) need their certificate authorities in PEM",
                )
            }
            TlsMode::On
                if self.client_auth == ClientAuth::None && self.client_crl_file.is_some() =>
            {
                invalid(
                    "tls.client_crl_file",
                    "has no effect without client certificates; set tls.client_auth and tls.client_ca_file, or leave it out",
                )
            }
            TlsMode::Upstream if self.client_crl_file.is_some() => invalid(
                "tls.client_crl_file",
                "has no effect with tls.mode = \"upstream\": the proxy verifies client certificates, so give the list to the proxy",
            ),
            TlsMode::Upstream if self.proxies.is_empty() => invalid(
                "tls.proxies",
                "is empty; tls.mode = \"upstream\" needs the proxies' addresses or networks, such as [\"10.0.0.7\"]",
            ),
            TlsMode::Upstream
                if !self.client_cert_header.is_empty()
                    && HeaderName::try_from(&self.client_cert_header).is_err() =>
            {
                invalid("tls.client_cert_header", "must be the name of a header")
            }
            TlsMode::Upstream
                if !self.client_cert_header.is_empty() && self.proxy_secret.is_empty() =>
            {
                invalid(
                    "tls.proxy_secret",
                    "is not set; with tls.client_cert_header any sender in tls.proxies names the caller, so the proxy must \
                     prove that it is one: set tls.proxy_secret or tls.proxy_secret_file, at least 32 characters, and have the \
                     proxy send it in X-Proxy-Secret",
                )
            }
            TlsMode::Upstream => require_length("tls.proxy_secret", &self.proxy_secret),
            TlsMode::Off | TlsMode::On => Ok(()),
        }
    }
}

/// Reads a list of networks. A plain address is a network of its own.
pub(super) fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let parse = |text: &String| {
        let address = |_| text.parse::<IpAddr>().map(IpNet::from);
        let network = text.parse::<IpNet>().or_else(address);
        network.map_err(|_| {
            D::Error::custom(format!(
                "{text} is not a network; write an address, or one with a prefix such as 10.0.0.0/8 or fd00::/8"
            ))
        })
    };
    texts.iter().map(parse).collect()
}
