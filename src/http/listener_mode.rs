//! How connections come in: as they are, through TLS of our own, or from proxies that have ended it.

use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::proxied::Proxies;
use super::tls::Tls;
use crate::config::{self, ConfigError, TlsMode};
use crate::telemetry::Metrics;

#[derive(Clone)]
pub enum ListenerMode {
    Plain,
    Tls(Arc<Tls>),
    Upstream(Arc<Proxies>),
}

impl ListenerMode {
    /// The way in that is configured; its files are kept up to date on `tasks` until `end`.
    pub fn open(
        config: &config::Tls,
        metrics: &Arc<Metrics>,
        tasks: &TaskTracker,
        end: &CancellationToken,
    ) -> Result<Self, ConfigError> {
        Ok(match config.mode {
            TlsMode::Off => Self::Plain,
            TlsMode::On => {
                let (tls, reloading) = Tls::open(config, metrics)?;
                tasks.spawn(end.clone().run_until_cancelled_owned(reloading));
                Self::Tls(tls)
            }
            TlsMode::Upstream => Self::Upstream(Arc::new(Proxies::new(config))),
        })
    }

    #[must_use]
    pub fn admits(&self, stream: &TcpStream, peer: std::net::SocketAddr) -> bool {
        match self {
            Self::Plain | Self::Tls(_) => true,
            Self::Upstream(proxies) => proxies.admits(peer, stream.local_addr().ok()),
        }
    }
}
