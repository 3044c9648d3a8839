//! A node: built from a configuration and a listener, run until stopped. While it is built it
//! answers health checks, and waits for a database that is away. Stopping has two stages: draining
//! finishes the requests in progress and accepts no new ones; then the background tasks end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::clock::Clock;
use crate::config::{Config, ConfigError};
use crate::gateway::Gateway;
use crate::gateway::error::Error;
use crate::gateway::identity::secret;
use crate::gateway::identity::secret::ClusterSecret;
use crate::http;
use crate::http::api::reply::AppState;
use crate::http::server::listener_mode::ListenerMode;
use crate::http::server::serve::StopSignals;
use crate::jitter::jitter;
use crate::protocol::id::{NodeId, TextId};
use crate::store::Store;
use crate::store::channels::terms::LEASE_SECONDS;
use crate::store::database::schema::{RowSecurity, SchemaState};
use crate::store::error::StoreError;
use crate::telemetry::export::{ExportError, TelemetryExporter};
use crate::telemetry::{Metrics, SpanTracer};

/// The part of the drain time that is reserved for ending the background tasks.
const BACKGROUND_STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a node waits for a dead predecessor beyond its lease.
const HEARTBEAT_GRACE: Duration = Duration::from_secs(3);
const JOIN_RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// Pause before a node that starts without its database tries again.
const DATABASE_RETRY_INTERVAL: Duration = Duration::from_millis(300);

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

/// Joins as soon as the database can be reached. A problem that waiting does not solve is an error.
async fn join_when_reachable(
    store: &Store,
    secret: &ClusterSecret,
    generated: bool,
) -> Result<(), AppError> {
    let mut waiting = false;
    loop {
        match join(store, secret, generated).await {
            Err(AppError::Store(
                error @ (StoreError::Unavailable(_) | StoreError::ReadOnly(_)),
            )) => {
                if !std::mem::replace(&mut waiting, true) {
                    tracing::warn!(%error, "the node waits for the database");
                }
                sleep(jitter(DATABASE_RETRY_INTERVAL)).await;
            }
            outcome => return outcome,
        }
    }
}

/// Checks the database and registers the node. With a generated cluster secret it must be the only
/// live node: it waits until the lease of a crashed predecessor has expired, and then gives up.
async fn join(store: &Store, secret: &ClusterSecret, generated: bool) -> Result<(), AppError> {
    match store.database.schema().await? {
        SchemaState::Known => {}
        SchemaState::Behind => return Err(AppError::Schema("behind this binary")),
        SchemaState::Ahead => return Err(AppError::Schema("ahead of this binary")),
    }
    match store.database.row_security().await? {
        RowSecurity::Fits => {}
        RowSecurity::Missing => return Err(AppError::RowSecurity),
        RowSecurity::Idle => tracing::warn!("{}", RowSecurity::IDLE),
    }
    let time_limit = Duration::from_secs_f64(LEASE_SECONDS) + HEARTBEAT_GRACE;
    let deadline = Instant::now() + time_limit;
    let channels = &store.channels;
    while channels.heartbeat(&secret.check()).await?.secrets_differ && generated {
        if Instant::now() >= deadline {
            // Otherwise the next node that starts would wait for this one.
            channels.leave().await?;
            return Err(AppError::Alone);
        }
        sleep(JOIN_RETRY_INTERVAL).await;
    }
    Ok(())
}

async fn listen_for_scrapes(config: &Config) -> Result<Option<TcpListener>, AppError> {
    let Some(address) = config.telemetry.metrics_address()? else {
        return Ok(None);
    };
    let mut listener = TcpListener::bind(address).await;
    if let Err(error) = &listener
        && error.kind() == std::io::ErrorKind::AddrInUse
        && config.telemetry.takes_other_port
    {
        listener = TcpListener::bind((address.ip(), 0)).await;
    }
    listener
        .map(Some)
        .map_err(|error| AppError::Metrics { address, error })
}

pub struct App {
    config: Arc<Config>,
    address: SocketAddr,
    metrics_address: Option<SocketAddr>,
    gateway: Arc<Gateway>,
    /// Accepts connections until the node drains.
    serving: AbortOnDropHandle<()>,
    work: TaskTracker,
    background: TaskTracker,
    stops: StopSignals,
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

