//! Writes decisions, at most one per exchange. The exchange is locked first, then the clock is read, then the decision is
//! judged and written. The statement waits for no lock: a decision that meets one is busy, and is tried again.
//!
//! A decision without a verified signature relies on the absence of keys, which no lock on a row can guard, and which the
//! statement's own snapshot may be too old to tell. So the function `has_no_signing_key` takes the approver's advisory lock,
//! shared, and then reads the keys with a snapshot of its own. Registration holds that lock, exclusively, from before it
//! writes the key until it has committed. Either it had committed before the lock was taken, and the key is seen; or it is
//! under way, and the decision is busy; or it has to wait until the decision is committed.
//!
//! A nonce that is to count once is inserted before the exchange is decided, and if another exchange has it, nothing is. Its
//! advisory lock keeps the insert from waiting for one that another node has not committed.

use std::collections::HashMap;

use sqlx::PgConnection;

use crate::clock::Clock;
use crate::protocol::decision::{Decision, SignatureTrust, SigningKey, Verification};
use crate::protocol::exchange::{DecisionFact, ExchangeState};
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, NodeId, OperationId, TenantId};
use crate::protocol::message::DecisionDelivery;
use crate::protocol::timestamp::Timestamp;
use crate::protocol::trace::TraceContext;
use crate::store::audit::AuditSource;
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::busy::RowLock;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows;
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;

#[derive(Debug)]
pub struct DecisionRow {
    pub operation: OperationId,
    pub tenant: TenantId,
    pub approver: ApproverId,
    pub decision: Decision,
    /// The key, or the absence of one, that the check of its signature relied on; it must still hold when the decision is written.
    pub trust: SignatureTrust,
    /// Its nonce, if that counts once per signing key.
    pub counted: Option<String>,
    pub source: AuditSource,
    pub message: MessageId,
}

#[derive(Debug)]
pub struct DecisionOutcome {
    pub fact: DecisionFact,
    /// The enforcer to wake, if the exchange exists.
    pub enforcer: Option<EnforcerId>,
    /// When the exchange ends, if it exists.
    pub expires_at: Option<Timestamp>,
    /// How long the exchange had waited, in seconds, if this decided it.
    pub waited: Option<f64>,
    pub origin: Option<TraceContext>,
    /// If this decided the exchange and no earlier message of it waits: what the enforcer is told.
    pub delivery: Option<DecisionDelivery>,
}

pub struct TakeDecisions {
    pub clock: Clock,
    pub node: NodeId,
    /// Whether to read the trace in which an exchange was submitted.
    pub traced: bool,
}

impl BatchStatement for TakeDecisions {
    const NAME: &'static str = "decide";
    type Row = DecisionRow;
    type Fact = RowLock<DecisionOutcome>;

