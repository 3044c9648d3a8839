//! `[tls]`: who ends TLS, us or a proxy that we believe. Without either, plain HTTP is served on loopback only.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use axum::http::HeaderName;
use serde::{Deserialize, Serialize};

use super::ConfigError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TlsMode {
    /// Nobody: plain HTTP, on loopback only.
    Off,
    On,
    Upstream,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientAuth {
    /// They are not asked.
    None,
    /// They may; one that is shown must verify.
    Optional,
    /// They must.
    Required,
}

section! {
    /// `[tls]`: encryption up to the node.
    Tls {
        /// `off`, `on` or `upstream`.
        mode: TlsMode = TlsMode::Off,
        /// The certificate and its chain, in PEM, for `on`.
        cert_file: Option<PathBuf> = None,
        key_file: Option<PathBuf> = None,
        /// Who may sign client certificates, in PEM.
        client_ca_file: Option<PathBuf> = None,
        /// `none`, `optional` or `required`.
        client_auth: ClientAuth = ClientAuth::None,
        reload_seconds: u64 = 10,
        /// How long a handshake may take.
        handshake_timeout_seconds: u64 = 10,
        /// The networks of the proxies that are believed, for `upstream`.
        proxies: Vec<Network> = Vec::new(),
        /// The header in which they hand on the client's certificate; none if empty.
        client_cert_header: String = String::new(),
    }
}

impl Tls {
    /// Whether a client certificate can stand for a caller.
    #[must_use]
    pub fn takes_certificates(&self) -> bool {
        match self.mode {
            TlsMode::Off => false,
            TlsMode::On => self.client_auth != ClientAuth::None,
            TlsMode::Upstream => !self.client_cert_header.is_empty(),
        }
    }

    /// Checks what types cannot say. The files themselves are read when the node is built.
    pub(super) fn validate(&self, listen: SocketAddr) -> Result<(), ConfigError> {
        let invalid = |key, problem: &str| {
            Err(ConfigError::Invalid {
                key,
                problem: problem.to_owned(),
            })
        };
        match self.mode {
            TlsMode::Off if !listen.ip().to_canonical().is_loopback() => invalid(
                "server.listen",
                "plain HTTP is served on loopback only; set tls.mode = \"on\" with tls.cert_file and tls.key_file, \
                 or tls.mode = \"upstream\" with tls.proxies behind a proxy that ends TLS, or listen on 127.0.0.1 or [::1]",
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
                    "is not set; client certificates (tls.client_auth) need who signs them, in PEM",
                )
            }
            TlsMode::On if self.reload_seconds == 0 || self.handshake_timeout_seconds == 0 => {
                invalid(
                    "tls.reload_seconds",
                    "this and tls.handshake_timeout_seconds must be at least 1",
                )
            }
            TlsMode::Upstream if self.proxies.is_empty() => invalid(
                "tls.proxies",
                "is empty; tls.mode = \"upstream\" needs the proxies' networks, such as [\"10.0.0.0/8\"]",
            ),
            TlsMode::Upstream
                if !self.client_cert_header.is_empty()
                    && HeaderName::try_from(&self.client_cert_header).is_err() =>
            {
                invalid("tls.client_cert_header", "should be the name of a header")
            }
            TlsMode::Off | TlsMode::On | TlsMode::Upstream => Ok(()),
        }
    }
}

/// A network: an address and how many of its bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let shift = |width: u8| u32::from(width - self.bits);
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differ = network.to_bits() ^ address.to_bits();
                differ.checked_shr(shift(32)).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differ = network.to_bits() ^ address.to_bits();
                differ.checked_shr(shift(128)).unwrap_or(0) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text.as_str(), None),
        };
        let parsed = address.parse::<IpAddr>().ok().and_then(|address| {
            let width = if address.is_ipv4() { 32 } else { 128 };
            let bits = match bits {
                Some(bits) => bits.parse().ok().filter(|bits| *bits <= width)?,
                None => width,
            };
            Some(Self { address, bits })
        });
        parsed.ok_or_else(|| {
            format!("{text} is no network; write an address, or one with a prefix such as 10.0.0.0/8 or fd00::/8")
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}
