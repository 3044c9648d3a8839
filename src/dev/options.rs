//! The options of `countersign dev`.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use anyhow::Context as _;

use super::lan::LanChoice;

#[derive(Debug)]
pub struct DevOptions {
    /// The address of the first node. The others use the ports after it, or free ones for port 0.
    pub listen: SocketAddr,
    pub nodes: u16,
    pub data_dir: Option<PathBuf>,
    /// Whether to remove all data at the end.
    pub ephemeral: bool,
    /// Whether to print the demo keys.
    pub keys: bool,
    /// Whether to refuse what our deployments refuse.
    pub strict: bool,
    /// Whether, and where, to serve the local network too.
    pub lan: Option<LanChoice>,
    /// Written once every node is ready.
    pub ready_file: Option<PathBuf>,
    pub config_file: Option<PathBuf>,
    pub database_url: Option<String>,
}

impl DevOptions {
    pub fn address(&self, node: u16) -> anyhow::Result<SocketAddr> {
        let mut address = self.listen;
        if address.port() != 0 {
            let port = address.port().checked_add(node);
            address.set_port(port.context("there are not that many ports after --listen")?);
        }
        Ok(address)
    }

    /// Fails if a node could not listen. Without this check, that would show only after the
    /// database and the keys have been created.
    pub fn check_addresses(&self) -> anyhow::Result<()> {
        for node in 0..self.nodes {
            check_address(self.address(node)?, "--listen")?;
        }
        Ok(())
    }
}

pub fn check_address(address: SocketAddr, option: &str) -> anyhow::Result<()> {
    TcpListener::bind(address).map(drop).map_err(|error| {
        anyhow::anyhow!(
            "cannot listen on {address}: {error}; stop what uses this address (another `countersign dev`?), or choose \
             another with {option}"
        )
    })
}
