//! Presence of enforcers. Channels have rows already. Calls are collected here and written in
//! batches, so that their cost does not grow with their number.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::config::Config;
use crate::gateway::context::GatewayContext;
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::caller::Member;
use crate::protocol::id::{EnforcerId, TenantId};
use crate::protocol::presence::{ClientHello, Presence, judge_presence};
use crate::short_lock::ShortLock;
use crate::store::ChannelStore;
use crate::store::channels::hello_statement::HelloRow;
use crate::wake::WakeKey;

/// Most enforcers whose calls wait to be written. Further ones are dropped.
const MAX_CALLERS: usize = 100_000;
/// How long a call keeps an enforcer online.
const CALL_LIFETIME: Duration = Duration::from_secs(600);

/// The latest call of each enforcer, until it is written.
type LatestCalls = HashMap<(TenantId, EnforcerId), Instant>;

/// How often calls are written: less than configured, as the sweep's jitter adds up to a fifth.
pub(in crate::gateway) fn write_every(config: &Config) -> Duration {
    Duration::from_secs(config.presence.write_seconds) * 4 / 5
}

/// Which enforcers are present.
pub struct EnforcerPresence {
    context: Arc<GatewayContext>,
    store: Arc<ChannelStore>,
    calls: ShortLock<LatestCalls>,
}

impl EnforcerPresence {
    pub(in crate::gateway) fn new(context: &Arc<GatewayContext>) -> Self {
        Self {
            context: Arc::clone(context),
            store: Arc::clone(&context.store.channels),
            calls: ShortLock::default(),
        }
    }

    pub fn seen(&self, tenant: &TenantId, enforcer: &EnforcerId) {
        self.note(tenant.clone(), enforcer.clone(), Instant::now());
    }

    fn note(&self, tenant: TenantId, enforcer: EnforcerId, at: Instant) {
        let (mut calls, caller) = (self.calls.lock(), (tenant, enforcer));
        if calls.len() < MAX_CALLERS || calls.contains_key(&caller) {
            let noted = calls.entry(caller).or_insert(at);
            *noted = at.max(*noted);
        }
    }

    /// Writes the calls since the last time. If that fails, they are kept for the next.
    pub(in crate::gateway) async fn write_calls(&self) -> Result<()> {
        let latest = std::mem::take(&mut *self.calls.lock());
        let written = self.store.note_calls(&latest).await;
        if written.is_err() {
            for ((tenant, enforcer), at) in latest {
                self.note(tenant, enforcer, at);
            }
        }
        Ok(written?)
    }

    /// Stores the `hello` of an enforcer's channel.
    pub async fn hello(&self, key: &WakeKey, hello: ClientHello) -> Result<()> {
        let WakeKey::Enforcer(tenant, enforcer) = key else {
            return Ok(());
        };
        let row = HelloRow {
            tenant: tenant.clone(),
            enforcer: enforcer.clone(),
            hello,
        };
        Ok(self.store.hello(row).await?)
    }

    /// The presence records of the caller's tenant, sorted by id.
    pub async fn enforcers(&self, caller: &Member) -> Result<Vec<Presence>> {
        self.presence(caller, None).await
    }

    /// The presence record of one enforcer of the caller's tenant.
    pub async fn enforcer(&self, caller: &Member, enforcer: &EnforcerId) -> Result<Presence> {
        let records = self.presence(caller, Some(enforcer)).await?;
        records.into_iter().next().ok_or(Error::NotFound)
    }

    async fn presence(
        &self,
        caller: &Member,
        enforcer: Option<&EnforcerId>,
    ) -> Result<Vec<Presence>> {
        let (tenant, config) = (&caller.origin().tenant, &self.context.config.presence);
        let approver = match caller {
            Member::Approver(caller) => caller.bound.as_ref(),
            Member::Enforcer(_) | Member::Admin(_) => None,
        };
        let store = &self.store;
        let facts = store.enforcers(tenant, enforcer, approver, config.list_max);
        let present = facts.await?.into_iter();
        let present = present.filter_map(|facts| judge_presence(facts, CALL_LIFETIME));
        Ok(present.collect())
    }
}
