//! A node: built from a configuration and a listener, run until stopped. Stopping has two stages: draining finishes the
//! requests in progress and accepts no new ones; then the background tasks end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry_sdk::trace::SpanData;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::config::{Config, ConfigError};
use crate::gateway::Gateway;
use crate::gateway::error::Error;
use crate::gateway::secret::{self, ClusterSecret};
use crate::http;
use crate::http::listener_mode::ListenerMode;
use crate::http::reply::Node;
use crate::http::serve::Stops;
use crate::protocol::id::{NodeId, TextId};
use crate::store::Store;
use crate::store::channel::LEASE_SECONDS;
use crate::store::error::StoreError;
use crate::store::schema::{RowSecurity, Schema};
use crate::telemetry::export::{ExportError, Exporter};
use crate::telemetry::{Metrics, Tracer};

/// The part of the drain time that is reserved for ending the background tasks.
const BACKGROUND_STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a node waits for a dead predecessor beyond its lease.
const HEARTBEAT_MARGIN: Duration = Duration::from_secs(3);
const JOIN_RETRY: Duration = Duration::from_millis(500);

#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot generate a cluster secret: {0}; set security.cluster_secret")]
    Secret(#[from] Error),
    #[error(
        "cannot read the system's CA certificates: {0}; install the package ca-certificates, or name a file in SSL_CERT_FILE"
    )]
    Certificates(std::io::Error),
    #[error(
        "the database's schema is {0}; run `countersign migrate` with this version, or deploy the version of the schema"
    )]
    Schema(&'static str),
    #[error(
        "other nodes run on this database, and security.cluster_secret is not set; set the same on every node, at least 32 \
         characters (or in a file: security.cluster_secret_file)"
    )]
    Alone,
    #[error("{}", RowSecurity::MISSING)]
    RowSecurity,
    #[error(
        "cannot serve metrics on {address}: {error}; set telemetry.metrics_listen to another address, or to \"\" for none"
    )]
    Metrics {
        address: SocketAddr,
        error: std::io::Error,
    },
    #[error("telemetry.otlp_endpoint: {0}")]
    Export(#[from] ExportError),
    #[error("cannot listen on {address}: {error}; choose another with --listen")]
    Listen {
        address: SocketAddr,
        error: std::io::Error,
    },
}

/// Registers the node. With a generated cluster secret it must be the only live node: it waits until the lease of a
/// crashed predecessor has expired, and then gives up.
async fn join(store: &Store, secret: &ClusterSecret, generated: bool) -> Result<(), AppError> {
    let time_limit = Duration::from_secs_f64(LEASE_SECONDS) + HEARTBEAT_MARGIN;
    let deadline = tokio::time::Instant::now() + time_limit;
    let channels = &store.channels;
    while channels.heartbeat(&secret.check()).await?.secrets_differ && generated {
        if tokio::time::Instant::now() >= deadline {
            // Otherwise the next node that starts would wait for this one.
            channels.leave().await?;
            return Err(AppError::Alone);
        }
        tokio::time::sleep(JOIN_RETRY).await;
    }
    Ok(())
}

async fn listen_for_scrapes(config: &Config) -> Result<Option<TcpListener>, AppError> {
    let Some(address) = config.telemetry.metrics_address()? else {
        return Ok(None);
    };
    let listener = TcpListener::bind(address).await;
    listener
        .map(Some)
        .map_err(|error| AppError::Metrics { address, error })
}

pub struct App {
    config: Arc<Config>,
    listener: TcpListener,
    address: SocketAddr,
    listener_mode: ListenerMode,
    scrapes: Option<TcpListener>,
    /// Where metrics and spans are sent, and the spans to be.
    exports: Option<(Exporter, mpsc::Receiver<SpanData>)>,
    gateway: Arc<Gateway>,
    work: TaskTracker,
    background: TaskTracker,
    drain: CancellationToken,
    end: CancellationToken,
}

impl App {
    pub async fn build(config: Config, clock: Clock) -> Result<Self, AppError> {
        config.validate()?;
        let address = config.server.listen;
        let listen = TcpListener::bind(address).await;
        let listener = listen.map_err(|error| AppError::Listen { address, error })?;
        Self::build_on(config, clock, listener).await
    }

