//! This machine's address in the local network.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::str::FromStr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

const PORT: u16 = 8443;
/// For documentation (RFC 5737): it is outside, and nothing is sent there.
const OUTSIDE: (&str, u16) = ("198.51.100.1", 9);

/// The value of `--lan`: empty, an address, or an address and a port.
#[derive(Debug, Clone, Copy)]
pub struct LanChoice {
    address: Option<IpAddr>,
    port: u16,
}

impl FromStr for LanChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self {
                address: None,
                port: PORT,
            });
        }
        let with_port = text.parse::<SocketAddr>().ok();
        let address = with_port.map(|it| it.ip()).or_else(|| text.parse().ok());
        let address = address.ok_or(
            "expected an IP address of this machine, such as 192.168.1.5, or one with a port",
        )?;
        let port = with_port.map_or(PORT, |it| it.port());
        // The page for phones is on the port after it.
        if port == 0 || port == u16::MAX {
            return Err("expected a port from 1 to 65534".to_owned());
        }
        if !is_local(address) {
            return Err(format!(
                "{address} is not an address of a private network, and the certificate is for those only; for a public \
                 address see docs/one-server.md"
            ));
        }
        Ok(Self {
            address: Some(address),
            port,
        })
    }
}

impl LanChoice {
    pub fn resolve(&self) -> anyhow::Result<SocketAddr> {
        let address = match self.address {
            Some(address) => address,
            None => detect()?,
        };
        Ok(SocketAddr::new(address, self.port))
    }
}

/// Whether the certificate authority may sign for it.
fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_private() || address.is_link_local() || address.is_loopback()
        }
        IpAddr::V6(address) => address.is_unique_local() || address.is_loopback(),
    }
}

/// The only private address, or the one of the default route.
fn detect() -> anyhow::Result<IpAddr> {
    let found = private_addresses()?;
    if let [only] = found.as_slice() {
        return Ok((*only).into());
    }
    anyhow::ensure!(
        !found.is_empty(),
        "--lan: this machine has no address of a private IPv4 network; connect it to one, or name an address with --lan=ADDRESS"
    );
    let usual = default_route().filter(|address| found.contains(address));
    let list: Vec<_> = found.iter().map(ToString::to_string).collect();
    usual.map(IpAddr::from).ok_or_else(|| {
        anyhow::anyhow!(
            "--lan: this machine has several addresses; choose one with --lan=ADDRESS: {}",
            list.join(", ")
        )
    })
}

fn private_addresses() -> anyhow::Result<Vec<Ipv4Addr>> {
    let mut found = Vec::new();
    for interface in getifaddrs()? {
        let address = interface.address.as_ref();
        if let Some(address) = address.and_then(|address| address.as_sockaddr_in())
            && interface.flags.contains(InterfaceFlags::IFF_UP)
            && !interface.flags.contains(InterfaceFlags::IFF_LOOPBACK)
            && (address.ip().is_private() || address.ip().is_link_local())
            && !found.contains(&address.ip())
        {
            found.push(address.ip());
        }
    }
    Ok(found)
}

/// The address that packets to other networks leave from.
fn default_route() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(OUTSIDE).ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}
