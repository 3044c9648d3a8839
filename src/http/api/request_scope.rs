//! State that the layers and the handler of one HTTP request share.

use std::sync::{Arc, OnceLock};

use crate::http::server::memory::{MemoryAccount, MemoryBudget, MemoryCharge};
use crate::http::server::metered::ConnectionMeter;
use crate::protocol::credential::CredentialProfile;

#[derive(Clone)]
pub struct RequestScope(Arc<ScopeInner>);

struct ScopeInner {
    id: String,
    connection: Option<Arc<ConnectionMeter>>,
    /// Set once the caller is known.
    account: OnceLock<MemoryAccount>,
    profile: OnceLock<CredentialProfile>,
}

impl RequestScope {
    pub fn new(id: String, connection: Option<Arc<ConnectionMeter>>) -> Self {
        Self(Arc::new(ScopeInner {
            id,
            connection,
            account: OnceLock::new(),
            profile: OnceLock::new(),
        }))
    }

    /// The request's id: in its log line, its response, and envelopes that are about no exchange.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    pub fn authenticated(&self, account: MemoryAccount, profile: CredentialProfile) {
        self.0.account.get_or_init(|| account);
        self.0.profile.get_or_init(|| profile);
    }

    /// The dialect that the caller is answered in; strict while the caller is unknown.
    pub fn profile(&self) -> CredentialProfile {
        let profile = self.0.profile.get().copied();
        profile.unwrap_or(CredentialProfile::Strict)
    }

    /// Whom the memory of this request is charged to; `None` while the caller is unknown.
    pub fn account(&self) -> Option<MemoryAccount> {
        self.0.account.get().copied()
    }

    /// A charge for what this request holds, as yet for nothing.
    pub fn charge(&self, budget: &Arc<MemoryBudget>) -> MemoryCharge {
        let account = self.account().unwrap_or_default();
        MemoryCharge::new(budget, account, self.0.connection.clone())
    }
}
