//! Writes decisions, at most one per exchange. The exchange is locked first, then the clock is read, then the decision is
//! judged and written.

use std::collections::HashMap;

use sqlx::{Connection as _, PgConnection};

use super::batch::{BatchResult, BatchStatement};
use super::rows::{self, column};
use super::tenant_scope::TenantScope;
use crate::clock::Clock;
use crate::protocol::decision::{Decision, SigningKey, Trust};
use crate::protocol::exchange::{DecisionFact, ExchangeState};
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, NodeId, OperationId, TenantId};
use crate::protocol::timestamp::Timestamp;
use crate::protocol::trace::TraceContext;

#[derive(Debug)]
pub struct DecisionRow {
    pub operation: OperationId,
    pub tenant: TenantId,
    pub approver: ApproverId,
    pub decision: Decision,
    /// What the check of its signature relied on; it must still hold when the decision is written.
    pub trust: Trust,
    pub message: MessageId,
}

/// By default there is no such exchange.
#[derive(Debug, Default)]
pub struct DecisionOutcome {
    pub fact: DecisionFact,
    /// The enforcer to wake, if the exchange exists.
    pub enforcer: Option<EnforcerId>,
    /// When the exchange ends, if it exists.
    pub expires_at: Option<Timestamp>,
    /// How long the exchange had waited, in seconds, if this decided it.
    pub waited: Option<f64>,
    pub origin: Option<TraceContext>,
}

pub struct Decide {
    pub clock: Clock,
    pub node: NodeId,
    /// Whether to read the trace in which an exchange was submitted.
    pub traced: bool,
}

impl BatchStatement for Decide {
    const NAME: &'static str = "decide";
    type Row = DecisionRow;
    type Fact = DecisionOutcome;