    /// Builds a node on a socket that is already listening.
    pub async fn build_on(
        mut config: Config,
        clock: Clock,
        listener: TcpListener,
    ) -> Result<Self, AppError> {
        config.validate()?;
        let generated = config.security.cluster_secret.is_empty();
        if generated {
            config.security.cluster_secret = secret::generate()?;
        }
        let config = Arc::new(config);
        let address = listener.local_addr().map_err(|error| AppError::Listen {
            address: config.server.listen,
            error,
        })?;
        let name = match config.node.id.as_str() {
            "" => format!("node-{}", clock.operation_id().0.simple()),
            name => name.to_owned(),
        };
        let problem = "must be 1 to 128 characters without spaces";
        let node = NodeId::parse(&name)
            .filter(|node| !node.as_str().contains(' '))
            .ok_or_else(|| ConfigError::invalid("node.id", problem))?;
        let background = TaskTracker::new();
        let (drain, end) = (CancellationToken::new(), CancellationToken::new());
        let metrics = Arc::new(Metrics::of_node(&config.telemetry, node.as_str(), &clock));
        let listener_mode = ListenerMode::open(&config.tls, &metrics, &background, &end)?;
        let scrapes = listen_for_scrapes(&config).await?;
        let store = Store::open(&config, &node, &clock, &metrics, &background)?;
        let store = Arc::new(store);
        let exporter = Exporter::new(&config.telemetry, node.as_str(), &metrics)?;
        let (tracer, exports) = match exporter {
            None => (Tracer::silent(&clock, &metrics), None),
            Some(exporter) => {
                let ratio = config.telemetry.sample_ratio;
                let (tracer, spans) = Tracer::recording(&clock, &metrics, ratio);
                (tracer, Some((exporter, spans)))
            }
        };
        match store.database.schema().await? {
            Schema::Known => {}
            Schema::Behind => return Err(AppError::Schema("behind this binary")),
            Schema::Ahead => return Err(AppError::Schema("ahead of this binary")),
        }
        match store.database.row_security().await? {
            RowSecurity::Fits => {}
            RowSecurity::Missing => return Err(AppError::RowSecurity),
            RowSecurity::Idle => tracing::warn!("{}", RowSecurity::IDLE),
        }
        // Before the first channel: a channel on an unregistered node counts as dead.
        let secret = ClusterSecret::new(&config.security.cluster_secret);
        join(&store, &secret, generated).await?;
        let gateway = Gateway::start(&config, clock, store, tracer, &background, &drain, &end)
            .map_err(AppError::Certificates)?;
        gateway.health.observe();
        Ok(Self {
            config,
            listener,
            address,
            listener_mode,
            scrapes,
            exports,
            gateway,
            work: TaskTracker::new(),
            background,
            drain,
            end,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.scrapes.as_ref()?.local_addr().ok()
    }

    /// The use cases, for tests that run the node in their own process.
    pub fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    /// Serves until `stop`, then drains and ends.
    pub async fn run(self, stop: CancellationToken) {
        let Self {
            config,
            gateway,
            work,
            background,
            end,
            ..
        } = self;
        tracing::info!(address = %self.address, node = %gateway.context.node, "serving");
        let stops = Stops {
            drain: self.drain,
            hard: CancellationToken::new(),
        };
        let leaving = Arc::clone(&gateway);
        let metrics = Arc::clone(&gateway.context.metrics);
        let node = Node::new(gateway, work.clone());
        node.observe();
        if let Some(listener) = self.scrapes {
            let (metrics, tasks) = (Arc::clone(&metrics), background.clone());
            background.spawn(http::metrics::serve(listener, metrics, tasks, end.clone()));
        }
        if let Some((exporter, spans)) = self.exports {
            exporter.start(spans, node.clone(), &background, &end);
        }
        let router = http::router(node);
        let drain_when_told = async {
            stop.cancelled().await;
            stops.drain.cancel();
        };
        tokio::join!(
            drain_when_told,
            http::serve::serve(
                self.listener,
                self.listener_mode,
                router,
                &config.server,
                &metrics,
                &work,
                &stops
            )
        );
        tracing::info!("draining");
        work.close();
        let time_limit = Duration::from_secs(config.server.drain_seconds)
            .saturating_sub(BACKGROUND_STOP_TIMEOUT)
            .saturating_sub(Duration::from_millis(config.server.lame_duck_ms));
        if tokio::time::timeout(time_limit, work.wait()).await.is_err() {
            tracing::warn!(left = work.len(), "aborting what did not finish in time");
            stops.hard.cancel();
        }
        let ending = async {
            leaving.channels.leave().await;
            drop(leaving);
            end.cancel();
            background.close();
            background.wait().await;
        };
        let ended = tokio::time::timeout(BACKGROUND_STOP_TIMEOUT, ending).await;
        if ended.is_err() {
            let left = background.len();
            tracing::warn!(left, "leaving background work unfinished");
        }
        end.cancel();
        tracing::info!("stopped");
    }
}
