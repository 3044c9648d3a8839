//! The use cases, one function each, shared by every transport. A use case checks what needs no
//! database, runs one guarded statement, judges its facts, then wakes the waiters concerned.
//! Nothing here knows how a request arrived, and nothing knows SQL.

pub mod administration;
pub mod admission;
mod audit;
pub mod authenticate;
pub mod caller;
mod channel;
mod channel_registry;
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
mod services;
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
pub use self::channel::{Channel, ChannelService};
pub use self::closing::ChannelCloseReason;
pub use self::context::GatewayContext;
pub use self::deliver::{AckCommand, AckOutcome};
pub use self::devices::{DeviceListing, DeviceService, StatementCommand};
pub use self::exchanges::ExchangeService;
pub use self::feed::MessageFeed;
pub use self::health::{HealthService, Readiness};
pub use self::introductions::IntroductionCommand;
pub use self::invitations::InvitationRequest;
pub use self::limit::RateLimiter;
pub use self::notifications::NotificationService;
pub use self::page::{ListPage, PageRequest};
pub use self::paired::PairingLine;
pub use self::pairing::{
    CompletedPairing, InitiatedPairing, PairingService, PairingStatus, PairingWord,
};
pub use self::platform::{ExchangeListing, PlatformService};
pub use self::presence::EnforcerPresence;
pub use self::prompt::{AckPrompt, PromptCommand, PromptService, SendPrompt};
pub use self::push::PushService;
pub use self::refresh::RefreshCommand;
pub use self::services::Gateway;
pub use self::session::{ReportCommand, SessionService};
pub use self::submit::{SubmitCommand, bind_key};
pub use self::wait::WaitOutcome;
pub use self::withdraw::EndedExchange;
pub use crate::store::signing_key::NewSigningKey;

use self::notices::NotificationHints;
use self::secret::ClusterSecret;
use crate::clock::Clock;
use crate::config::Config;
use crate::protocol::error::CodeNames;
use crate::store::Store;
use crate::telemetry::SpanTracer;
use crate::wake::WakeHub;

impl Gateway {
    /// A gateway on an open store. It serves no calls until it is opened.
    pub fn new(
        config: &Arc<Config>,
        clock: Clock,
        store: Arc<Store>,
        tracer: SpanTracer,
        tasks: &TaskTracker,
        draining: &CancellationToken,
        stopped: &CancellationToken,
    ) -> std::io::Result<Arc<Self>> {
        // First, as it may fail: nothing is running yet.
        let outbound = authenticate::outbound(&config.auth)?;
        let (notices, asked) = NotificationHints::new(notifications::off(config).is_none());
        let context = Arc::new(GatewayContext {
            notices,
            config: Arc::clone(config),
            names: CodeNames::new(&config.protocol.name),
            node: store.database.node().clone(),
            metrics: Arc::clone(store.database.metrics()),
            wake: WakeHub::start(config, &clock, &store, tasks, stopped),
            clock,
            tracer,
            store,
            tasks: tasks.clone(),
            draining: draining.clone(),
        });
        let secret = Arc::new(ClusterSecret::new(&config.security.cluster_secret));
        let presence = Arc::new(EnforcerPresence::new(&context));
        let exchanges = Arc::new(ExchangeService::new(&context, &presence));
        let channels = Arc::new(ChannelService::new(&context, &presence, &secret));
        let notifications = NotificationService::new(&context, &secret);
        let notifications = Arc::new(notifications.map_err(std::io::Error::other)?);
        notifications.start(asked, stopped);
        Ok(Arc::new(Self {
            pairings: Arc::new(PairingService::new(&context, &presence, &secret)),
            prompts: Arc::new(PromptService::new(&context, &presence)),
            sessions: Arc::new(SessionService::new(&context, &presence)),
            platform: Arc::new(PlatformService::new(&context)),
            devices: Arc::new(DeviceService::new(&context)),
            notifications,
            authenticator: Arc::new(Authenticator::new(&context, &channels, &outbound)),
            limiter: Arc::new(RateLimiter::new(&context)),
            health: Arc::new(HealthService::new(&context, &exchanges, &channels)),
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