    fn tenant_scope(rows: &[DecisionRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn conflict_keys(row: &DecisionRow) -> Vec<String> {
        let exchange = format!("{}\n{}", row.tenant, row.decision.request_id);
        let nonce = row.counted.as_ref().map(|nonce| {
            let key = &row.decision.signer_key_id;
            format!("{}\n{}\n{key}\n{nonce}", row.tenant, row.approver)
        });
        [exchange].into_iter().chain(nonce).collect()
    }

    fn bytes(row: &DecisionRow) -> usize {
        row.decision.body.len() + row.decision.trace.as_ref().map_or(0, String::len)
    }

    fn is_busy(fact: &Self::Fact) -> bool {
        fact.is_busy()
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let keys: Vec<Option<&SigningKey>> = rows
            .iter()
            .map(|row| match &row.trust {
                SignatureTrust::Verified(key) => Some(&**key),
                SignatureTrust::Unregistered | SignatureTrust::Unchecked => None,
            })
            .collect();
        let found = sqlx::query!(
            r#"
            with input as materialized (
                select i.*, $1::interval as clock_offset, $2::text as node, $3::boolean as traced
                  from unnest($4::text[], $5::text[], $6::uuid[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[],
                              $12::text[], $13::text[], $14::text[], $15::uuid[], $16::bytea[], $17::timestamptz[],
                              $18::timestamptz[], $19::boolean[], $20::text[], $21::text[], $22::text[])
                       with ordinality
                       as i (tenant_id, request_id, operation_id, approver_id, decision, signer_key_id, nonce, signature,
                             artifact_hash, repo_ref, trace, message_id, public_key, not_before, not_after,
                             unregistered, counted, principal, address, n)
            ),
            -- For each row: lock it, tell readers that its expiry is not settled, read the clock.
            locked_exchanges as materialized (
                select h.*, clock_timestamp() + h.clock_offset as at,
                       case when h.unregistered and h.state = 'pendingApproval'
                            then has_no_signing_key(h.tenant_id, h.approver_id) end as no_key,
                       x.items, x.asked
                  from (select l.*,
                               pg_try_advisory_xact_lock(hashtextextended(l.tenant_id || chr(10) || l.request_id, 1))
                               and case when l.counted is null then true
                                        else pg_try_advisory_xact_lock(hashtextextended(
                                                 concat_ws(chr(10), l.tenant_id, l.approver_id, l.signer_key_id, l.counted),
                                                 2)) end as guarded
                          from (select i.operation_id, i.approver_id, i.decision, i.signer_key_id, i.nonce, i.signature,
                                       i.message_id, i.public_key, i.not_before, i.not_after, i.unregistered, i.counted,
                                       i.clock_offset, i.traced, e.artifact_hash = i.artifact_hash as hash_matches,
                                       coalesce(e.repo_ref = i.repo_ref, true) as repo_matches,
                                       e.tenant_id, e.request_id, e.operation_id as last_operation, e.state, e.seq,
                                       e.enforcer_id, e.accepted_at, e.expires_at, e.verified,
                                       coalesce(e.signer_key_id = i.signer_key_id and e.nonce = i.nonce
                                                and e.signature = i.signature, false) as same
                                  from exchanges e
                                  join input i on i.tenant_id = e.tenant_id and i.request_id = e.request_id
                                   for no key update of e skip locked) l) h
                 cross join lateral (select count(*) as items, bool_or(x.approver_id = h.approver_id) as asked
                                       from inbox_items x
                                      where x.tenant_id = h.tenant_id and x.request_id = h.request_id) x
            ),
            -- Locked, so that an earlier revocation is seen.
            locked_keys as materialized (
                select j.operation_id,
                       k.revoked_at is not null
                           or row(k.public_key, k.not_before, k.not_after)
                              is distinct from row(j.public_key, j.not_before, j.not_after) as changed
                  from locked_exchanges j
                  join signing_keys k on k.tenant_id = j.tenant_id and k.approver_id = j.approver_id
                                     and k.signer_key_id = j.signer_key_id
                 where j.public_key is not null
                   for share of k skip locked
            ),
            valid_decisions as materialized (
                select j.tenant_id, j.request_id, j.operation_id, j.approver_id, j.decision, j.signer_key_id, j.nonce,
                       j.signature, j.message_id, j.counted, j.public_key is not null as verified,
                       case when j.public_key is not null then 'registered'
                            when j.unregistered then 'none'
                            else 'off' end as verification,
                       j.seq + 1 as seq, j.at, j.items
                  from locked_exchanges j
                 where j.guarded and j.asked and j.state = 'pendingApproval' and j.expires_at > j.at
                   and j.hash_matches and j.repo_matches
                   -- In a case, here and below, `in` looks up a hash. Elsewhere it is a join, and the planner, which expects
                   -- one row, would compare each with each.
                   and case when j.public_key is not null
                            then j.operation_id in (select k.operation_id from locked_keys k where not k.changed)
                            when j.unregistered then j.no_key
                            else true end
            ),
            locked_items as materialized (
                select v.operation_id
                  from inbox_items x
                  join valid_decisions v on v.tenant_id = x.tenant_id and v.request_id = x.request_id
                   for no key update of x skip locked
            ),
            writable_decisions as materialized (
                select v.*
                  from valid_decisions v
                 where case when (v.operation_id, v.items)
                                 in (select l.operation_id, count(*) from locked_items l group by l.operation_id)
                            then true end
            ),
            inserted_nonces as (
                insert into decision_nonces (tenant_id, approver_id, signer_key_id, nonce, used_at)
                select p.tenant_id, p.approver_id, p.signer_key_id, p.counted, p.at
                  from writable_decisions p
                 where p.counted is not null
                 order by p.tenant_id collate "C", p.approver_id collate "C", p.signer_key_id collate "C",
                          p.counted collate "C"
                on conflict on constraint decision_nonces_pkey do nothing
                returning tenant_id, approver_id, signer_key_id, nonce
            ),
            decided_exchanges as (
                update exchanges e
                   set state = 'decided', operation_id = p.operation_id, seq = p.seq, decision = p.decision,
                       decided_by = p.approver_id, signer_key_id = p.signer_key_id, nonce = p.nonce,
                       signature = p.signature, verified = p.verified, verification = p.verification,
                       decision_message_id = p.message_id, decided_at = p.at
                  from writable_decisions p
                 where e.tenant_id = p.tenant_id and e.request_id = p.request_id and e.state = 'pendingApproval'
                   and case when p.counted is null then true
                            else (p.tenant_id, p.approver_id, p.signer_key_id, p.counted)
                                 in (select n.tenant_id, n.approver_id, n.signer_key_id, n.nonce from inserted_nonces n) end
                returning e.tenant_id, e.request_id, e.operation_id, e.seq, e.enforcer_id, e.decided_by,
                          e.decision_message_id, e.decided_at
            ),
            inserted_payloads as (
                insert into exchange_payloads (tenant_id, request_id, part, body, trace)
                select w.tenant_id, w.request_id, 'decision', ($23::text[])[i.n]::json, i.trace::json
                  from decided_exchanges w
                  join input i on i.operation_id = w.operation_id
            ),
            closed_items as (
                update inbox_items x
                   set closed_at = w.decided_at, closed_as = 'decided'
                  from decided_exchanges w
                 where x.tenant_id = w.tenant_id and x.request_id = w.request_id
            ),
            inserted_messages as (
                insert into messages (tenant_id, recipient_kind, recipient, message_id, kind, request_id, seq, sender,
                                      created_at)
                select w.tenant_id, 'enforcer', w.enforcer_id, w.decision_message_id, 'decision.deliver', w.request_id,
                       w.seq, w.decided_by, w.decided_at
                  from decided_exchanges w
            ),
            inserted_events as (
                insert into exchange_events (tenant_id, request_id, at, event_id, from_state, to_state, actor, principal,
                                             address, node)
                select w.tenant_id, w.request_id, w.decided_at, w.operation_id, 'pendingApproval', 'decided',
                       'approver:' || w.decided_by, i.principal, i.address, i.node
                  from decided_exchanges w
                  join input i on i.operation_id = w.operation_id
            )
            select i.operation_id as "operation!: OperationId",
                   case when j.operation_id is null
                        then (select true from exchanges e
                               where e.tenant_id = i.tenant_id and e.request_id = i.request_id limit 1) is not null
                        when w.operation_id is not null or p.operation_id is not null or j.state <> 'pendingApproval'
                        then false
                        when v.operation_id is not null or not j.guarded then true
                        when j.unregistered then j.no_key is null
                        when j.public_key is not null and k.operation_id is null
                        then (select true from signing_keys y
                               where y.tenant_id = j.tenant_id and y.approver_id = j.approver_id
                                 and y.signer_key_id = j.signer_key_id) is not null
                        else false end as "busy!",
                   w.operation_id is not null as "written!",
                   coalesce(j.last_operation = j.operation_id, false) as "own!",
                   j.state as "state?: ExchangeState",
                   j.enforcer_id as "enforcer?: EnforcerId",
                   j.expires_at as "expires_at?: Timestamp",
                   coalesce(j.expires_at <= j.at, false) as "past!",
                   coalesce(j.asked, false) as "asked!",
                   coalesce(j.same, false) as "same!",
                   coalesce(j.hash_matches, false) as "hash_matches!",
                   coalesce(j.repo_matches, false) as "repo_matches!",
                   coalesce(k.changed, false) as "key_changed!",
                   p.operation_id is not null and w.operation_id is null as "nonce_used!",
                   j.verified as "verified?",
                   case when w.operation_id is not null then extract(epoch from j.at - j.accepted_at)::float8 end
                       as "waited?",
                   o.traceparent as "traceparent?", o.tracestate as "tracestate?", w.decided_at as "decided_at?: Timestamp",
                   p.verification as "verification?: Verification",
                   -- Only a request to refresh can be an earlier message of the exchange, and it counts the exchange on.
                   coalesce(j.seq = 1, false) as "goes_first!"
              from input i
              left join locked_exchanges j on j.operation_id = i.operation_id
              left join locked_keys k on k.operation_id = i.operation_id
              left join valid_decisions v on v.operation_id = i.operation_id
              left join writable_decisions p on p.operation_id = i.operation_id
              left join decided_exchanges w on w.operation_id = i.operation_id
              left join lateral (select y.trace ->> 'traceparent' as traceparent, y.trace ->> 'tracestate' as tracestate
                                   from exchange_payloads y
                                  where (j.traced or w.operation_id is not null) and y.tenant_id = j.tenant_id
                                    and y.request_id = j.request_id and y.part = 'artifact'
                                  limit 1) o on true
            "#,
            clock_offset(&self.clock),
            self.node.as_str(),
            self.traced,
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
            column(rows, |row| row.decision.trace.as_deref()) as _,
            column(rows, |row| row.message) as _,
            column(&keys, |key| key.map(|key| key.public_key)) as _,
            column(&keys, |key| key.and_then(|key| key.not_before)) as _,
            column(&keys, |key| key.and_then(|key| key.not_after)) as _,
            &column(rows, |row| row.trust == SignatureTrust::Unregistered),
            column(rows, |row| row.counted.as_deref()) as _,
            column(rows, |row| row.source.principal.as_deref()) as _,
            column(rows, |row| row.source.address()) as _,
            column(rows, |row| &row.decision.body) as _,
        )
        .fetch_all(connection)
        .await?;
        let sent = rows.iter().map(|row| (row.operation, row));
        let sent: HashMap<_, _> = sent.collect();
        let outcomes = found.into_iter().map(|row| {
            if row.busy {
                return (row.operation, RowLock::Busy);
            }
            let (parent, state) = (row.traceparent.as_deref(), row.tracestate.as_deref());
            let written = row.decided_at.filter(|_| row.goes_first);
            let written = written.zip(row.verification).zip(sent.get(&row.operation));
            let delivery = written.map(|((decided_at, verification), sent)| DecisionDelivery {
                message_id: sent.message,
                decided_at,
                decided_by: sent.approver.clone(),
                verification,
                body: sent.decision.body.clone(),
                trace: rows::carrying(sent.decision.trace.clone(), parent, state),
            });
            let fact = DecisionFact {
                written: row.written,
                own: row.own,
                state: row.state.map(|state| state.at(row.past)),
                asked: row.asked,
                same: row.same,
                hash_matches: row.hash_matches,
                repo_matches: row.repo_matches,
                key_changed: row.key_changed,
                nonce_used: row.nonce_used,
                verified: row.verified,
            };
            let outcome = DecisionOutcome {
                fact,
                enforcer: row.enforcer,
                expires_at: row.expires_at,
                waited: row.waited,
                origin: rows::context(parent, None).filter(|_| self.traced),
                delivery,
            };
            (row.operation, RowLock::Locked(outcome))
        });
        rows::in_order(rows.iter().map(|row| row.operation), outcomes)
    }
}
