//! All SQL, and nothing else. A function runs one guarded statement, which writes if and only if the stored state allows, and
//! reports facts; judging them is up to `protocol`.
//!
//! Rules for statements, where `tests` hold the plans of the frequent ones:
//!
//! - Locks are taken in one order, or batches would deadlock: exchanges, then inbox items, then messages, each sorted by key.
//! - A row found by its primary key must be found by nothing else. Conditions beside the key are written so that no partial
//!   index matches them (`closed_as` for `closed_at`, `coalesce(acked_at, 'infinity') = 'infinity'`), nor another key
//!   (`(approver_id = …) is true`): the planner may believe such an index to be almost empty, and scan all of it.
//! - Rows found by age are compared with a clock that is read once, in a subquery: an index scan needs a constant bound.
//! - Rows found by age are passed on as arrays, which the planner takes to be short. Of a limit that it does not know it
//!   expects a tenth of the table, and would scan the other tables to join that many rows.

pub mod ack;
pub mod approver_messages;
pub mod audit;
pub mod batch;
pub mod channel;
pub mod channel_lifecycle;
pub mod claim;
mod columns;
pub mod credential;
pub mod credential_lookup;
pub mod decide;
pub mod end_exchange;
pub mod error;
pub mod exchange;
mod existing_submission;
pub mod idempotency;
pub mod inbox;
mod inbox_limit;
pub mod listing;
pub mod notify;
pub mod pairing;
pub mod pairing_code;
pub mod pairing_session;
mod pending_count;
pub mod pool;
pub mod presence;
pub mod prompt;
pub mod prompt_status;
pub mod refresh;
mod retention;
mod rows;
pub mod schema;
pub mod server_check;
pub mod session;
pub mod signing_key;
mod submission;
pub mod submit;
pub mod tenant;
pub mod tenant_scope;
pub mod unacked;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use sqlx::postgres::types::PgInterval;
use time::OffsetDateTime;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use self::ack::{AckRow, Acked, TakeAcks};
use self::approver_messages::{BodiesRow, ForApprover, ReadBodies};
use self::batch::Batcher;
use self::channel_lifecycle::{CloseChannels, OpenChannels};
use self::claim::{Claim, ClaimRow, Claimed};
use self::credential::Credential;
use self::credential_lookup::{ReadCertificates, ReadCredentials};
use self::decide::{Decide, DecisionOutcome, DecisionRow};
use self::error::StoreError;
use self::exchange::{Exchange, ReadExchanges, ReadFact, ReadRow};
use self::pairing::{PairedRow, ReadPaired, ReadTokens, TokenFact, TokenRow};
use self::pool::Pool;
use self::presence::TakeHellos;
use self::prompt::{PromptRow, TakePrompts};
use self::prompt_status::{PromptAckRow, TakePromptAcks};
use self::signing_key::{KeysRow, ReadKeys};
use self::submit::{SubmissionOutcome, SubmissionRow, Submit};
use self::tenant::ReadTenants;
use self::unacked::{ListRow, ListUnacked, Listed};
use crate::clock::Clock;
use crate::config::Config;
use crate::protocol::decision::SigningKey;
use crate::protocol::id::{ApproverId, CredentialId, EnforcerId, NodeId, RequestId, TenantId};
use crate::protocol::pairing::RoutingToken;
use crate::protocol::prompt::{AckFact, PromptFact};
use crate::protocol::timestamp::Timestamp;
use crate::telemetry::Metrics;

/// Connections that run one kind of batch at once: while one commits, the other's fills.
const WORKERS: usize = 2;

