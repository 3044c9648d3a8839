//! The use cases, one function each, shared by every transport. A use case checks what needs no
//! database, runs one guarded statement, judges its facts, then wakes the waiters concerned.
//! Nothing here knows how a request arrived, and nothing knows SQL.

pub mod admission;
pub mod channels;
mod context;
pub mod devices;
pub mod error;
pub mod exchanges;
mod health;
pub mod identity;
pub mod limit;
pub mod log;
pub mod notifications;
mod page;
pub mod pairing;
pub mod prompts;
pub mod retention;
mod services;
mod teams;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::channels::channel::{Channel, ChannelService};
pub use self::channels::closing::ChannelCloseReason;
pub use self::channels::feed::MessageFeed;
pub use self::channels::presence::EnforcerPresence;
pub use self::channels::push::PushService;
pub use self::context::GatewayContext;
pub use self::devices::introductions::IntroductionCommand;
pub use self::devices::invitations::DeviceRequest;
pub use self::devices::service::{DeviceListing, DeviceService, StatementCommand};
pub use self::exchanges::deliver::{AckCommand, AckOutcome};
pub use self::exchanges::refresh::RefreshCommand;
pub use self::exchanges::service::ExchangeService;
pub use self::exchanges::submit::{SubmitCommand, bind_key};
pub use self::exchanges::wait::WaitOutcome;
pub use self::exchanges::withdraw::EndedExchange;
pub use self::health::{HealthService, Readiness};
pub use self::identity::administration::{CredentialRequest, MadeCredential};
pub use self::identity::authenticate::Authenticator;
pub use self::identity::invitations::InvitationRequest;
pub use self::identity::platform::{ExchangeListing, PlatformService};
pub use self::limit::RateLimiter;
pub use self::log::{LogService, ProvenEntry};
pub use self::notifications::NotificationService;
pub use self::page::{ListPage, PageRequest};
pub use self::pairing::paired::PairingLine;
pub use self::pairing::service::{
    CompletedPairing, InitiatedPairing, PairingService, PairingStatus, PairingWord,
};
pub use self::prompts::prompt::{AckPrompt, PromptCommand, PromptService, SendPrompt};
pub use self::prompts::session::{ReportCommand, SessionService};
pub use self::services::Gateway;
pub use self::teams::{StateCommand, StateListing, TeamInvitation, TeamService};
pub use crate::store::identity::signing_key::NewSigningKey;

use self::identity::secret::ClusterSecret;
use self::notifications::hints::NotificationHints;
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
        let outbound = identity::authenticate::outbound(&config.auth)?;
        let (notices, asked) = NotificationHints::new(notifications::off(config).is_none());
        let secret = Arc::new(ClusterSecret::new(&config.security.cluster_secret));
        // The number rises with every change of what a copy contains, so that nodes read only copies that they understand.
        let copies = secret.mac("countersign/message-copy/1", &[]);
        let context = Arc::new(GatewayContext {
            notices,
            config: Arc::clone(config),
            names: CodeNames::new(&config.protocol.name),
            node: store.database.node().clone(),
            metrics: Arc::clone(store.database.metrics()),
            wake: WakeHub::start(config, &clock, &copies, &store, tasks, stopped),
            clock,
            tracer,
            store,
            tasks: tasks.clone(),
            draining: draining.clone(),
        });
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
            teams: Arc::new(TeamService::new(&context)),
            notifications,
            authenticator: Arc::new(Authenticator::new(&context, &channels, &outbound)),
            limiter: Arc::new(RateLimiter::new(&context)),
            log: LogService::new(&context),
            health: Arc::new(HealthService::new(&context, &exchanges, &channels)),
            context,
            exchanges,
            channels,
            presence,
        }))
    }

    /// Starts the sweeps and serves calls, once the node has joined the others.
    pub fn open(self: &Arc<Self>, stopped: &CancellationToken) {
        retention::sweep::start(self, &self.context.tasks, stopped);
        self.health.note_joined();
    }
}
