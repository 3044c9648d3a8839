//! Which addresses may be connected to. Where a URL is chosen by a caller, names are resolved and
//! checked here, and the connection goes to the address that was checked: a name that resolves
//! differently the next time gains nothing.

use std::error::Error;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::dns::Name;
use ipnet::IpNet;
use tokio::sync::Semaphore;
use tower::Service;

#[derive(Debug, Clone)]
pub enum AddressGuard {
    /// Any: the URL is the operator's.
    Any,
    /// Public addresses, and those in these networks.
    PublicOr(Arc<[IpNet]>),
    /// Only those in these networks.
    Only(Arc<[IpNet]>),
}

impl AddressGuard {
    pub fn permits(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        match self {
            Self::Any => true,
            Self::PublicOr(networks) => is_public(address) || listed(networks, address),
            Self::Only(networks) => listed(networks, address),
        }
    }

    /// False if the URL has an address for a host, and not one that is permitted.
    pub fn permits_host(&self, url: &Uri) -> bool {
        let host = url.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host.parse().map_or(true, |address| self.permits(address))
    }
}

fn listed(networks: &[IpNet], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(&address))
}

/// Whether an address is one of the public internet, so that nothing behind the gateway's own
/// firewall is reached.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        // This network; carriers; protocol assignments; benchmarks; reserved, and broadcast.
        || a == 0
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b))
        || a >= 240;
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let inner = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // Translated to IPv4, and tunnelled in it.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => inner(high, low),
        // Protocol assignments with Teredo, and documentation.
        [0x2001, 0..0x200 | 0xdb8, ..] | [0x3fff, 0..0x1000, ..] => false,
        // All other unicast that is global.
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

/// A name has no address that is permitted.
#[derive(Debug, thiserror::Error)]
#[error("the host has no address that may be connected to")]
pub struct NotPermitted;

/// Whether a call failed because of its address.
pub fn is_not_permitted(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<NotPermitted>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// Lookups under way. The system has no limit of time for them, and the threads that do them are
/// few: names that are never answered must not take them all.
static LOOKUPS: Semaphore = Semaphore::const_new(64);

/// Resolves names by the system, and leaves out what is not permitted.
#[derive(Debug, Clone)]
pub struct GuardedResolver(pub AddressGuard);

impl Service<Name> for GuardedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let guard = self.0.clone();
        Box::pin(async move {
            let turn = LOOKUPS.acquire().await?;
            // On a thread that goes on when this is given up, so the turn goes with it. The
            // connector sets the port.
            let look = move || {
                let _turn = turn;
                (name.as_str(), 0).to_socket_addrs()
            };
            let found = tokio::task::spawn_blocking(look).await??;
            let found = found.filter(|address| guard.permits(address.ip()));
            let found: Vec<_> = found.collect();
            if found.is_empty() {
                return Err(NotPermitted.into());
            }
            Ok(found.into_iter())
        })
    }
}
