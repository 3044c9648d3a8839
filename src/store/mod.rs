//! All SQL, and nothing but: each function is one guarded statement that writes if and only if the state allows, and
//! reports facts. A row that is found by its key is found by nothing else: conditions beside the key are spelled so that no
//! partial index answers to them (`closed_as` for `closed_at`, `coalesce(acked_at, 'infinity') = 'infinity'`), nor another
//! key (`(approver_id = …) is true`), because the planner may take such an index for all but empty, and read all of it.
//! What is found by age is found by a clock that is read once, since one that moves is no bound for an index; and it goes on
//! as arrays, which the planner takes for short: of a limit that it does not know it expects a tenth of the table, and reads
//! all of that to join it.
//! Whoever locks takes exchanges first, then inbox items, then messages, each sorted by key.

pub mod ack;
pub mod audit;
pub mod batch;
pub mod bodies;
mod census;
pub mod channel;
pub mod claim;
pub mod closing;
pub mod credential;
pub mod decide;
pub mod diagnosis;
pub mod end;
pub mod error;
pub mod exchange;
pub mod feed;
pub mod guess;
pub mod idempotency;
pub mod inbox;
mod inbox_limit;
pub mod listing;
pub mod lookup;
pub mod notify;
pub mod paired;
pub mod pairing;
pub mod pool;
pub mod presence;
pub mod prompt;
pub mod prompt_life;
pub mod refresh;
mod repeat;
mod retention;
mod rows;
pub mod schema;
pub mod session;
mod settled;
pub mod signing_key;
pub mod submit;
pub mod tenant;
pub mod tenant_scope;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use sqlx::postgres::types::PgInterval;
use time::OffsetDateTime;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use self::ack::{AckRow, Acked, TakeAcks};
use self::batch::Batcher;
use self::bodies::{BodiesRow, ForApprover, ReadBodies};
use self::claim::{Claim, ClaimRow, Claimed};
use self::closing::{CloseChannels, OpenChannels};
use self::credential::Credential;
use self::decide::{Decide, DecisionOutcome, DecisionRow};
use self::error::StoreError;
use self::exchange::{Exchange, ReadExchanges, ReadFact, ReadRow};
use self::feed::{ListRow, ListUnacked, Listed};
use self::lookup::{LookupRow, ReadCertificates, ReadCredentials};
use self::paired::{PairedRow, ReadPaired, ReadTokens, TokenFact, TokenRow};
use self::pool::Pool;
use self::presence::TakeHellos;
use self::prompt::{PromptRow, TakePrompts};
use self::prompt_life::{PromptAckRow, TakePromptAcks};
use self::signing_key::{KeysRow, ReadKeys};
use self::submit::{SubmissionOutcome, SubmissionRow, Submit};
use self::tenant::ReadTenants;
use crate::clock::Clock;
use crate::config::Config;
use crate::protocol::decision::SigningKey;
use crate::protocol::id::{ApproverId, CredentialId, EnforcerId, NodeId, RequestId, TenantId};
use crate::protocol::pairing::RoutingToken;
use crate::protocol::prompt::{AckFact, PromptFact};
use crate::protocol::timestamp::Timestamp;
use crate::telemetry::Metrics;

/// Connections that write one kind of batch at once: while one commits, the other's fills.
const WORKERS: usize = 2;

pub struct Store {
    pool: Pool,
    /// For health, sweeps and administration, so that a flood of requests cannot starve recovery.
    background: Pool,
    clock: Clock,
    node: NodeId,
    /// This run of the process: a restarted node is another one.
    instance: Uuid,
    /// How far the database's clock was ahead of the node's, in microseconds, when it was last compared.
    ahead: AtomicI64,
    submissions: Batcher<Submit>,
    decisions: Batcher<Decide>,
    acks: Batcher<TakeAcks>,
    reads: Batcher<ReadExchanges>,
    keys: Batcher<ReadKeys>,
    tokens: Batcher<ReadTokens>,
    paired: Batcher<ReadPaired>,
    credentials: Batcher<ReadCredentials>,
    certificates: Batcher<ReadCertificates>,
    tenants: Batcher<ReadTenants>,
    lists: Batcher<ListUnacked>,
    bodies: Batcher<ReadBodies>,
    claims: Batcher<Claim>,
    prompts: Batcher<TakePrompts>,
    prompt_acks: Batcher<TakePromptAcks>,
    openings: Batcher<OpenChannels>,
    closings: Batcher<CloseChannels>,
    hellos: Batcher<TakeHellos>,
}

