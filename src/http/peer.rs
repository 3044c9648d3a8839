//! What is known of a request's sender before its credential is read. It travels in the request's extensions.

use std::net::IpAddr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerInfo {
    pub address: IpAddr,
    /// Whether TLS protects the connection up to the node, or up to a trusted proxy.
    pub encrypted: bool,
    /// SHA-256 of the client certificate, if a verified one was presented.
    pub thumbprint: Option<[u8; 32]>,
}