    fn tenant_scope(rows: &[DecisionRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn conflict_keys(row: &DecisionRow) -> Vec<String> {
        vec![format!("{}\n{}", row.tenant, row.decision.request_id)]
    }

    fn bytes(row: &DecisionRow) -> usize {
        row.decision.body.len() + row.decision.trace.as_ref().map_or(0, String::len)
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        if rows.iter().all(|row| row.trust != Trust::Unregistered) {
            return self.decide(connection, rows).await;
        }
        // The absence of a key cannot be locked, only read, and it must be read after the wait for the exchange's lock.
        // So the locks are taken by a statement of their own.
        let mut transaction = connection.begin().await?;
        let decided = match lock(&mut transaction, rows).await {
            Ok(()) => self.decide(&mut transaction, rows).await,
            Err(error) => Err(error),
        };
        match decided {
            Ok(outcomes) => transaction.commit().await.map(|()| outcomes),
            Err(error) => {
                transaction.rollback().await?;
                Err(error)
            }
        }
    }
}

/// Locks the exchanges of a batch in the order of their keys, as every statement does.
async fn lock(connection: &mut PgConnection, rows: &[DecisionRow]) -> sqlx::Result<()> {
    sqlx::query!(
        r#"
        select e.request_id
          from exchanges e
          join unnest($1::text[], $2::text[]) as i (tenant_id, request_id)
            on i.tenant_id = e.tenant_id and i.request_id = e.request_id
         order by e.tenant_id, e.request_id
           for no key update of e
        "#,
        column(rows, |row| &row.tenant) as _,
        column(rows, |row| &row.decision.request_id) as _,
    )
    .fetch_all(connection)
    .await?;
    Ok(())
}

impl Decide {
    async fn decide(
        &self,
        connection: &mut PgConnection,
        rows: &[DecisionRow],
    ) -> BatchResult<Self> {
        let keys: Vec<Option<&SigningKey>> = rows
            .iter()
            .map(|row| match &row.trust {
                Trust::Verified(key) => Some(&**key),
                Trust::Unregistered | Trust::Unchecked => None,
            })
            .collect();
        let found = sqlx::query!(
            r#"
            -- The clock is read for each row once it is locked.
            with judged as materialized (
                select l.operation_id, l.approver_id, l.decision, l.signer_key_id, l.nonce, l.signature, l.body, l.trace,
                       l.message_id, l.public_key, l.not_before, l.not_after, l.unregistered, l.hash_matches, l.repo_matches,
                       l.tenant_id, l.request_id, l.last_operation, l.state, l.seq, l.enforcer_id, l.accepted_at,
                       l.expires_at, l.same, l.verified, clock_timestamp() + $16::interval as at,
                       -- The limit keeps the planner from hashing all inbox items.
                       (select true from inbox_items x
                         where x.tenant_id = l.tenant_id and x.request_id = l.request_id and x.approver_id = l.approver_id
                         limit 1) is not null as asked
                  from (select i.operation_id, i.approver_id, i.decision, i.signer_key_id, i.nonce, i.signature, i.body,
                               i.trace, i.message_id, i.public_key, i.not_before, i.not_after, i.unregistered,
                               e.artifact_hash = i.artifact_hash as hash_matches,
                               coalesce(e.repo_ref = i.repo_ref, true) as repo_matches,
                               e.tenant_id, e.request_id, e.operation_id as last_operation, e.state, e.seq, e.enforcer_id,
                               e.accepted_at, e.expires_at, e.verified,
                               coalesce(e.signer_key_id = i.signer_key_id and e.nonce = i.nonce
                                        and e.signature = i.signature, false) as same
                          from exchanges e
                          join unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[],
                                      $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::uuid[],
                                      $14::bytea[], $19::timestamptz[], $20::timestamptz[], $15::boolean[])
                               as i (tenant_id, request_id, operation_id, approver_id, decision, signer_key_id, nonce,
                                     signature, artifact_hash, repo_ref, body, trace, message_id, public_key, not_before,
                                     not_after, unregistered)
                            on i.tenant_id = e.tenant_id and i.request_id = e.request_id
                         order by e.tenant_id, e.request_id
                           for no key update of e) l
            ),
            -- Locked after the exchange, so that an earlier revocation is seen, however long the wait was.
            keyed as materialized (
                select j.operation_id,
                       k.revoked_at is not null
                           or row(k.public_key, k.not_before, k.not_after)
                              is distinct from row(j.public_key, j.not_before, j.not_after) as changed
                  from judged j
                  join signing_keys k on k.tenant_id = j.tenant_id and k.approver_id = j.approver_id
                                     and k.signer_key_id = j.signer_key_id
                 where j.public_key is not null
                   for share of k
            ),
            pick as materialized (
                select j.tenant_id, j.request_id, j.operation_id, j.approver_id, j.decision, j.signer_key_id, j.nonce,
                       j.signature, j.body, j.trace, j.message_id, j.public_key is not null as verified, j.seq + 1 as seq,
                       j.at
                  from judged j
                 where j.asked and j.state = 'pendingApproval' and j.expires_at > j.at
                   and j.hash_matches and j.repo_matches
                   and (j.public_key is null
                        or exists (select from keyed k
                                    where k.operation_id = j.operation_id and not k.changed))
                   -- The limit keeps the planner from hashing all keys.
                   and (not j.unregistered
                        or (select true from signing_keys k
                             where k.tenant_id = j.tenant_id and k.approver_id = j.approver_id limit 1) is null)
            ),
            won as (
                update exchanges e
                   set state = 'decided', operation_id = p.operation_id, seq = p.seq, decision = p.decision,
                       decided_by = p.approver_id, signer_key_id = p.signer_key_id, nonce = p.nonce,
                       signature = p.signature, verified = p.verified, decision_message_id = p.message_id,
                       decided_at = p.at
                  from pick p
                 where e.tenant_id = p.tenant_id and e.request_id = p.request_id and e.state = 'pendingApproval'
                returning e.tenant_id, e.request_id, e.operation_id, e.seq, e.enforcer_id, e.decided_by,
                          e.decision_message_id, e.decided_at
            ),
            payload as (
                insert into exchange_payloads (tenant_id, request_id, part, body, trace)
                select w.tenant_id, w.request_id, 'decision', p.body::json, p.trace::json
                  from won w join pick p on p.operation_id = w.operation_id
            ),
            items as materialized (
                select x.tenant_id, x.request_id, x.approver_id, w.decided_at
                  from inbox_items x
                  join won w on w.tenant_id = x.tenant_id and w.request_id = x.request_id
                 order by x.tenant_id, x.request_id, x.approver_id
                   for no key update of x
            ),
            closed as (
                update inbox_items x
                   set closed_at = i.decided_at, closed_as = 'decided'
                  from items i
                 where x.tenant_id = i.tenant_id and x.request_id = i.request_id and x.approver_id = i.approver_id
            ),
            queued as (
                insert into messages (tenant_id, recipient_kind, recipient, message_id, kind, request_id, seq, sender,
                                      created_at)
                select w.tenant_id, 'enforcer', w.enforcer_id, w.decision_message_id, 'decision.deliver', w.request_id,
                       w.seq, w.decided_by, w.decided_at
                  from won w
            ),
            history as (
                insert into exchange_events (tenant_id, request_id, at, event_id, from_state, to_state, actor, node)
                select w.tenant_id, w.request_id, w.decided_at, w.operation_id, 'pendingApproval', 'decided',
                       'approver:' || w.decided_by, $17
                  from won w
            )
            select j.operation_id as "operation!: OperationId",
                   w.operation_id is not null as "written!",
                   j.last_operation = j.operation_id as "own!",
                   j.state as "state!: ExchangeState",
                   j.enforcer_id as "enforcer!: EnforcerId",
                   j.expires_at as "expires_at!: Timestamp",
                   j.expires_at <= j.at as "past!",
                   j.asked as "asked!",
                   j.same as "same!",
                   j.hash_matches as "hash_matches!",
                   j.repo_matches as "repo_matches!",
                   exists (select from keyed k where k.operation_id = j.operation_id and k.changed) as "key_changed!",
                   j.verified as "verified?",
                   case when w.operation_id is not null then extract(epoch from j.at - j.accepted_at)::float8 end
                       as "waited?",
                   case when $18 then (select y.trace ->> 'traceparent'
                                         from exchange_payloads y
                                        where y.tenant_id = j.tenant_id and y.request_id = j.request_id
                                          and y.part = 'artifact') end as "origin?"
              from judged j
              left join won w on w.operation_id = j.operation_id
            "#,
            column(rows, |row| &row.tenant) as _,
            column(rows, |row| &row.decision.request_id) as _,
            column(rows, |row| row.operation) as _,
            column(rows, |row| &row.approver) as _,
            column(rows, |row| row.decision.verdict.as_str()) as _,
            column(rows, |row| &row.decision.signer_key_id) as _,
            column(rows, |row| &row.decision.nonce) as _,
            column(rows, |row| row.decision.signature.to_text()) as _,
            column(rows, |row| row.decision.artifact_hash) as _,
            column(rows, |row| row.decision.repo_ref.as_deref()) as _,
            column(rows, |row| &row.decision.body) as _,
            column(rows, |row| row.decision.trace.as_deref()) as _,
            column(rows, |row| row.message) as _,
            column(&keys, |key| key.map(|key| key.public_key)) as _,
            &column(rows, |row| row.trust == Trust::Unregistered),
            self.clock.offset(),
            self.node.as_str(),
            self.traced,
            column(&keys, |key| key.and_then(|key| key.not_before)) as _,
            column(&keys, |key| key.and_then(|key| key.not_after)) as _,
        )
        .fetch_all(connection)
        .await?;
        let outcomes = found.into_iter().map(|row| {
            let fact = DecisionFact {
                written: row.written,
                own: row.own,
                state: Some(row.state.at(row.past)),
                asked: row.asked,
                same: row.same,
                hash_matches: row.hash_matches,
                repo_matches: row.repo_matches,
                key_changed: row.key_changed,
                verified: row.verified,
            };
            let outcome = DecisionOutcome {
                fact,
                enforcer: Some(row.enforcer),
                expires_at: Some(row.expires_at),
                waited: row.waited,
                origin: rows::context(row.origin.as_deref(), None),
            };
            (row.operation, outcome)
        });
        let mut outcomes: HashMap<_, _> = outcomes.collect();
        let outcomes = rows.iter().map(|row| outcomes.remove(&row.operation));
        Ok(outcomes.map(Option::unwrap_or_default).collect())
    }
}
