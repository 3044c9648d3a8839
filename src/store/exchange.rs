//! Reading exchanges one by one, for status and waits, gathered into one query for all who ask.

use std::collections::HashMap;

use sqlx::PgConnection;
use uuid::Uuid;

use super::batch::BatchStatement;
use super::rows;
use super::tenant_scope::TenantScope;
use crate::clock::Clock;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, OperationId, RequestId, TenantId};
use crate::protocol::message::DecisionDelivery;
use crate::protocol::timestamp::Timestamp;

#[derive(Debug, Clone)]
pub struct Exchange {
    pub request_id: RequestId,
    pub state: ExchangeState,
    pub enforcer_id: EnforcerId,
    pub approver_ids: Vec<ApproverId>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// How long until then; nothing once that has passed.
    pub expires_in: std::time::Duration,
    pub artifact_hash: String,
    pub decision: Option<DecisionDelivery>,
}

#[derive(Debug)]
pub enum ReadFact {
    Found(Box<Exchange>),
    /// No such exchange.
    Missing,
    /// Someone is just ending it, and takes too long.
    Busy,
}

#[derive(Debug)]
pub struct ReadRow {
    pub operation: OperationId,
    pub tenant: TenantId,
    pub request_id: RequestId,
}

pub struct ReadExchanges {
    pub clock: Clock,
}

impl BatchStatement for ReadExchanges {
    const NAME: &'static str = "read_exchange";
    type Row = ReadRow;
    type Fact = ReadFact;

    fn tenant_scope(rows: &[ReadRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn conflict_keys(_: &ReadRow) -> Vec<String> {
        Vec::new()
    }

    fn bytes(_: &ReadRow) -> usize {
        // A reader sends little, but a decision may come back for each.
        16 << 10
    }

    async fn run(
        &self,
        connection: &mut PgConnection,
        rows: &[ReadRow],
    ) -> Result<Vec<ReadFact>, sqlx::Error> {
        let all: Vec<&ReadRow> = rows.iter().collect();
        let mut found = self.read(connection, &all).await?;
        // Past its time and still pending, an exchange may be in the middle of a decision that was judged just in time.
        // A second look behind the row's lock sees how that ended; once it says expired, it stays so. (Lists do without:
        // they may show such an exchange among the expired for the moment its decision takes to commit.)
        let overdue: Vec<&ReadRow> = all
            .into_iter()
            .filter(|row| found.get(&row.operation.0).is_some_and(|read| read.overdue))
            .collect();
        let mut busy = false;
        if !overdue.is_empty() {
            // A lock that cannot be had (or a server that takes none) is a reason to ask again, for these rows alone.
            match self.await_writers(connection, &overdue).await {
                Ok(()) => found.extend(self.read(connection, &overdue).await?),
                Err(sqlx::Error::Database(_)) => busy = true,
                Err(error) => return Err(error),
            }
        }
        Ok(rows
            .iter()
            .map(|row| match found.remove(&row.operation.0) {
                None => ReadFact::Missing,
                Some(read) if busy && read.overdue => ReadFact::Busy,
                Some(read) => ReadFact::Found(Box::new(read.exchange)),
            })
            .collect())
    }
}

struct Read {
    exchange: Exchange,
    /// Whether it is past its time and nothing has written down how it ended.
    overdue: bool,
}

impl ReadExchanges {
    /// Waits until nobody is in the middle of changing these exchanges.
    async fn await_writers(
        &self,
        connection: &mut PgConnection,
        rows: &[&ReadRow],
    ) -> Result<(), sqlx::Error> {
        sqlx::query!(
            r#"
            select e.request_id
              from exchanges e
              join unnest($1::text[], $2::text[]) as i (tenant_id, request_id)
                on i.tenant_id = e.tenant_id and i.request_id = e.request_id
             order by e.tenant_id, e.request_id
               for share of e
            "#,
            &rows::texts(rows, |row| row.tenant.as_str()) as _,
            &rows::texts(rows, |row| row.request_id.as_str()) as _,
        )
        .fetch_all(connection)
        .await?;
        Ok(())
    }

    /// Reads exchanges, by the call that asks for them.
    async fn read(
        &self,
        connection: &mut PgConnection,
        rows: &[&ReadRow],
    ) -> Result<HashMap<Uuid, Read>, sqlx::Error> {
        let found = sqlx::query!(
            r#"
            select i.operation_id as "operation!", e.request_id, e.state, e.enforcer_id, e.accepted_at, e.expires_at,
                   e.artifact_hash, e.decided_at, e.decided_by, e.decision_message_id,
                   e.expires_at <= c.at as "past!",
                   extract(epoch from e.expires_at - c.at)::float8 as "expires_in!",
                   (select array_agg(x.approver_id)
                      from inbox_items x
                     where x.tenant_id = e.tenant_id and x.request_id = e.request_id) as "approver_ids?",
                   y.body::text as "body?", y.trace::text as "trace?",
                   o.traceparent as "traceparent?", o.tracestate as "tracestate?"
              from unnest($1::uuid[], $2::text[], $3::text[]) as i (operation_id, tenant_id, request_id)
             cross join (select clock_timestamp() + $4::interval as at) c
              join exchanges e on e.tenant_id = i.tenant_id and e.request_id = i.request_id
              left join exchange_payloads y
                     on y.tenant_id = e.tenant_id and y.request_id = e.request_id and y.part = 'decision'
              -- The limit keeps this from being turned into a hash of every artifact's.
              left join lateral (select o.trace ->> 'traceparent' as traceparent, o.trace ->> 'tracestate' as tracestate
                                   from exchange_payloads o
                                  where o.tenant_id = y.tenant_id and o.request_id = y.request_id and o.part = 'artifact'
                                  limit 1) o on true
            "#,
            &rows.iter().map(|row| row.operation.0).collect::<Vec<Uuid>>(),
            &rows::texts(rows, |row| row.tenant.as_str()) as _,
            &rows::texts(rows, |row| row.request_id.as_str()) as _,
            self.clock.offset(),
        )
        .fetch_all(connection)
        .await?;
        let mut exchanges = HashMap::with_capacity(found.len());
        for row in found {
            let decision = match (
                row.decision_message_id,
                row.decided_at,
                row.decided_by,
                row.body,
            ) {
                (Some(message), Some(decided_at), Some(decided_by), Some(body)) => {
                    Some(DecisionDelivery {
                        message_id: MessageId(message),
                        decided_at: decided_at.into(),
                        decided_by: rows::id(&decided_by)?,
                        body,
                        trace: rows::carrying(
                            row.trace,
                            row.traceparent.as_deref(),
                            row.tracestate.as_deref(),
                        ),
                    })
                }
                _ => None,
            };
            let approvers = row.approver_ids.unwrap_or_default();
            let state = rows::state(&row.state)?;
            let exchange = Exchange {
                request_id: rows::id(&row.request_id)?,
                state: state.at(row.past),
                enforcer_id: rows::id(&row.enforcer_id)?,
                approver_ids: approvers
                    .iter()
                    .map(|id| rows::id(id))
                    .collect::<Result<_, _>>()?,
                accepted_at: row.accepted_at.into(),
                expires_at: row.expires_at.into(),
                expires_in: std::time::Duration::try_from_secs_f64(row.expires_in)
                    .unwrap_or_default(),
                artifact_hash: row.artifact_hash,
                decision,
            };
            let overdue = state == ExchangeState::PendingApproval && row.past;
            exchanges.insert(row.operation, Read { exchange, overdue });
        }
        Ok(exchanges)
    }
}
