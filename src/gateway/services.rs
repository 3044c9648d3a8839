//! The use cases of a gateway, by subject.

use std::sync::Arc;

use super::authenticate::Authenticator;
use super::channel::ChannelService;
use super::context::GatewayContext;
use super::devices::DeviceService;
use super::exchanges::ExchangeService;
use super::health::HealthService;
use super::limit::RateLimiter;
use super::notifications::NotificationService;
use super::pairing::PairingService;
use super::platform::PlatformService;
use super::presence::EnforcerPresence;
use super::prompt::PromptService;
use super::session::SessionService;

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
    pub notifications: Arc<NotificationService>,
    pub authenticator: Arc<Authenticator>,
    pub limiter: Arc<RateLimiter>,
    pub health: Arc<HealthService>,
}
