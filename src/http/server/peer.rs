//! Facts about the sender of a request, in its extensions, before its credential is read.

use std::net::IpAddr;

use crate::gateway::identity::authenticate::ClientCertificate;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerInfo {
    pub address: IpAddr,
    /// Whether TLS protects the connection up to the node, or up to a trusted proxy.
    pub encrypted: bool,
    /// The client's certificate, if a verified one was presented.
    pub certificate: Option<ClientCertificate>,
}
