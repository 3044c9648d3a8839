//! Ends pending exchanges without a decision: withdrawn, cancelled or expired.

use sqlx::PgConnection;
use uuid::Uuid;

use super::ExchangeStore;
use super::audit::AuditSource;
use super::error::{Result, RetryOnce};
use super::rows::column;
use super::tenant_scope::TenantScope;
use crate::protocol::exchange::{EndFact, ExchangeState};
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, OperationId, RequestId, TenantId};
use crate::protocol::timestamp::Timestamp;

#[derive(Debug, Clone)]
pub enum Ending {
    Withdrawn(EnforcerId),
    /// An administrator ends it; the credential is named in the history.
    Cancelled(String),
}

#[derive(Debug)]
pub struct EndRow<'a> {
    pub operation: OperationId,
    pub tenant: &'a TenantId,
    pub request_id: &'a RequestId,
    pub ending: &'a Ending,
    pub source: &'a AuditSource,
    pub reason: Option<&'a str>,
    pub messages: &'a [(ApproverId, MessageId)],
}

#[derive(Debug)]
pub struct ExpiredExchange {
    pub tenant: TenantId,
    pub request_id: RequestId,
    /// How many seconds ago it was due.
    pub late: f64,
}

impl ExchangeStore {
    /// The approvers of an exchange, which never change once it exists.
    pub async fn approvers_of(
        &self,
        tenant: &TenantId,
        request: &RequestId,
    ) -> Result<Vec<ApproverId>> {
        let query = sqlx::query!(
            r#"
            select approver_id as "id: ApproverId"
              from inbox_items
             where tenant_id = $1 and request_id = $2
             order by approver_id
            "#,
            tenant.as_str(),
            request.as_str(),
        )
        .map(|row| row.id);
        self.database.pool.fetch_all(tenant, query).await
    }

    /// Ends an exchange if it is pending, and queues a message for each approver that still has it.
    pub async fn end(&self, row: &EndRow<'_>) -> Result<EndFact> {
        let mut retry = RetryOnce::default();
        loop {
            let mut lease = self.database.pool.lease(row.tenant).await?;
            let fact = self.end_on(lease.connection()?, row).await;
            match lease.settle(fact) {
                Err(error) if retry.allows(&error) => {
                    tracing::debug!(%error, "ending an exchange is retried");
                }
                fact => return Ok(fact?),
            }
        }
    }

    async fn end_on(
        &self,
        connection: &mut PgConnection,
        row: &EndRow<'_>,
    ) -> sqlx::Result<EndFact> {
        let (state, enforcer, actor) = match row.ending {
            Ending::Withdrawn(id) => ("withdrawn", Some(id.as_str()), format!("enforcer:{id}")),
            Ending::Cancelled(credential) => ("cancelled", None, format!("admin:{credential}")),
        };
        let found = sqlx::query!(
            r#"
            with locked as materialized (
                select e.tenant_id, e.request_id, e.operation_id, e.state, e.seq, e.expires_at, e.ended_at
                  from exchanges e
                 where e.tenant_id = $1 and e.request_id = $2 and ($3::text is null or e.enforcer_id = $3)
                   for no key update of e
            ),
            judged as materialized (
                select l.tenant_id, l.request_id, l.state, l.seq, l.expires_at, clock_timestamp() + $4::interval as at
                  from locked l
            ),
            won as (
                update exchanges e
                   set state = $5, operation_id = $6, seq = j.seq + 1, ended_at = j.at, end_reason = $7
                  from judged j
                 where e.tenant_id = j.tenant_id and e.request_id = j.request_id
                   and e.state = 'pendingApproval' and j.state = 'pendingApproval' and j.expires_at > j.at
                returning e.tenant_id, e.request_id, e.seq, e.ended_at as at
            ),
            items as materialized (
                select x.tenant_id, x.request_id, x.approver_id, x.removed_at, w.at, w.seq
                  from inbox_items x
                  join won w on w.tenant_id = x.tenant_id and w.request_id = x.request_id
                 order by x.tenant_id, x.request_id, x.approver_id
                   for no key update of x
            ),
            closed as (
                update inbox_items x
                   set closed_at = i.at, closed_as = $5
                  from items i
                 where x.tenant_id = i.tenant_id and x.request_id = i.request_id and x.approver_id = i.approver_id
            ),
            queued as (
                insert into messages (tenant_id, recipient_kind, recipient, message_id, kind, request_id, seq, created_at)
                select i.tenant_id, 'approver', i.approver_id, m.message_id, 'exchange.withdrawn', i.request_id, i.seq, i.at
                  from items i
                  join unnest($8::text[], $9::uuid[]) as m (approver_id, message_id) on m.approver_id = i.approver_id
                 where i.removed_at is null
            ),
            history as (
                insert into exchange_events (tenant_id, request_id, at, event_id, from_state, to_state, actor, node)
                select w.tenant_id, w.request_id, w.at, $6, 'pendingApproval', $5, $10, $11
                  from won w
            ),
            audited as (
                insert into audit_events (tenant_id, at, event_id, actor, principal, action, subject, address, node)
                select w.tenant_id, w.at, $6, $10, $12, 'exchange.cancelled', w.request_id, $13, $11
                  from won w
                 where $5 = 'cancelled'
            )
            select l.state as "state!: ExchangeState", l.expires_at as "expires_at!: Timestamp", j.expires_at <= j.at as "past!",
                   case when l.operation_id = $6 then l.ended_at else w.at end as "ended_at?: Timestamp"
              from locked l
              join judged j on j.tenant_id = l.tenant_id and j.request_id = l.request_id
              left join won w on w.tenant_id = l.tenant_id and w.request_id = l.request_id
            "#,
            row.tenant.as_str(),
            row.request_id.as_str(),
            enforcer,
            self.database.clock.offset(),
            state,
            row.operation.0,
            row.reason,
            column(row.messages, |(approver, _)| approver) as _,
            column(row.messages, |(_, message)| message) as _,
            actor,
            self.database.node.as_str(),
            row.source.principal.as_deref(),
            row.source.address(),
        )
        .fetch_optional(connection)
        .await?;
        Ok(match found {
            None => EndFact {
                ended_at: None,
                state: None,
                expires_at: None,
            },
            Some(row) => EndFact {
                ended_at: row.ended_at,
                state: Some(row.state.at(row.past)),
                expires_at: Some(row.expires_at),
            },
        })
    }

