//! Connections come in plain, over TLS, or from proxies that terminate TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::proxied::TrustedProxies;
use super::tls::TlsListener;
use crate::config::{self, ConfigError, TlsMode};
use crate::gateway::identity::authenticate::ClientCertificate;
use crate::telemetry::Metrics;

/// A connection's stream. TLS is boxed: a plain connection should not pay for its size.
pub(super) type ConnectionStream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

#[derive(Clone)]
pub enum ListenerMode {
    Plain,
    Tls(Arc<TlsListener>),
    Upstream(Arc<TrustedProxies>),
}

impl ListenerMode {
    /// The configured mode. Its files are reloaded on `tasks` until `end`.
    pub fn open(
        config: &config::Tls,
        metrics: &Arc<Metrics>,
        tasks: &TaskTracker,
        end: &CancellationToken,
    ) -> Result<Self, ConfigError> {
        Ok(match config.mode {
            TlsMode::Off => Self::Plain,
            TlsMode::On => {
                let (tls, reloading) = TlsListener::open(config, metrics)?;
                tasks.spawn(end.clone().run_until_cancelled_owned(reloading));
                Self::Tls(tls)
            }
            TlsMode::Upstream => Self::Upstream(Arc::new(TrustedProxies::new(config))),
        })
    }

    /// Whether clients connect themselves, and not through a proxy.
    pub fn is_direct(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    pub fn admits(&self, stream: &TcpStream, peer: SocketAddr) -> bool {
        match self {
            Self::Plain | Self::Tls(_) => true,
            Self::Upstream(proxies) => proxies.admits(peer, stream.local_addr().ok()),
        }
    }

    /// Completes the handshake: the stream, and the client's certificate if it presented one.
    pub(super) async fn handshake(
        &self,
        stream: TcpStream,
    ) -> io::Result<(ConnectionStream, Option<ClientCertificate>)> {
        match self {
            Self::Plain | Self::Upstream(_) => Ok((Either::Left(stream), None)),
            Self::Tls(tls) => {
                let (stream, certificate) = Box::pin(tls.accept(stream)).await?;
                Ok((Either::Right(Box::new(stream)), certificate))
            }
        }
    }
}