/// Seconds as an interval.
#[must_use]
pub fn seconds(seconds: u64) -> PgInterval {
    let microseconds = i64::try_from(seconds)
        .unwrap_or(i64::MAX)
        .saturating_mul(1_000_000);
    PgInterval {
        months: 0,
        days: 0,
        microseconds,
    }
}

impl Store {
    /// Opens the store; connections are made when they are first needed.
    pub fn open(
        config: &Config,
        node: &NodeId,
        clock: &Clock,
        metrics: &Arc<Metrics>,
        tasks: &TaskTracker,
    ) -> Result<Self, StoreError> {
        let options = pool::connect_options(&config.database)?;
        let wait = Duration::from_millis(config.database.acquire_timeout_ms);
        let row_security = config.database.row_security;
        let size = config.database.pool_size;
        let pool = Pool::new(
            "requests",
            metrics,
            options.clone(),
            size,
            wait,
            row_security,
        )?;
        let size = config.database.background_pool_size;
        let background = Pool::new("quiet", metrics, options, size, wait, row_security)?;
        let instance = clock.operation_id().0;
        let submit = Submit {
            clock: clock.clone(),
            node: node.clone(),
            instance,
            max_pending: i64::from(config.limits.pending_per_approver),
            key_lifetime: seconds(config.idempotency.lifetime_seconds),
        };
        let traced = config.telemetry.exports();
        let decide = Decide {
            clock: clock.clone(),
            node: node.clone(),
            traced,
        };
        let take_acks = TakeAcks {
            clock: clock.clone(),
            node: node.clone(),
            traced,
        };
        let push = &config.push;
        let claim = Claim {
            clock: clock.clone(),
            reoffer: (
                f64::from(u32::try_from(push.reoffer_seconds).unwrap_or(u32::MAX)),
                f64::from(u32::try_from(push.reoffer_max_seconds).unwrap_or(u32::MAX)),
            ),
        };
        let close = CloseChannels {
            clock: clock.clone(),
        };
        let take_hellos = TakeHellos {
            clock: clock.clone(),
        };
        Ok(Self {
            openings: Batcher::start(OpenChannels { instance }, &pool, WORKERS, tasks),
            closings: Batcher::start(close, &pool, WORKERS, tasks),
            hellos: Batcher::start(take_hellos, &pool, WORKERS, tasks),
            submissions: Batcher::start(submit, &pool, WORKERS, tasks),
            decisions: Batcher::start(decide, &pool, WORKERS, tasks),
            acks: Batcher::start(take_acks, &pool, WORKERS, tasks),
            reads: Batcher::start(
                ReadExchanges {
                    clock: clock.clone(),
                },
                &pool,
                WORKERS,
                tasks,
            ),
            keys: Batcher::start(ReadKeys, &pool, WORKERS, tasks),
            tokens: Batcher::start(ReadTokens, &pool, WORKERS, tasks),
            paired: Batcher::start(ReadPaired, &pool, WORKERS, tasks),
            credentials: Batcher::start(ReadCredentials, &pool, WORKERS, tasks),
            certificates: Batcher::start(ReadCertificates, &pool, WORKERS, tasks),
            tenants: Batcher::start(ReadTenants, &pool, WORKERS, tasks),
            lists: Batcher::start(
                ListUnacked {
                    clock: clock.clone(),
                },
                &pool,
                WORKERS,
                tasks,
            ),
            bodies: Batcher::start(
                ReadBodies {
                    clock: clock.clone(),
                },
                &pool,
                WORKERS,
                tasks,
            ),
            claims: Batcher::start(claim, &pool, WORKERS, tasks),
            prompts: Batcher::start(
                TakePrompts {
                    clock: clock.clone(),
                    key_lifetime: seconds(config.idempotency.lifetime_seconds),
                },
                &pool,
                WORKERS,
                tasks,
            ),
            prompt_acks: Batcher::start(
                TakePromptAcks {
                    clock: clock.clone(),
                },
                &pool,
                WORKERS,
                tasks,
            ),
            pool,
            background,
            clock: clock.clone(),
            node: node.clone(),
            instance,
            ahead: AtomicI64::default(),
        })
    }

    /// What time it is to the database, as well as the node can tell without asking.
    #[must_use]
    pub fn database_now(&self) -> OffsetDateTime {
        let ahead = time::Duration::microseconds(self.ahead.load(Ordering::Relaxed));
        self.clock.now().inner().saturating_add(ahead)
    }