    /// Moves pending exchanges past their expiry to `expired`, at most `limit` of them.
    pub async fn expire(&self, limit: i64) -> Result<Vec<ExpiredExchange>> {
        // One id for each row there may be: ids come from the node, which does not know how many are due.
        let capacity = usize::try_from(limit).unwrap_or_default();
        let events: Vec<Uuid> = (0..capacity)
            .map(|_| self.database.clock.operation_id().0)
            .collect();
        let query = sqlx::query_as!(
            ExpiredExchange,
            r#"
            -- By their inbox items, which are open as long as they are pending.
            with found as materialized (
                select distinct i.expires_at, i.tenant_id, i.request_id
                  from inbox_items i
                 where coalesce(i.closed_at, 'infinity') = 'infinity'
                   and i.expires_at <= (select clock_timestamp() + $1::interval)
                 order by i.expires_at, i.tenant_id, i.request_id
                 limit $2
            ),
            due as materialized (
                select d.tenant_id, d.request_id
                  from unnest(array(select tenant_id from found), array(select request_id from found))
                       as d (tenant_id, request_id)
            ),
            locked as materialized (
                select e.tenant_id, e.request_id, e.state, e.expires_at
                  from exchanges e
                  join due d on d.tenant_id = e.tenant_id and d.request_id = e.request_id
                 order by e.tenant_id, e.request_id
                   for no key update of e skip locked
            ),
            numbered as materialized (
                select l.tenant_id, l.request_id, l.expires_at, row_number() over () as n
                  from locked l
                 where l.state = 'pendingApproval'
            ),
            won as (
                update exchanges e
                   set state = 'expired', seq = e.seq + 1, ended_at = e.expires_at, operation_id = v.event_id
                  from numbered l
                  join unnest($3::uuid[]) with ordinality as v (event_id, n) on v.n = l.n
                 where e.tenant_id = l.tenant_id and e.request_id = l.request_id and e.state = 'pendingApproval'
                returning e.tenant_id, e.request_id, e.expires_at as at, e.operation_id
            ),
            items as materialized (
                select x.tenant_id, x.request_id, x.approver_id, w.at
                  from inbox_items x
                  join won w on w.tenant_id = x.tenant_id and w.request_id = x.request_id
                 order by x.tenant_id, x.request_id, x.approver_id
                   for no key update of x
            ),
            closed as (
                update inbox_items x
                   set closed_at = i.at, closed_as = 'expired'
                  from items i
                 where x.tenant_id = i.tenant_id and x.request_id = i.request_id and x.approver_id = i.approver_id
            ),
            history as (
                insert into exchange_events (tenant_id, request_id, at, event_id, from_state, to_state, actor, node)
                select w.tenant_id, w.request_id, w.at, w.operation_id, 'pendingApproval', 'expired', 'gateway', $4
                  from won w
            )
            select w.tenant_id as "tenant!: TenantId", w.request_id as "request_id!: RequestId",
                   extract(epoch from clock_timestamp() + $1::interval - w.at)::float8 as "late!"
              from won w
            "#,
            self.database.clock.offset(),
            limit,
            &events,
            self.database.node.as_str(),
        );
        // All: the sweep serves every tenant.
        let scope = TenantScope::All;
        self.database.background.fetch_all(scope, query).await
    }
}
