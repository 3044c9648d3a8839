//! The use cases, one function each, shared by every transport: check what needs no database, run one guarded statement,
//! judge what it found, then wake those concerned. Nothing here knows HTTP or SQL.

pub mod administration;
mod audit;
pub mod authenticate;
pub mod caller;
mod channel;
mod closing;
mod decide;
mod deliver;
pub mod error;
mod feed;
mod generic;
mod guess_limit;
mod inbox;
mod inbox_scan;
mod keys;
mod lease;
pub mod limit;
mod load;
mod measure;
mod page;
mod paired;
mod pairing;
mod platform;
mod presence;
mod prompt;
mod push;
mod rate;
mod refresh;
pub mod secret;
mod session;
mod submit;
mod sweep;
mod withdraw;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::administration::{CredentialRequest, MadeCredential};
pub use self::channel::Channel;
pub use self::closing::Closing;
pub use self::deliver::{AckCommand, Acknowledged, Waited};
pub use self::feed::Feed;
pub use self::page::{Page, PageRequest};
pub use self::paired::PairingLine;
pub use self::pairing::{Completed, Initiated, PairingStatus, PairingWord};
pub use self::platform::ExchangeListing;
pub use self::prompt::{AckPrompt, PromptCommand, SendPrompt};
pub use self::push::Push;
pub use self::refresh::RefreshCommand;
pub use self::session::ReportCommand;
pub use self::submit::{SubmitCommand, bind_key};
pub use self::withdraw::Ended;
pub use crate::store::signing_key::NewSigningKey;

use self::authenticate::{Credentials, Tokens};
use self::deliver::WaitCounter;
use self::secret::ClusterSecret;
use crate::clock::Clock;
use crate::config::Config;
use crate::protocol::error::Names;
use crate::protocol::id::NodeId;
use crate::protocol::timestamp::Timestamp;
use crate::store::Store;
use crate::store::schema::Schema;
use crate::telemetry::{Metrics, Tracer};
use crate::wake::Hub;

const READINESS_FOR: Duration = Duration::from_secs(1);

pub struct Gateway {
    pub config: Arc<Config>,
    pub names: Names,
    pub clock: Clock,
    pub node: NodeId,
    pub metrics: Arc<Metrics>,
    pub tracer: Tracer,
    store: Arc<Store>,
    wake: Hub,
    credentials: Credentials,
    tokens: Tokens,
    operator: Option<[u8; 32]>,
    secret: ClusterSecret,
    /// Whether another live node was last seen with another secret.
    secrets_differ: AtomicBool,
    readiness: tokio::sync::Mutex<Option<(Readiness, Instant)>>,
    waits: WaitCounter,
    loads: load::Loads,
    keys: keys::Keys,
    limiter: limit::Limiter,
    guesses: guess_limit::Guesses,
    channels: channel::Channels,
    calls: presence::Calls,
    /// When the node's lease was last renewed.
    renewed: std::sync::Mutex<Instant>,
    /// Work that outlives a request but not the node.
    tasks: TaskTracker,
    /// Set when the node begins to drain.
    draining: CancellationToken,
}

impl Gateway {
    /// Starts a gateway on an open store, with its background tasks.
    pub fn start(
        config: &Arc<Config>,
        clock: Clock,
        store: Arc<Store>,
        tracer: Tracer,
        tasks: &TaskTracker,
        draining: &CancellationToken,
        stopped: &CancellationToken,
    ) -> std::io::Result<Arc<Self>> {
        let tokens = Tokens::new(&config.auth, &clock, draining)?;
        let wake = Hub::start(config, &clock, &store, tasks, stopped);
        let gateway = Arc::new(Self {
            names: Names::new(&config.protocol.name),
            clock,
            node: store.node().clone(),
            metrics: Arc::clone(store.metrics()),
            tracer,
            store,
            wake,
            credentials: Credentials::default(),
            tokens,
            operator: authenticate::operator_hash(&config.platform.operator_key),
            secret: ClusterSecret::new(&config.security.cluster_secret),
            secrets_differ: AtomicBool::new(false),
            readiness: tokio::sync::Mutex::new(None),
            waits: WaitCounter::default(),
            loads: load::Loads::default(),
            keys: keys::Keys::default(),
            limiter: limit::Limiter::default(),
            guesses: guess_limit::Guesses::default(),
            channels: channel::Channels::default(),
            calls: presence::Calls::default(),
            renewed: std::sync::Mutex::new(Instant::now()),
            tasks: tasks.clone(),
            draining: draining.clone(),
            config: Arc::clone(config),
        });
        sweep::start(&gateway, tasks, stopped);
        Ok(gateway)
    }

    /// Whether the node should be sent requests. Asks the database at most once a second.
    pub async fn readiness(&self) -> Readiness {
        if self.draining.is_cancelled() {
            return Readiness::Draining;
        }
        let mut known = self.readiness.lock().await;
        if let Some((readiness, at)) = *known
            && at.elapsed() < READINESS_FOR
        {
            return readiness;
        }
        let readiness = match self.store.schema().await {
            Err(_) => Readiness::DatabaseAway,
            Ok(Schema::Behind) => Readiness::SchemaBehind,
            Ok(Schema::Ahead) => Readiness::SchemaAhead,
            Ok(Schema::Known) => match self.store.writable().await {
                Err(_) => Readiness::DatabaseAway,
                Ok(false) => Readiness::ReadOnly,
                Ok(true) if self.wake.healthy() => Readiness::Ready,
                Ok(true) => Readiness::Degraded,
            },
        };
        *known = Some((readiness, Instant::now()));
        readiness
    }

    /// Database connections for requests: open, and idle among them.
    #[must_use]
    pub fn pool_usage(&self) -> (usize, usize) {
        self.store.pool_usage()
    }

    /// This instant moved by a number of seconds.
    fn in_seconds(&self, seconds: u64) -> Timestamp {
        Timestamp::from(
            self.clock
                .now()
                .inner()
                .saturating_add(Duration::from_secs(seconds).try_into().unwrap_or_default()),
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// Ready, but wake-ups do not arrive and the node polls.
    Degraded,
    Draining,
    DatabaseAway,
    /// The database takes no writes; it may be a standby.
    ReadOnly,
    /// Migrations are missing.
    SchemaBehind,
    /// The schema is newer than this program.
    SchemaAhead,
}
