//! Deletes what is past its retention: one node for all, only where something is due, and slowly enough to leave the database
//! to the calls.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Gateway;
use super::error::Result;
use crate::config::Config;
use crate::protocol::id::TenantId;
use crate::store::Store;
use crate::store::due::{DueTenant, RetentionPeriods};
use crate::store::error::StoreError;
use crate::store::listing::ListPart;
use crate::store::seconds;

const SWEEP: &str = "retention";
/// How long a node that vanished keeps others from going on: longer than a statement, a pause and the time between renewals.
const LEASE_LIFETIME: Duration = Duration::from_secs(60);
const RENEW_INTERVAL: Duration = Duration::from_secs(10);
const MAX_PAUSE_INTERVAL: Duration = Duration::from_secs(20);
/// Rows per statement: few enough to hold no lock for long.
const BATCH: i64 = 500;
/// Exchanges per statement: each has some ten rows.
const EXCHANGES: i64 = 100;
/// Tenants that are looked at by one statement.
const TENANTS: i64 = 500;

impl Gateway {
    /// Deletes what is past its retention, unless another node does.
    pub(super) async fn delete_expired(&self) -> Result<()> {
        let retention = &self.context.config.retention;
        let database = &self.context.store.database;
        let every = Duration::from_secs(retention.every_seconds.max(1));
        if !database
            .take_sweep(SWEEP, LEASE_LIFETIME, every.max(LEASE_LIFETIME))
            .await?
        {
            return Ok(());
        }
        // An exchange goes together with its history.
        let floors = database.retention_floors().await?;
        let mut pass = RetentionPass {
            gateway: self,
            store: &self.context.store,
            keep: RetentionPeriods {
                exchanges: seconds(retention.exchange_seconds.max(floors.exchanges)),
                prompts: seconds(retention.prompt_seconds),
                sessions: seconds(retention.session_seconds),
                audit: seconds(retention.audit_seconds.max(floors.audit)),
                pairings: seconds(retention.pairing_seconds),
                payloads: (retention.scrub_seconds > 0).then(|| seconds(retention.scrub_seconds)),
            },
            renewed: Instant::now(),
            ended: false,
        };
        let forgotten = pass.run().await;
        // Next is whichever node wakes first after most of the interval; at once, if this one stops half-way.
        let pause = if pass.ended {
            Duration::ZERO
        } else {
            every * 3 / 4
        };
        let kept = database.keep_sweep(SWEEP, pause).await;
        forgotten.and(kept.map(drop).map_err(Into::into))
    }
}

/// How long a revoked token could still be presented. Neither an opaque token nor a JWT that does not say when it was issued has
/// a longest lifetime: their revocations are kept for as long as the audit.
fn revocations_kept(config: &Config) -> u64 {
    let auth = &config.auth;
    let lifetime = auth.jwt_max_lifetime_seconds + 2 * auth.jwt_leeway_seconds;
    lifetime.max(config.retention.audit_seconds)
}

/// One pass over everything.
struct RetentionPass<'g> {
    gateway: &'g Gateway,
    store: &'g Store,
    keep: RetentionPeriods,
    renewed: Instant,
    /// Whether the node is draining, or another has taken over.
    ended: bool,
}

