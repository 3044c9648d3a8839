//! The use cases, one function each, shared by every transport: check what needs no database, run one guarded statement,
//! judge what it found, then wake those concerned. Nothing here knows HTTP or SQL.

pub mod administration;
mod audit;
pub mod authenticate;
pub mod caller;
mod channel;
mod closing;
mod context;
mod decide;
mod deliver;
mod device_history;
mod devices;
pub mod error;
mod exchanges;
mod feed;
mod generic;
mod guess_limit;
mod health;
mod inbox;
mod inbox_scan;
mod introductions;
pub mod invitations;
pub mod keyed_semaphore;
mod keys;
mod lease;
pub mod limit;
mod load;
mod notices;
pub mod notifications;
mod page;
mod paired;
mod pairing;
mod platform;
mod presence;
mod prompt;
mod push;
mod refresh;
mod retention;
pub mod secret;
mod session;
mod submit;
mod sweep;
mod wait;
mod withdraw;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::administration::{CredentialRequest, MadeCredential};
pub use self::authenticate::Authenticator;
pub use self::channel::{Channel, Channels};
pub use self::closing::Closing;
pub use self::context::Context;
pub use self::deliver::{AckCommand, Acknowledged};
pub use self::devices::{Devices, Listed, StatementCommand};
pub use self::exchanges::Exchanges;
pub use self::feed::Feed;
pub use self::health::{Health, Readiness};
pub use self::introductions::IntroductionCommand;
pub use self::invitations::InvitationRequest;
pub use self::limit::Limiter;
pub use self::notifications::Notifications;
pub use self::page::{Page, PageRequest};
pub use self::paired::PairingLine;
pub use self::pairing::{Completed, Initiated, PairingStatus, PairingWord, Pairings};
pub use self::platform::{ExchangeListing, Platform};
pub use self::presence::EnforcerPresence;
pub use self::prompt::{AckPrompt, PromptCommand, Prompts, SendPrompt};
pub use self::push::Push;
pub use self::refresh::RefreshCommand;
pub use self::session::{ReportCommand, Sessions};
pub use self::submit::{SubmitCommand, bind_key};
pub use self::wait::Waited;
pub use self::withdraw::Ended;
pub use crate::store::signing_key::NewSigningKey;

use self::authenticate::Tokens;
use self::notices::Notices;
use self::secret::ClusterSecret;
use crate::clock::Clock;
use crate::config::Config;
use crate::protocol::error::Names;
use crate::store::Store;
use crate::telemetry::Tracer;
use crate::wake::Hub;

/// The use cases by subject. A handler takes the subject it needs.
pub struct Gateway {
    pub context: Arc<Context>,
    pub exchanges: Arc<Exchanges>,
    pub channels: Arc<Channels>,
    pub presence: Arc<EnforcerPresence>,
    pub pairings: Arc<Pairings>,
    pub prompts: Arc<Prompts>,
    pub sessions: Arc<Sessions>,
    pub platform: Arc<Platform>,
    pub devices: Arc<Devices>,
    pub notifications: Arc<Notifications>,
    pub authenticator: Arc<Authenticator>,
    pub limiter: Arc<Limiter>,
    pub health: Arc<Health>,
}

impl Gateway {
    /// A gateway on an open store. It serves no calls until it is opened.
    pub fn new(
        config: &Arc<Config>,
        clock: Clock,
        store: Arc<Store>,
        tracer: Tracer,
        tasks: &TaskTracker,
        draining: &CancellationToken,
        stopped: &CancellationToken,
    ) -> std::io::Result<Arc<Self>> {
        // First, as it may fail: nothing is running yet.
        let tokens = Tokens::new(config, &clock, draining)?;
        let (notices, asked) = Notices::new(notifications::off(config).is_none());
        let context = Arc::new(Context {
            notices,
            config: Arc::clone(config),
            names: Names::new(&config.protocol.name),
            node: store.database.node().clone(),
            metrics: Arc::clone(store.database.metrics()),
            wake: Hub::start(config, &clock, &store, tasks, stopped),
            clock,
            tracer,
            store,
            tasks: tasks.clone(),
            draining: draining.clone(),
        });
        let secret = Arc::new(ClusterSecret::new(&config.security.cluster_secret));
        let presence = Arc::new(EnforcerPresence::new(&context));
        let exchanges = Arc::new(Exchanges::new(&context, &presence));
        let channels = Arc::new(Channels::new(&context, &presence, &secret));
        let notifications = Notifications::new(&context, &secret);
        let notifications = Arc::new(notifications.map_err(std::io::Error::other)?);
        notifications.start(asked, stopped);
        Ok(Arc::new(Self {
            pairings: Arc::new(Pairings::new(&context, &presence, &secret)),
            prompts: Arc::new(Prompts::new(&context, &presence)),
            sessions: Arc::new(Sessions::new(&context, &presence)),
            platform: Arc::new(Platform::new(&context)),
            devices: Arc::new(Devices::new(&context)),
            notifications,
            authenticator: Arc::new(Authenticator::new(&context, &channels, tokens)),
            limiter: Arc::new(Limiter::new(&context)),
            health: Arc::new(Health::new(&context, &exchanges, &channels)),
            context,
            exchanges,
            channels,
            presence,
        }))
    }

    /// Starts the sweeps and serves calls, once the node has joined the others.
    pub fn open(self: &Arc<Self>, stopped: &CancellationToken) {
        sweep::start(self, &self.context.tasks, stopped);
        self.health.note_joined();
    }
}