    /// Notes what time it was to the database between two moments of the node's.
    fn compare_clocks(&self, before: Timestamp, database: OffsetDateTime, after: Timestamp) {
        let middle = before.inner() + (after.inner() - before.inner()) / 2;
        let ahead: time::Duration = database - middle;
        let micros = i64::try_from(ahead.whole_microseconds()).unwrap_or(i64::MAX);
        self.ahead.store(micros, Ordering::Relaxed);
        self.metrics().clock_offset.set(ahead.as_seconds_f64());
    }

    pub async fn submit(&self, row: SubmissionRow) -> Result<SubmissionOutcome, StoreError> {
        self.submissions.run(row).await
    }

    pub async fn decide(&self, row: DecisionRow) -> Result<DecisionOutcome, StoreError> {
        self.decisions.run(row).await
    }

    /// Takes an ack; `None` if there is no such message for this recipient.
    pub async fn ack(&self, row: AckRow) -> Result<Option<Acked>, StoreError> {
        self.acks.run(row).await
    }

    pub async fn exchange(
        &self,
        tenant: &TenantId,
        request: &RequestId,
    ) -> Result<Option<Exchange>, StoreError> {
        let operation = self.clock.operation_id();
        let row = ReadRow {
            operation,
            tenant: tenant.clone(),
            request_id: request.clone(),
        };
        match self.reads.run(row).await? {
            ReadFact::Found(exchange) => Ok(Some(*exchange)),
            ReadFact::Missing => Ok(None),
            ReadFact::Busy => Err(StoreError::Unavailable(
                "the exchange is just being ended".into(),
            )),
        }
    }

    /// Reads an approver's signing keys, revoked ones included.
    pub async fn keys_of(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
    ) -> Result<Vec<SigningKey>, StoreError> {
        let operation = self.clock.operation_id();
        self.keys
            .run(KeysRow {
                operation,
                tenant: tenant.clone(),
                approver: approver.clone(),
            })
            .await
    }

    /// Whom a routing token stands for, presented by an enforcer.
    pub async fn token_of(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        token: &RoutingToken,
    ) -> Result<TokenFact, StoreError> {
        let operation = self.clock.operation_id();
        self.tokens
            .run(TokenRow {
                operation,
                tenant: tenant.clone(),
                enforcer: enforcer.clone(),
                token_hash: token.hash(),
            })
            .await
    }

    pub async fn paired_with(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
    ) -> Result<Vec<ApproverId>, StoreError> {
        let operation = self.clock.operation_id();
        self.paired
            .run(PairedRow {
                operation,
                tenant: tenant.clone(),
                enforcer: enforcer.clone(),
            })
            .await
    }

    pub async fn credential(&self, id: &CredentialId) -> Result<Option<Credential>, StoreError> {
        let operation = self.clock.operation_id();
        let by = id.clone();
        self.credentials.run(LookupRow { operation, by }).await
    }

    /// Reads the credential that a certificate stands for.
    pub async fn certificate(
        &self,
        thumbprint: [u8; 32],
    ) -> Result<Option<Credential>, StoreError> {
        let operation = self.clock.operation_id();
        let by = thumbprint;
        self.certificates.run(LookupRow { operation, by }).await
    }

    /// Lists what an approver has not acknowledged.
    pub async fn list_unacked(&self, row: ListRow) -> Result<Vec<Listed>, StoreError> {
        self.lists.run(row).await
    }

    /// Reads messages for an approver, as far as they are still to be sent.
    pub async fn bodies(&self, row: BodiesRow) -> Result<Vec<ForApprover>, StoreError> {
        self.bodies.run(row).await
    }

    /// Claims an enforcer's messages for one of its channels.
    pub async fn claim(&self, row: ClaimRow) -> Result<Vec<Claimed>, StoreError> {
        self.claims.run(row).await
    }

    pub async fn take_prompt(&self, row: PromptRow) -> Result<PromptFact, StoreError> {
        self.prompts.run(row).await
    }

    pub async fn take_prompt_ack(
        &self,
        row: PromptAckRow,
    ) -> Result<Option<(EnforcerId, AckFact)>, StoreError> {
        self.prompt_acks.run(row).await
    }

    #[must_use]
    pub fn node(&self) -> &NodeId {
        &self.node
    }

    #[must_use]
    pub fn metrics(&self) -> &Arc<Metrics> {
        self.pool.metrics()
    }

    /// Connections for requests: how many are open, and how many of them idle.
    #[must_use]
    pub fn pool_usage(&self) -> (usize, usize) {
        self.pool.usage()
    }
}
