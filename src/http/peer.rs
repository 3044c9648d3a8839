//! Who is at the other end of a connection: what the accept loop knows, before any header is believed.

use std::net::IpAddr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    pub address: IpAddr,
    /// Whether the connection is encrypted up to us, or up to a proxy that we believe.
    pub encrypted: bool,
    /// SHA-256 of the certificate it showed, if we verified one.
    pub thumbprint: Option<[u8; 32]>,
}
