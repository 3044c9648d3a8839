//! Queues requests to submit again, at most one unacknowledged per exchange. No statement waits for a lock.

use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, RequestId, TenantId};
use crate::protocol::message::RefreshRequest;
use crate::protocol::timestamp::Timestamp;
use crate::store::ExchangeStore;
use crate::store::database::busy::{LockTries, RowLock};
use crate::store::database::clock_offset::clock_offset;
use crate::store::error::Result;

pub enum RefreshFact {
    Queued(RefreshRequest),
    Missing,
    Conflict(ExchangeState),
    /// One is queued already; `waiting_refresh` reads it.
    Waiting,
}

impl ExchangeStore {
    /// Queues a refresh, asked for by an approver who was asked, or by an administrator (`None`).
    pub async fn queue_refresh(
        &self,
        tenant: &TenantId,
        request: &RequestId,
        approver: Option<&ApproverId>,
        message: MessageId,
        reason: Option<&str>,
    ) -> Result<RefreshFact> {
        let (database, mut tries) = (&self.database, LockTries::new(self.database.lock_timeout));
        loop {
            let found = self.try_refresh(tenant, request, approver, message, reason);
            let found = found.await?;
            let again = database.is_tried_again("refresh", &found, &mut tries);
            if !again.await {
                return found.locked();
            }
        }
    }

    async fn try_refresh(
        &self,
        tenant: &TenantId,
        request: &RequestId,
        approver: Option<&ApproverId>,
        message: MessageId,
        reason: Option<&str>,
    ) -> Result<RowLock<RefreshFact>> {
        let body = reason.map(|reason| serde_json::json!({ "reason": reason }).to_string());
        let query = sqlx::query!(
            r#"
            with known as (
                select e.tenant_id, e.request_id
                  from exchanges e
                 where e.tenant_id = $1 and e.request_id = $2
                   and ($3::text is null
                        or exists (select from inbox_items x
                                    where x.tenant_id = e.tenant_id and x.request_id = e.request_id
                                      and x.approver_id = $3))
            ),
            locked as materialized (
                select e.tenant_id, e.request_id, e.state, e.seq, e.enforcer_id, e.expires_at
                  from exchanges e
                  join known k on k.tenant_id = e.tenant_id and k.request_id = e.request_id
                   for no key update of e skip locked
            ),
            judged as materialized (
                select l.tenant_id, l.request_id, l.state, l.seq, l.enforcer_id, l.expires_at,
                       clock_timestamp() + $4::interval as at
                  from locked l
            ),
            queued as (
                insert into messages (tenant_id, recipient_kind, recipient, message_id, kind, request_id, seq, sender, body,
                                      created_at)
                select j.tenant_id, 'enforcer', j.enforcer_id, $5, 'refresh.request', j.request_id, j.seq + 1, $3,
                       $6::text::json, j.at
                  from judged j
                 where j.state in ('pendingApproval', 'expired')
                on conflict (tenant_id, request_id) where kind = 'refresh.request' and acked_at is null do nothing
                returning tenant_id, request_id, created_at
            ),
            bumped as (
                update exchanges e
                   set seq = e.seq + 1
                  from queued q
                 where e.tenant_id = q.tenant_id and e.request_id = q.request_id
            )
            select j.state as "state?: ExchangeState", coalesce(j.expires_at <= j.at, false) as "past!",
                   j.enforcer_id as "enforcer_id?: EnforcerId", q.created_at as "created_at?: Timestamp"
              from known k
              left join judged j on j.tenant_id = k.tenant_id and j.request_id = k.request_id
              left join queued q on q.tenant_id = k.tenant_id and q.request_id = k.request_id
            "#,
            tenant.as_str(),
            request.as_str(),
            approver.map(ApproverId::as_str),
            clock_offset(&self.database.clock),
            message.0,
            body,
        );
        let Some(row) = self.database.pool.fetch_optional(tenant, query).await? else {
            return Ok(RowLock::Locked(RefreshFact::Missing));
        };
        let (Some(state), Some(enforcer_id)) = (row.state, row.enforcer_id) else {
            return Ok(RowLock::Busy);
        };
        Ok(RowLock::Locked(
            match (row.created_at, state.at(row.past)) {
                (Some(created_at), _) => RefreshFact::Queued(RefreshRequest {
                    message_id: message,
                    request_id: request.clone(),
                    created_at,
                    enforcer_id,
                    approver_id: approver.cloned(),
                    reason: reason.map(str::to_owned),
                }),
                (None, ExchangeState::PendingApproval | ExchangeState::Expired) => {
                    RefreshFact::Waiting
                }
                (None, state) => RefreshFact::Conflict(state),
            },
        ))
    }

    pub async fn waiting_refresh(
        &self,
        tenant: &TenantId,
        request: &RequestId,
    ) -> Result<Option<RefreshRequest>> {
        let query = sqlx::query_as!(
            RefreshRequest,
            r#"
            select message_id as "message_id: MessageId", request_id as "request_id: RequestId",
                   created_at as "created_at: Timestamp", recipient as "enforcer_id: EnforcerId",
                   sender as "approver_id: ApproverId", body ->> 'reason' as reason
              from messages
             where tenant_id = $1 and request_id = $2 and kind = 'refresh.request' and acked_at is null
            "#,
            tenant.as_str(),
            request.as_str(),
        );
        self.database.pool.fetch_optional(tenant, query).await
    }
}