pub struct Store {
    pool: Pool,
    /// For health checks, sweeps and administration, so that a flood of requests cannot starve them.
    background: Pool,
    clock: Clock,
    node: NodeId,
    /// This run of the process: a restarted node is a new instance.
    instance: Uuid,
    /// How many microseconds the database's clock was ahead of the node's when they were last compared.
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
        let database = &config.database;
        let options = pool::connect_options(database)?;
        let wait = Duration::from_millis(database.acquire_timeout_ms);
        let open = |name, size| {
            let options = options.clone();
            Pool::new(name, metrics, options, size, wait, database.row_security)
        };
        let pool = open("requests", database.pool_size)?;
        let background = open("quiet", database.background_pool_size)?;
        let instance = clock.operation_id().0;
        let key_lifetime = seconds(config.idempotency.lifetime_seconds);
        let traced = config.telemetry.exports();
        let (clock, node) = (|| clock.clone(), || node.clone());
        let submit = Submit {
            clock: clock(),
            node: node(),
            instance,
            max_pending: i64::from(config.limits.pending_per_approver),
            key_lifetime,
        };
        let decide = Decide {
            clock: clock(),
            node: node(),
            traced,
        };
        let take_acks = TakeAcks {
            clock: clock(),
            node: node(),
            traced,
        };
        let as_seconds = |seconds| f64::from(u32::try_from(seconds).unwrap_or(u32::MAX));
        let claim = Claim {
            clock: clock(),
            reoffer: (
                as_seconds(config.push.reoffer_seconds),
                as_seconds(config.push.reoffer_max_seconds),
            ),
        };
        let take_prompts = TakePrompts {
            clock: clock(),
            key_lifetime,
        };
        Ok(Self {
            openings: Batcher::start(OpenChannels { instance }, &pool, WORKERS, tasks),
            closings: Batcher::start(CloseChannels { clock: clock() }, &pool, WORKERS, tasks),
            hellos: Batcher::start(TakeHellos { clock: clock() }, &pool, WORKERS, tasks),
            submissions: Batcher::start(submit, &pool, WORKERS, tasks),
            decisions: Batcher::start(decide, &pool, WORKERS, tasks),
            acks: Batcher::start(take_acks, &pool, WORKERS, tasks),
            reads: Batcher::start(ReadExchanges { clock: clock() }, &pool, WORKERS, tasks),
            keys: Batcher::start(ReadKeys, &pool, WORKERS, tasks),
            tokens: Batcher::start(ReadTokens, &pool, WORKERS, tasks),
            paired: Batcher::start(ReadPaired, &pool, WORKERS, tasks),
            credentials: Batcher::start(ReadCredentials, &pool, WORKERS, tasks),
            certificates: Batcher::start(ReadCertificates, &pool, WORKERS, tasks),
            tenants: Batcher::start(ReadTenants, &pool, WORKERS, tasks),
            lists: Batcher::start(ListUnacked { clock: clock() }, &pool, WORKERS, tasks),
            bodies: Batcher::start(ReadBodies { clock: clock() }, &pool, WORKERS, tasks),
            claims: Batcher::start(claim, &pool, WORKERS, tasks),
            prompts: Batcher::start(take_prompts, &pool, WORKERS, tasks),
            prompt_acks: Batcher::start(TakePromptAcks { clock: clock() }, &pool, WORKERS, tasks),
            pool,
            background,
            clock: clock(),
            node: node(),
            instance,
            ahead: AtomicI64::default(),
        })
    }

    /// The database's time, estimated from the node's clock.
    #[must_use]
    pub fn database_now(&self) -> OffsetDateTime {
        let ahead = time::Duration::microseconds(self.ahead.load(Ordering::Relaxed));
        self.clock.now().inner().saturating_add(ahead)
    }

    /// Compares a time read from the database with the node's times before and after reading it.
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

    /// Writes an ack; `None` if there is no such message for this recipient.
    pub async fn ack(&self, row: AckRow) -> Result<Option<Acked>, StoreError> {
        self.acks.run(row).await
    }

    pub async fn exchange(
        &self,
        tenant: &TenantId,
        request: &RequestId,
    ) -> Result<Option<Exchange>, StoreError> {
        let row = ReadRow {
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
        let (tenant, approver) = (tenant.clone(), approver.clone());
        self.keys.run(KeysRow { tenant, approver }).await
    }

    /// The approver that a routing token of an enforcer stands for.
    pub async fn token_of(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        token: &RoutingToken,
    ) -> Result<TokenFact, StoreError> {
        let row = TokenRow {
            tenant: tenant.clone(),
            enforcer: enforcer.clone(),
            token_hash: token.hash(),
        };
        self.tokens.run(row).await
    }

    pub async fn paired_with(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
    ) -> Result<Vec<ApproverId>, StoreError> {
        let (tenant, enforcer) = (tenant.clone(), enforcer.clone());
        self.paired.run(PairedRow { tenant, enforcer }).await
    }

    pub async fn credential(&self, id: &CredentialId) -> Result<Option<Credential>, StoreError> {
        self.credentials.run(id.clone()).await
    }

    /// Reads the credential of a certificate.
    pub async fn certificate(
        &self,
        thumbprint: [u8; 32],
    ) -> Result<Option<Credential>, StoreError> {
        self.certificates.run(thumbprint).await
    }

    /// Lists what an approver has not acknowledged.
    pub async fn list_unacked(&self, row: ListRow) -> Result<Vec<Listed>, StoreError> {
        self.lists.run(row).await
    }

    /// Reads those of the messages for an approver that are still to be sent.
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
