//! The use cases of a gateway, by subject.

use std::sync::Arc;

use super::context::GatewayContext;
use super::health::HealthService;
use super::limit::RateLimiter;
use super::log::LogService;
use super::notifications::NotificationService;
use crate::gateway::channels::channel::ChannelService;
use crate::gateway::channels::presence::EnforcerPresence;
use crate::gateway::devices::service::DeviceService;
use crate::gateway::exchanges::service::ExchangeService;
use crate::gateway::identity::authenticate::Authenticator;
use crate::gateway::identity::platform::PlatformService;
use crate::gateway::pairing::service::PairingService;
use crate::gateway::prompts::prompt::PromptService;
use crate::gateway::prompts::session::SessionService;
use crate::gateway::teams::TeamService;

/// A handler takes the subject that it needs.
pub struct Gateway {
    pub context: Arc<GatewayContext>,
    pub exchanges: Arc<ExchangeService>,
    pub channels: Arc<ChannelService>,
    pub presence: Arc<EnforcerPresence>,
    pub pairings: Arc<PairingService>,
    pub prompts: Arc<PromptService>,
    pub sessions: Arc<SessionService>,
    pub platform: Arc<PlatformService>,
    pub devices: Arc<DeviceService>,
    pub teams: Arc<TeamService>,
    pub notifications: Arc<NotificationService>,
    pub log: LogService,
    pub authenticator: Arc<Authenticator>,
    pub limiter: Arc<RateLimiter>,
    pub health: Arc<HealthService>,
}