    /// Builds a node on a socket that is already listening. Until it has joined, which takes as
    /// long as the database is away, it answers health checks and refuses calls.
    pub async fn build_on(
        mut config: Config,
        clock: Clock,
        listener: TcpListener,
    ) -> Result<Self, AppError> {
        config.validate()?;
        let generated = config.security.cluster_secret.is_empty();
        if generated {
            config.security.cluster_secret = secret::generate()?;
            config.security.is_generated = true;
        }
        let address = listener.local_addr().map_err(|error| AppError::Listen {
            address: config.server.listen,
            error,
        })?;
        // Links name it, and port 0 stands for any.
        config.server.listen = address;
        let config = Arc::new(config);
        let name = match config.node.id.as_str() {
            "" => format!("node-{}", clock.operation_id().0.simple()),
            name => name.to_owned(),
        };
        let problem = "must be 1 to 128 characters without spaces";
        let node = NodeId::parse(&name)
            .filter(|node| !node.as_str().contains(' '))
            .ok_or_else(|| ConfigError::invalid("node.id", problem))?;
        let (work, background) = (TaskTracker::new(), TaskTracker::new());
        let (stops, end) = (StopSignals::default(), CancellationToken::new());
        let end_on_failure = end.clone().drop_guard();
        let metrics = Arc::new(Metrics::of_node(&config.telemetry, node.as_str(), &clock));
        let listener_mode = ListenerMode::open(&config.tls, &metrics, &background, &end)?;
        let scrapes = listen_for_scrapes(&config).await?;
        let metrics_address = scrapes.as_ref().and_then(|it| it.local_addr().ok());
        let store = Store::open(&config, &node, &clock, &metrics, &background)?;
        let store = Arc::new(store);
        let exporter = TelemetryExporter::new(&config.telemetry, node.as_str(), &metrics)?;
        let (tracer, exports) = match exporter {
            None => (SpanTracer::silent(&clock, &metrics), None),
            Some(exporter) => {
                let ratio = config.telemetry.sample_ratio;
                let (tracer, spans) = SpanTracer::recording(&clock, &metrics, ratio);
                (tracer, Some((exporter, spans)))
            }
        };
        let (kept, drain) = (Arc::clone(&store), &stops.drain);
        let gateway = Gateway::new(&config, clock, kept, tracer, &background, drain, &end)
            .map_err(AppError::Certificates)?;
        gateway.health.observe();
        let node = AppState::new(Arc::clone(&gateway), work.clone());
        node.observe();
        if let Some(listener) = scrapes {
            let (metrics, tasks) = (Arc::clone(&metrics), background.clone());
            background.spawn(http::server::metrics::serve(
                listener,
                metrics,
                tasks,
                end.clone(),
            ));
        }
        if let Some((exporter, spans)) = exports {
            exporter.start(spans, node.clone(), &background, &end);
        }
        let serving = {
            let (config, work, stops) = (Arc::clone(&config), work.clone(), stops.clone());
            let router = http::router(node);
            tokio::spawn(async move {
                let (server, mode) = (&config.server, listener_mode);
                http::server::serve::serve(listener, mode, router, server, &metrics, &work, &stops)
                    .await;
            })
        };
        let serving = AbortOnDropHandle::new(serving);
        // Before the first channel: a channel on an unregistered node counts as dead.
        let secret = ClusterSecret::new(&config.security.cluster_secret);
        join_when_reachable(&store, &secret, generated).await?;
        gateway.open(&end);
        end_on_failure.disarm();
        Ok(Self {
            config,
            address,
            metrics_address,
            gateway,
            serving,
            work,
            background,
            stops,
            end,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
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
            stops,
            end,
            ..
        } = self;
        tracing::info!(address = %self.address, node = %gateway.context.node, "serving");
        stop.cancelled().await;
        stops.drain.cancel();
        if let Err(error) = self.serving.await {
            tracing::error!(%error, "the accept loop panicked");
        }
        tracing::info!("draining");
        work.close();
        let time_limit = Duration::from_secs(config.server.drain_seconds)
            .saturating_sub(BACKGROUND_STOP_TIMEOUT)
            .saturating_sub(Duration::from_millis(config.server.lame_duck_ms));
        if timeout(time_limit, work.wait()).await.is_err() {
            tracing::warn!(left = work.len(), "aborting what did not finish in time");
            stops.hard.cancel();
        }
        let ending = async {
            gateway.channels.leave().await;
            drop(gateway);
            end.cancel();
            background.close();
            background.wait().await;
        };
        let ended = timeout(BACKGROUND_STOP_TIMEOUT, ending).await;
        if ended.is_err() {
            let left = background.len();
            tracing::warn!(left, "leaving background work unfinished");
        }
        end.cancel();
        tracing::info!("stopped");
    }
}
