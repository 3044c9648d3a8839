//! Reads exchanges for status and waits, many callers in one query. Submission, decision and acknowledgement are batched too,
//! each in a file of its own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgConnection;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::config::Config;
use crate::protocol::decision::Verification;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, RequestId, TenantId};
use crate::protocol::message::DecisionDelivery;
use crate::protocol::timestamp::Timestamp;
use crate::store::channels::ack::TakeAcks;
use crate::store::database::batch::StatementBatcher;
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::busy::RowLock;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::interval::seconds;
use crate::store::database::pools::Database;
use crate::store::database::rows;
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;
use crate::store::exchanges::decide::TakeDecisions;
use crate::store::exchanges::submit::{InboxLimits, TakeSubmissions};

#[derive(Debug, Clone)]
pub struct Exchange {
    pub request_id: RequestId,
    pub state: ExchangeState,
    pub enforcer_id: EnforcerId,
    pub approver_ids: Vec<ApproverId>,
    pub accepted_at: Timestamp,
    pub expires_at: Timestamp,
    /// How long until then; zero once that has passed.
    pub expires_in: Duration,
    pub artifact_hash: String,
    pub decision: Option<DecisionDelivery>,
}

#[derive(Debug)]
pub struct ReadRow {
    pub tenant: TenantId,
    pub request_id: RequestId,
}

pub struct ReadExchanges {
    pub clock: Clock,
}

impl BatchStatement for ReadExchanges {
    const NAME: &'static str = "read_exchange";
    const IS_READ: bool = true;
    type Row = ReadRow;
    /// Busy while it is past its expiry and being decided or ended.
    type Fact = RowLock<Option<Box<Exchange>>>;

