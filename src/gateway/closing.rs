//! Why the gateway closes channels, and the closing of those whose tenant, token or credential is no longer valid.

use std::collections::HashSet;

use super::ChannelService;
use crate::config::Secret;
use crate::protocol::id::TenantId;
use crate::protocol::token::TokenRevocations;
use crate::store::credential::ChangedCredential;
use crate::wake::WakeKey;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelCloseReason {
    Drain,
    Credential,
    /// The identity has too many channels; this was its oldest.
    Replaced,
    LeaseLost,
    /// The peer does not read fast enough. It may reconnect and catch up.
    Slow,
    /// The peer does not respond.
    Silent,
    /// The peer began a message and did not finish it.
    Unfinished,
    /// The node has no memory for the peer's message. It may reconnect and send it again.
    Full,
    /// The peer's message exceeds the limit.
    TooBig,
}

impl ChannelCloseReason {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Credential => "credential",
            Self::Replaced => "replaced",
            Self::LeaseLost => "lease_lost",
            Self::Slow => "slow",
            Self::Silent => "silent",
            Self::Unfinished => "unfinished",
            Self::Full => "full",
            Self::TooBig => "too_big",
        }
    }
}

impl ChannelService {
    pub(super) fn tenants_with_channels(&self) -> HashSet<TenantId> {
        let state = self.registry.state();
        state
            .by_identity
            .keys()
            .map(WakeKey::tenant)
            .cloned()
            .collect()
    }

    pub(super) fn close_channels_of(&self, tenant: &TenantId) {
        let state = self.registry.state();
        let identities = state.by_identity.iter();
        let own = identities.filter(|(key, _)| key.tenant() == tenant);
        for handle in own.flat_map(|(_, handles)| handles) {
            handle.close(ChannelCloseReason::Credential);
        }
    }

    /// Closes the channels of a tenant whose token was revoked.
    pub(super) fn close_revoked_tokens(&self, tenant: &TenantId, revocations: &TokenRevocations) {
        let state = self.registry.state();
        let identities = state.by_identity.iter();
        let own = identities.filter(|(key, _)| key.tenant() == tenant);
        for handle in own.flat_map(|(_, handles)| handles) {
            let token = handle.token.as_deref();
            if token.is_some_and(|token| revocations.include(token)) {
                handle.close(ChannelCloseReason::Credential);
            }
        }
    }

    /// The distinct tokens of channels that are to be rechecked.
    pub(super) fn channel_tokens(&self) -> Vec<Secret> {
        let handles = self.registry.all();
        let mut seen = HashSet::new();
        let tokens = handles.iter().filter_map(|handle| handle.recheck.as_ref());
        tokens
            .filter(|token| seen.insert(token.expose()))
            .cloned()
            .collect()
    }

    /// Closes the channels that were opened with a token.
    pub(super) fn close_channels_by(&self, token: &Secret) {
        for handle in self.registry.all() {
            if handle.recheck.as_ref() == Some(token) {
                handle.close(ChannelCloseReason::Credential);
            }
        }
    }

    /// Closes the channels of credentials that were revoked.
    pub(super) fn close_revoked(&self, changed: &[ChangedCredential]) {
        let revoked = changed.iter().filter(|changed| changed.revoked);
        let revoked: HashSet<&str> = revoked.map(|changed| changed.id.as_str()).collect();
        if revoked.is_empty() {
            return;
        }
        for handle in self.registry.all() {
            if revoked.contains(handle.principal.as_str()) {
                handle.close(ChannelCloseReason::Credential);
            }
        }
    }
}
