//! `dev --lan`: one more node, over TLS, on this machine's address in the local network, so that a
//! phone can open the page. Browsers need TLS for the keys of a device.

mod address;
mod authority;
mod trust_page;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

pub use self::address::LanChoice;
use self::authority::LanAuthority;
use super::options::check_address;

/// What serves the local network beside the nodes.
pub struct LanService {
    /// The address of the node.
    pub address: SocketAddr,
    /// The page that explains to a phone how to trust the node, over plain HTTP.
    pub trust_page: String,
    pub authority: LanAuthority,
    pub certificate: PathBuf,
    pub key: PathBuf,
    _serving: AbortOnDropHandle<()>,
}

impl LanService {
    /// Fails if the node, or the page beside it, could not listen.
    pub fn check(choice: &LanChoice) -> anyhow::Result<SocketAddr> {
        let address = choice.resolve()?;
        check_address(address, "--lan=ADDRESS:PORT")?;
        check_address(trust_page_address(address), "--lan=ADDRESS:PORT")?;
        Ok(address)
    }

    pub async fn start(
        address: SocketAddr,
        data_dir: &Path,
        run_dir: &Path,
    ) -> anyhow::Result<Self> {
        let authority = LanAuthority::open(&data_dir.join("lan"))?;
        let (certificate, key) = (run_dir.join("lan.crt"), run_dir.join("lan.key"));
        authority.issue(address.ip(), &certificate, &key)?;
        let listener = TcpListener::bind(trust_page_address(address)).await?;
        let trust_page = format!("http://{}/", listener.local_addr()?);
        let serving = trust_page::serve(listener, &authority, &format!("https://{address}"));
        Ok(Self {
            address,
            trust_page,
            authority,
            certificate,
            key,
            _serving: AbortOnDropHandle::new(tokio::spawn(serving)),
        })
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }
}

/// The port after the node's.
fn trust_page_address(mut node: SocketAddr) -> SocketAddr {
    node.set_port(node.port().wrapping_add(1));
    node
}