    fn tenant_scope(rows: &[ReadRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn bytes(_: &ReadRow) -> usize {
        // A decision may come back for each row.
        16 << 10
    }

    fn is_busy(fact: &Self::Fact) -> bool {
        fact.is_busy()
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let all: Vec<_> = (0_i64..).zip(rows).collect();
        let mut found = self.read(connection, &all).await?;
        // An overdue exchange may be in the middle of a decision that was judged just in time. If it is not, a second read
        // sees how that ended; once it says expired, it stays so. (Lists do without: they may show such an exchange as
        // expired for the moment its decision takes to commit.)
        let overdue: Vec<_> = all
            .iter()
            .copied()
            .filter(|(number, _)| found.get(number).is_some_and(|read| read.overdue))
            .collect();
        let mut settled = HashSet::new();
        if !overdue.is_empty() {
            settled = self.find_settled(connection, &overdue).await?;
            let again: Vec<_> = overdue
                .into_iter()
                .filter(|(number, _)| settled.contains(number))
                .collect();
            found.extend(self.read(connection, &again).await?);
        }
        Ok(all
            .iter()
            .map(|(number, _)| match found.remove(number) {
                Some(read) if read.overdue && !settled.contains(number) => RowLock::Busy,
                read => RowLock::Locked(read.map(|read| Box::new(read.exchange))),
            })
            .collect())
    }
}

struct ExchangeRow {
    exchange: Exchange,
    /// Whether it is past its expiry and still stored as pending.
    overdue: bool,
}

impl ReadExchanges {
    /// Which of these exchanges no statement is deciding or ending, by the numbers of their rows. Such a statement has the
    /// exchange's advisory lock from before it reads the clock until it has committed. A lock on the row would tell less:
    /// others take it too.
    async fn find_settled(
        &self,
        connection: &mut PgConnection,
        rows: &[(i64, &ReadRow)],
    ) -> sqlx::Result<HashSet<i64>> {
        let settled = sqlx::query_scalar!(
            r#"
            select i.number as "number!"
              from unnest($1::bigint[], $2::text[], $3::text[]) as i (number, tenant_id, request_id)
             where pg_try_advisory_xact_lock_shared(hashtextextended(i.tenant_id || chr(10) || i.request_id, 1))
            "#,
            &column(rows, |(number, _)| *number),
            column(rows, |(_, row)| &row.tenant) as _,
            column(rows, |(_, row)| &row.request_id) as _,
        )
        .fetch_all(connection)
        .await?;
        Ok(settled.into_iter().collect())
    }

    /// Reads exchanges, by the numbers of the rows that ask for them.
    async fn read(
        &self,
        connection: &mut PgConnection,
        rows: &[(i64, &ReadRow)],
    ) -> sqlx::Result<HashMap<i64, ExchangeRow>> {
        let found = sqlx::query!(
            r#"
            select i.number as "number!", e.request_id as "request_id: RequestId", e.state as "state: ExchangeState",
                   e.enforcer_id as "enforcer_id: EnforcerId", e.accepted_at, e.expires_at, e.artifact_hash,
                   e.decided_at as "decided_at: Timestamp", e.decided_by as "decided_by: ApproverId",
                   coalesce(e.verification::text, case when e.verified then 'registered' end)
                       as "verification?: Verification",
                   e.decision_message_id as "decision_message_id: MessageId", e.expires_at <= c.at as "past!",
                   extract(epoch from e.expires_at - c.at)::float8 as "expires_in!",
                   (select array_agg(x.approver_id)
                      from inbox_items x
                     where x.tenant_id = e.tenant_id and x.request_id = e.request_id) as "approver_ids?: Vec<ApproverId>",
                   y.body::text as "body?", y.trace::text as "trace?",
                   o.traceparent as "traceparent?", o.tracestate as "tracestate?"
              from unnest($1::bigint[], $2::text[], $3::text[]) as i (number, tenant_id, request_id)
             cross join (select clock_timestamp() + $4::interval as at) c
              join exchanges e on e.tenant_id = i.tenant_id and e.request_id = i.request_id
              left join exchange_payloads y
                     on y.tenant_id = e.tenant_id and y.request_id = e.request_id and y.part = 'decision'
              -- The limit keeps the planner from hashing every artifact.
              left join lateral (select o.trace ->> 'traceparent' as traceparent, o.trace ->> 'tracestate' as tracestate
                                   from exchange_payloads o
                                  where o.tenant_id = y.tenant_id and o.request_id = y.request_id and o.part = 'artifact'
                                  limit 1) o on true
            "#,
            &column(rows, |(number, _)| *number),
            column(rows, |(_, row)| &row.tenant) as _,
            column(rows, |(_, row)| &row.request_id) as _,
            clock_offset(&self.clock),
        )
        .fetch_all(connection)
        .await?;
        let mut exchanges = HashMap::with_capacity(found.len());
        for row in found {
            let decided = (row.decision_message_id, row.decided_at, row.decided_by);
            let decision = match (decided, row.body) {
                ((Some(message_id), Some(decided_at), Some(decided_by)), Some(body)) => {
                    let (parent, state) = (row.traceparent.as_deref(), row.tracestate.as_deref());
                    Some(DecisionDelivery {
                        message_id,
                        decided_at,
                        decided_by,
                        verification: row.verification.unwrap_or(Verification::Unregistered),
                        body,
                        trace: rows::carrying(row.trace, parent, state),
                    })
                }
                _ => None,
            };
            let exchange = Exchange {
                request_id: row.request_id,
                state: row.state.at(row.past),
                enforcer_id: row.enforcer_id,
                approver_ids: row.approver_ids.unwrap_or_default(),
                accepted_at: row.accepted_at.into(),
                expires_at: row.expires_at.into(),
                expires_in: Duration::try_from_secs_f64(row.expires_in).unwrap_or_default(),
                artifact_hash: row.artifact_hash,
                decision,
            };
            let overdue = row.state == ExchangeState::PendingApproval && row.past;
            exchanges.insert(row.number, ExchangeRow { exchange, overdue });
        }
        Ok(exchanges)
    }
}

pub struct ExchangeStore {
    pub(in crate::store) database: Arc<Database>,
    pub submissions: StatementBatcher<TakeSubmissions>,
    pub decisions: StatementBatcher<TakeDecisions>,
    pub acks: StatementBatcher<TakeAcks>,
    reads: StatementBatcher<ReadExchanges>,
}

impl ExchangeStore {
    pub(in crate::store) fn new(
        database: &Arc<Database>,
        config: &Config,
        tasks: &TaskTracker,
    ) -> Self {
        let (clock, node) = (|| database.clock.clone(), || database.node.clone());
        let traced = config.telemetry.exports();
        let submit = TakeSubmissions {
            clock: clock(),
            node: node(),
            limits: InboxLimits::of(&config.limits),
            pairing_required: config.pairing.required,
            key_lifetime: seconds(config.idempotency.lifetime_seconds),
        };
        let decide = TakeDecisions {
            clock: clock(),
            node: node(),
            traced,
        };
        let take_acks = TakeAcks {
            clock: clock(),
            node: node(),
            traced,
        };
        Self {
            submissions: database.batch(submit, tasks),
            decisions: database.batch(decide, tasks),
            acks: database.batch(take_acks, tasks),
            reads: database.batch(ReadExchanges { clock: clock() }, tasks),
            database: Arc::clone(database),
        }
    }

    pub async fn exchange(
        &self,
        tenant: &TenantId,
        request: &RequestId,
    ) -> Result<Option<Exchange>> {
        let row = ReadRow {
            tenant: tenant.clone(),
            request_id: request.clone(),
        };
        let found = self.reads.run(row).await?.locked()?;
        Ok(found.map(|exchange| *exchange))
    }

    /// The outcome that the enforcer sent with its ack.
    pub async fn outcome(&self, tenant: &TenantId, request: &RequestId) -> Result<Option<String>> {
        let query = sqlx::query!(
            r#"
            select y.body #>> '{}' as "outcome!"
              from exchange_payloads y
             where y.tenant_id = $1 and y.request_id = $2 and y.part = 'outcome'
            "#,
            tenant.as_str(),
            request.as_str(),
        )
        .map(|row| row.outcome);
        self.database.pool.fetch_optional(tenant, query).await
    }
}
