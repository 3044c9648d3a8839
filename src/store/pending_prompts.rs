//! Reads the prompts that wait for an enforcer, without claiming them.

use super::error::Result;
use super::prompt_status::PromptStore;
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, RequestId, SessionId, TenantId};
use crate::protocol::message::PromptDelivery;
use crate::protocol::timestamp::Timestamp;
use crate::store::clock_offset::clock_offset;

impl PromptStore {
    /// The oldest prompts of an enforcer that are not acknowledged: up to `limit`, and up to `max_bytes` unless the first has
    /// more. With a session, those of other sessions are left out.
    pub async fn pending_prompts(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        session: Option<&SessionId>,
        limit: i64,
        max_bytes: i64,
    ) -> Result<Vec<PromptDelivery>> {
        let query = sqlx::query_as!(
            PromptDelivery,
            r#"
            with page as materialized (
                select m.tenant_id, m.message_id, m.request_id, m.created_at, m.expires_at, m.sender
                  from messages m
                  join prompts p on p.tenant_id = m.tenant_id and p.request_id = m.request_id
                 where m.tenant_id = $1 and m.recipient_kind = 'enforcer' and m.recipient = $2
                   and m.kind = 'prompt.send' and m.acked_at is null
                   and (m.expires_at is null or m.expires_at > clock_timestamp() + $3::interval)
                   and ($4::text is null or p.session_id is null or p.session_id = $4)
                 order by m.created_at, m.message_id
                 limit $5
            ),
            weighed as (
                select g.tenant_id, g.message_id, g.request_id, g.created_at, g.expires_at, g.sender,
                       coalesce(sum(pg_column_size(y.body) + coalesce(pg_column_size(y.trace), 0))
                           over (order by g.created_at, g.message_id
                                  rows between unbounded preceding and 1 preceding), 0) as before
                  from page g
                  join prompt_payloads y on y.tenant_id = g.tenant_id and y.request_id = g.request_id
            )
            select w.message_id as "message_id!: MessageId", w.request_id as "request_id!: RequestId",
                   w.created_at as "created_at!: Timestamp", w.expires_at as "expires_at: Timestamp",
                   w.sender as "approver_id: ApproverId", y.body::text as "body!", y.trace::text as "trace?"
              from weighed w
              join prompt_payloads y on y.tenant_id = w.tenant_id and y.request_id = w.request_id
             where w.before < $6
             order by w.created_at, w.message_id
            "#,
            tenant.as_str(),
            enforcer.as_str(),
            clock_offset(&self.database.clock),
            session.map(SessionId::as_str),
            limit,
            max_bytes,
        );
        self.database.pool.fetch_all(tenant, query).await
    }
}
