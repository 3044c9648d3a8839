//! Facts about a request's sender before its credential is read. They travel in the request's extensions.

use std::net::IpAddr;

use crate::gateway::authenticate::ClientCertificate;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerInfo {
    pub address: IpAddr,
    /// Whether TLS protects the connection up to the node, or up to a trusted proxy.
    pub encrypted: bool,
    /// The client's certificate, if a verified one was presented.
    pub certificate: Option<ClientCertificate>,
}