impl RetentionPass<'_> {
    /// After a failure the rest is still tried; the first failure is returned.
    async fn run(&mut self) -> Result<()> {
        let store = self.store;
        let mut all = self.across_tenants().await;
        let mut after: Option<TenantId> = None;
        while !self.ended {
            let page = store
                .database
                .due_tenants(&self.keep, after.as_ref(), TENANTS);
            let (page, last) = match page.await {
                Ok(page) => {
                    let last = page.last().map(|tenant| tenant.tenant.clone());
                    (page, last)
                }
                // Where it cannot be told, everything of all may be due.
                Err(error) => {
                    all = all.and(Err(error.into()));
                    let (tenants, _) = store.credentials.tenants(&ListPart::default()).await?;
                    let tenants = tenants.into_iter().map(|tenant| tenant.tenant_id);
                    (tenants.map(DueTenant::whole).collect(), None)
                }
            };
            for due in page.iter().filter(|tenant| tenant.any()) {
                // Stop if the database is unavailable or a standby: the rest would fail as well, one timeout at a time.
                if all.is_err() && !store.database.writable().await? {
                    return all;
                }
                let forgotten = self.of_tenant(due).await;
                if let Err(error) = &forgotten {
                    tracing::warn!(tenant = %due.tenant, %error, "retention failed and will be tried again");
                }
                all = all.and(forgotten);
            }
            after = last;
            if after.is_none() {
                break;
            }
        }
        all
    }

    async fn across_tenants(&mut self) -> Result<()> {
        let store = self.store;
        let keep = seconds(self.gateway.context.config.pairing.keep_seconds);
        let keys = self
            .repeat(true, BATCH, || {
                store.exchanges.delete_expired_idempotency_keys(BATCH)
            })
            .await;
        let attempts = || store.pairings.delete_expired_pairing_sessions(keep, BATCH);
        let attempts = self.repeat(true, BATCH, attempts).await;
        let guesses = || store.pairings.delete_expired_guesses(BATCH);
        let guesses = self.repeat(true, BATCH, guesses).await;
        let keep = seconds(self.gateway.context.config.retention.nonce_seconds);
        let nonces = || store.exchanges.delete_expired_nonces(keep, BATCH);
        let nonces = self.repeat(true, BATCH, nonces).await;
        let keep = self.keep.exchanges;
        let asked = || store.exchanges.delete_expired_inbox_rows(keep, BATCH);
        let asked = self.repeat(true, BATCH, asked).await;
        let keep = seconds(revocations_kept(&self.gateway.context.config));
        let revocations = || store.credentials.delete_expired_revocations(keep, BATCH);
        let revocations = self.repeat(true, BATCH, revocations).await;
        let keep = seconds(self.gateway.context.config.retention.invitation_seconds);
        let invitations = || store.credentials.delete_expired_invitations(keep, BATCH);
        let invitations = self.repeat(true, BATCH, invitations).await;
        keys.and(attempts)
            .and(guesses)
            .and(nonces)
            .and(asked)
            .and(revocations)
            .and(invitations)
    }

    async fn of_tenant(&mut self, due: &DueTenant) -> Result<()> {
        let (store, tenant, keep) = (self.store, &due.tenant, self.keep.clone());
        let exchanges = async |after: Option<_>| {
            let (store, after) = (&store.exchanges, after.as_ref());
            let walked = store.delete_expired_exchanges(tenant, keep.exchanges, after, EXCHANGES);
            Ok(walked.await?.next)
        };
        let exchanges = self.walk(due.exchanges, exchanges).await;
        let sessions = || {
            store
                .sessions
                .delete_expired_sessions(tenant, keep.sessions)
        };
        let sessions = self.repeat(due.sessions, 1, sessions).await;
        let enforcers = || {
            let store = &store.channels;
            store.delete_expired_enforcers(tenant, keep.sessions, BATCH)
        };
        let enforcers = self.repeat(due.enforcers, BATCH, enforcers).await;
        let audit = || store.audit.delete_expired_audit(tenant, keep.audit, BATCH);
        let audit = self.repeat(due.audit, BATCH, audit).await;
        let prompts = || {
            store
                .prompts
                .delete_expired_prompts(tenant, keep.prompts, BATCH)
        };
        let prompts = self.repeat(due.prompts, BATCH, prompts).await;
        let pairings = || {
            store
                .pairings
                .delete_expired_pairings(tenant, keep.pairings, BATCH)
        };
        let pairings = self.repeat(due.pairings, BATCH, pairings).await;
        let tokens = || {
            store
                .pairings
                .delete_expired_tokens(tenant, keep.pairings, BATCH)
        };
        let tokens = self.repeat(due.tokens, BATCH, tokens).await;
        let scrubbed = self.scrub(due).await;
        let forgotten = exchanges.and(sessions).and(enforcers).and(audit);
        forgotten
            .and(prompts)
            .and(pairings)
            .and(tokens)
            .and(scrubbed)
    }

    /// Deletes the payloads of rows that are kept without them.
    async fn scrub(&mut self, due: &DueTenant) -> Result<()> {
        let Some(keep) = self.keep.payloads else {
            return Ok(());
        };
        let (store, tenant) = (self.store, &due.tenant);
        let snapshots = || store.sessions.scrub_snapshots(tenant, keep);
        let snapshots = self.repeat(due.snapshots, 1, snapshots).await;
        let artifacts = async |after: Option<_>| {
            let (store, after) = (&store.exchanges, after.as_ref());
            let walked = store.scrub_artifacts(tenant, keep, after, BATCH);
            Ok(walked.await?.next)
        };
        let artifacts = self.walk(due.artifacts, artifacts).await;
        let prompts = || store.prompts.scrub_prompts(tenant, keep, BATCH);
        let prompts = self.repeat(due.texts, BATCH, prompts).await;
        snapshots.and(artifacts).and(prompts)
    }

    /// Repeats a step, if anything is due, while it finds `full` rows.
    async fn repeat<F>(&mut self, due: bool, full: i64, step: impl Fn() -> F) -> Result<()>
    where
        F: Future<Output = Result<u64, StoreError>>,
    {
        let step = |_: Option<()>| {
            let found = step();
            async move {
                let found = i64::try_from(found.await?).unwrap_or(i64::MAX);
                Ok((found >= full).then_some(()))
            }
        };
        self.walk(due, step).await
    }

    /// Repeats a step, if anything is due, from where the last one ended, until it says that there is no more.
    async fn walk<C, F>(&mut self, due: bool, step: impl Fn(Option<C>) -> F) -> Result<()>
    where
        F: Future<Output = Result<Option<C>, StoreError>>,
    {
        let mut position = None;
        while due && !self.ended {
            let begun = Instant::now();
            position = step(position).await?;
            self.pause(begun.elapsed()).await?;
            if position.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Pauses after a statement that took so long, so that all of them take no more than their share of the time.
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
