//! Deletes rows that are past their retention period: one node for all, only where something is
//! due, and slowly enough to leave the database to the calls.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::config::Config;
use crate::gateway::Gateway;
use crate::gateway::error::Result;
use crate::protocol::id::TenantId;
use crate::store::Store;
use crate::store::database::listing::ListPart;
use crate::store::retention::due::{DueTenant, RetentionFloors};
use crate::store::retention::{GlobalRule, RetentionPeriods, RetentionRule, TenantRule};
use crate::store::seconds;

const SWEEP: &str = "retention";
/// How long a node that vanished keeps others from going on: longer than a statement, a pause and
/// the time between renewals.
const LEASE_LIFETIME: Duration = Duration::from_secs(60);
const RENEW_INTERVAL: Duration = Duration::from_secs(10);
const MAX_PAUSE_INTERVAL: Duration = Duration::from_secs(20);
/// How long an attempt at pairing is kept after it expired.
const PAIRING_SESSION_SECONDS: u64 = 24 * 3_600;
/// Tenants that are looked at by one statement.
const TENANTS: i64 = 500;

impl Gateway {
    /// Deletes expired rows, unless another node does.
    pub(in crate::gateway) async fn delete_expired(&self) -> Result<()> {
        let config = &self.context.config;
        let database = &self.context.store.database;
        let every = Duration::from_secs(config.retention.every_seconds.max(1));
        if !database
            .take_sweep(SWEEP, LEASE_LIFETIME, every.max(LEASE_LIFETIME))
            .await?
        {
            return Ok(());
        }
        let floors = database.retention_floors().await?;
        let mut pass = RetentionPass {
            gateway: self,
            store: &self.context.store,
            periods: retention_periods(config, floors),
            renewed: Instant::now(),
            ended: false,
        };
        let deleted = pass.run().await;
        // The first node that wakes after most of the interval is next; at once, if this one stops
        // half-way.
        let pause = if pass.ended {
            Duration::ZERO
        } else {
            every * 3 / 4
        };
        let kept = database.keep_sweep(SWEEP, pause).await;
        deleted.and(kept.map(drop).map_err(Into::into))
    }
}

fn retention_periods(config: &Config, floors: RetentionFloors) -> RetentionPeriods {
    let (retention, auth) = (&config.retention, &config.auth);
    // How long a revoked token could still be presented. Neither an opaque token nor a JWT that
    // does not say when it was issued has a longest lifetime: their revocations are kept for as
    // long as the audit.
    let token_lifetime = auth.jwt_max_lifetime_seconds + 2 * auth.jwt_leeway_seconds;
    RetentionPeriods {
        // An exchange is deleted together with its history.
        exchanges: seconds(retention.exchange_seconds.max(floors.exchanges)),
        prompts: seconds(retention.prompt_seconds),
        sessions: seconds(retention.session_seconds),
        audit: seconds(retention.audit_seconds.max(floors.audit)),
        pairings: seconds(retention.pairing_seconds),
        payloads: (retention.scrub_seconds > 0).then(|| seconds(retention.scrub_seconds)),
        pairing_sessions: seconds(PAIRING_SESSION_SECONDS),
        nonces: seconds(retention.nonce_seconds),
        revocations: seconds(token_lifetime.max(retention.audit_seconds)),
        invitations: seconds(retention.invitation_seconds),
    }
}

/// One pass over all rules and tenants.
struct RetentionPass<'g> {
    gateway: &'g Gateway,
    store: &'g Store,
    periods: RetentionPeriods,
    renewed: Instant,
    /// Whether the node is draining, or another has taken over.
    ended: bool,
}

impl RetentionPass<'_> {
    /// After a failure the rest is still tried; the first failure is returned.
    async fn run(&mut self) -> Result<()> {
        let store = self.store;
        let rules = GlobalRule::ALL.map(RetentionRule::Global);
        let mut all = self.apply(&rules).await;
        let mut after: Option<TenantId> = None;
        while !self.ended {
            let page = store
                .database
                .due_tenants(&self.periods, after.as_ref(), TENANTS);
            let (page, last) = match page.await {
                Ok(page) => {
                    let last = page.last().map(|due| due.tenant.clone());
                    (page, last)
                }
                // Without an answer every rule may be due for every tenant.
                Err(error) => {
                    all = all.and(Err(error.into()));
                    let (tenants, _) = store.credentials.tenants(&ListPart::default()).await?;
                    let tenants = tenants.into_iter().map(|tenant| DueTenant {
                        tenant: tenant.tenant_id,
                        rules: TenantRule::ALL.to_vec(),
                    });
                    (tenants.collect(), None)
                }
            };
            for due in page.iter().filter(|due| !due.rules.is_empty()) {
                // Stop if the database is unavailable or a standby: the rest would fail as well,
                // one timeout at a time.
                if all.is_err() && !store.database.writable().await? {
                    return all;
                }
                let rules = due.rules.iter();
                let rules = rules.map(|rule| RetentionRule::Tenant(&due.tenant, *rule));
                let deleted = self.apply(&rules.collect::<Vec<_>>()).await;
                if let Err(error) = &deleted {
                    tracing::warn!(tenant = %due.tenant, %error, "retention failed and will be tried again");
                }
                all = all.and(deleted);
            }
            after = last;
            if after.is_none() {
                break;
            }
        }
        all
    }

    /// Applies every rule, and returns the first failure.
    async fn apply(&mut self, rules: &[RetentionRule<'_>]) -> Result<()> {
        let mut all = Ok(());
        for rule in rules {
            all = all.and(self.walk(*rule).await);
        }
        all
    }

    /// Deletes the expired rows of one rule, the oldest first. Each statement continues where the
    /// previous one stopped.
    async fn walk(&mut self, rule: RetentionRule<'_>) -> Result<()> {
        let database = &self.store.database;
        let mut after = None;
        while !self.ended {
            let begun = Instant::now();
            let deleted = database.delete_expired(rule, &self.periods, after.as_ref());
            let batch = deleted.await?;
            self.pause(begun.elapsed()).await?;
            if !batch.more {
                break;
            }
            after = batch.last;
        }
        Ok(())
    }

    /// Pauses after a statement that took `took`, so that all statements take no more than their
    /// share of the time.
    async fn pause(&mut self, took: Duration) -> Result<()> {
        let context = &self.gateway.context;
        let share = context.config.retention.share_percent.clamp(1, 100);
        let pause = (took * (100 - share) / share).min(MAX_PAUSE_INTERVAL);
        let draining = &context.draining;
        self.ended |= draining.run_until_cancelled(sleep(pause)).await.is_none();
        if self.renewed.elapsed() > RENEW_INTERVAL {
            self.ended |= !self
                .store
                .database
                .keep_sweep(SWEEP, LEASE_LIFETIME)
                .await?;
            self.renewed = Instant::now();
        }
        Ok(())
    }
}
