//! Reads what proxies that terminate TLS report about the client. Only listed networks are trusted,
//! and only with the secret where there is one; from anywhere else, and in every other mode, these
//! headers are ignored.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ipnet::IpNet;
use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::client_certificate;
use super::peer::PeerInfo;
use crate::config;
use crate::gateway::identity::authenticate::ClientCertificate;

/// A proxy proves itself with it. Others may have an address in the same network.
const SECRET_HEADER: &str = "x-proxy-secret";

pub struct TrustedProxies {
    networks: Vec<IpNet>,
    /// SHA-256 of the secret that every proxy sends.
    secret: Option<[u8; 32]>,
    certificate: Option<HeaderName>,
}

/// The reason why a request may only ask for health, in the request's extensions.
#[derive(Debug, Clone, Copy)]
pub enum HealthOnly {
    /// It did not come over TLS, as far as the node can know: that needs this.
    Unencrypted(&'static str),
    /// The node has as many connections as it may.
    Full,
}

impl TrustedProxies {
    pub fn new(config: &config::Tls) -> Self {
        let secret = Some(config.proxy_secret.expose()).filter(|secret| !secret.is_empty());
        Self {
            networks: config.proxies.clone(),
            secret: secret.map(|secret| Sha256::digest(secret).into()),
            certificate: HeaderName::try_from(&config.client_cert_header).ok(),
        }
    }

    /// Whether a listed network has the address. An IPv4 address mapped into IPv6 is IPv4.
    pub fn lists(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks
            .iter()
            .any(|network| network.contains(&address))
    }

    /// Whether a connection is accepted: from a listed proxy, or for health from this machine.
    pub fn admits(&self, peer: SocketAddr, local: Option<SocketAddr>) -> bool {
        let address = peer.ip().to_canonical();
        self.lists(address)
            || address.is_loopback()
            || local.is_some_and(|local| local.ip().to_canonical() == address)
    }

    /// The client behind the proxy, and why it may only ask for health, if so.
    pub fn client(&self, peer: PeerInfo, headers: &HeaderMap) -> (PeerInfo, Option<HealthOnly>) {
        if !self.lists(peer.address) {
            let why = HealthOnly::Unencrypted("a call through a proxy that tls.proxies lists");
            return (peer, Some(why));
        }
        if !self.knows_secret(headers) {
            let why = HealthOnly::Unencrypted("the secret of tls.proxy_secret from the proxy");
            return (peer, Some(why));
        }
        let encrypted = is_https(headers);
        let client = PeerInfo {
            address: self.address(peer.address, headers),
            encrypted,
            certificate: self.certificate(headers).filter(|_| encrypted),
        };
        let why = HealthOnly::Unencrypted("X-Forwarded-Proto: https from the proxy");
        (client, (!encrypted).then_some(why))
    }

    /// Whether a header holds the secret. While it changes, a proxy may send two.
    fn knows_secret(&self, headers: &HeaderMap) -> bool {
        self.secret.is_none_or(|secret| {
            headers.get_all(SECRET_HEADER).iter().any(|given| {
                let given: [u8; 32] = Sha256::digest(given).into();
                given.ct_eq(&secret).into()
            })
        })
    }

    /// The right-most address that is no listed proxy. The client may forge those before it.
    fn address(&self, proxy: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut furthest = proxy;
        for value in headers.get_all("x-forwarded-for").iter().rev() {
            let Ok(value) = value.to_str() else {
                return proxy;
            };
            for hop in value.rsplit(',') {
                let Some(hop) = parse_address(hop.trim()) else {
                    return proxy;
                };
                if !self.lists(hop) {
                    return hop;
                }
                furthest = hop;
            }
        }
        furthest
    }

    /// The certificate that the client presented to the proxy.
    fn certificate(&self, headers: &HeaderMap) -> Option<ClientCertificate> {
        let value = single(headers, self.certificate.as_ref()?)?;
        let found = decode(value).and_then(|der| client_certificate::read(&der));
        if found.is_none() && !value.is_empty() {
            tracing::debug!("a proxy sent a client certificate that cannot be read");
        }
        found
    }
}

/// The value of a header that occurs once. Of two, one may be the client's own.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok().map(str::trim),
        (_, _) => None,
    }
}

/// Whether the nearest proxy was called over TLS. Some proxies report `wss` for a WebSocket.
fn is_https(headers: &HeaderMap) -> bool {
    let name = HeaderName::from_static("x-forwarded-proto");
    let last = single(headers, &name).and_then(|value| value.rsplit(',').next());
    last.map(str::trim).is_some_and(|scheme| {
        scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("wss")
    })
}

fn parse_address(text: &str) -> Option<IpAddr> {
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let address = bare.unwrap_or(text).parse::<IpAddr>().ok();
    let address = address.or_else(|| text.parse::<SocketAddr>().ok().map(|at| at.ip()));
    address.map(|address| address.to_canonical())
}

/// The DER of a certificate in a header: escaped PEM (nginx), base64 (`HAProxy`), or base64 between
/// colons (RFC 9440).
fn decode(value: &str) -> Option<Vec<u8>> {
    let text = percent_decode_str(value).decode_utf8().ok()?;
    if text.contains("-----BEGIN") {
        let found = CertificateDer::from_pem_slice(text.as_bytes()).ok()?;
        return Some(found.to_vec());
    }
    let text = text.trim();
    let bare = text
        .strip_prefix(':')
        .and_then(|rest| rest.strip_suffix(':'));
    let der = STANDARD.decode(bare.unwrap_or(text)).ok()?;
    (!der.is_empty()).then_some(der)
}
