//! Where approvers are notified: added, listed and removed. What is sent, and when, is in `notification_delivery`.

use std::sync::Arc;

use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::audit::AuditActor;
use super::database::Database;
use super::device::lock_keys;
use super::error::Result;
use crate::protocol::id::{ApproverId, TenantId};
use crate::protocol::notification::{MAX_NOTIFICATIONS, NotificationKind};
use crate::protocol::timestamp::Timestamp;
use crate::store::clock_offset::clock_offset;

pub struct NotificationStore {
    pub(super) database: Arc<Database>,
}

#[derive(Debug)]
pub struct NewTarget<'a> {
    pub kind: NotificationKind,
    pub device: Option<&'a str>,
    pub url_hash: [u8; 32],
    pub target: &'a [u8],
    pub secret_check: [u8; 32],
    /// Whether what the same URL has been added with stays, if it still opens.
    pub keep: bool,
    /// For the audit.
    pub host: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddFact {
    Added(Uuid),
    /// It was there. `kept`: with what it had been added with.
    Renewed {
        id: Uuid,
        kept: bool,
    },
    NoTenant,
    NoDevice,
    TooMany,
}

#[derive(Debug)]
pub struct NotificationRow {
    pub id: Uuid,
    pub kind: NotificationKind,
    pub device: Option<String>,
    pub url_hash: Vec<u8>,
    pub target: Vec<u8>,
    pub secret_check: Vec<u8>,
    pub created_at: Timestamp,
    pub delivered_at: Option<Timestamp>,
    pub failing_since: Option<Timestamp>,
    pub failure: Option<String>,
    pub disabled_at: Option<Timestamp>,
}

impl NotificationStore {
    /// All notifications of an approver; one of them, if `id` names one.
    pub async fn notifications(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        id: Option<Uuid>,
    ) -> Result<Vec<NotificationRow>> {
        let query = sqlx::query_as!(
            NotificationRow,
            r#"
            select n.notification_id as id, n.kind as "kind: NotificationKind", n.device_id as device, n.url_hash, n.target,
                   n.secret_check, n.created_at as "created_at: Timestamp", n.delivered_at as "delivered_at: Timestamp",
                   n.failing_since as "failing_since: Timestamp", n.failure, n.disabled_at as "disabled_at: Timestamp"
              from notifications n
             where n.tenant_id = $1 and n.approver_id = $2 and n.notification_id = coalesce($3, n.notification_id)
             order by n.created_at, n.notification_id
            "#,
            tenant.as_str(),
            approver.as_str(),
            id,
        );
        self.database.pool.fetch_all(tenant, query).await
    }

    /// Adds a target, or enables it again. A browser has one: what it had before goes.
    pub async fn add_notification(
        &self,
        actor: &AuditActor,
        tenant: &TenantId,
        approver: &ApproverId,
        new: &NewTarget<'_>,
    ) -> Result<AddFact> {
        let mut lease = self.database.pool.lease(tenant).await?;
        let outcome = self.add(lease.connection()?, actor, (tenant, approver), new);
        let outcome = self.database.pool.within(outcome).await;
        Ok(lease.settle_transaction(outcome)?)
    }

    async fn add(
        &self,
        connection: &mut PgConnection,
        actor: &AuditActor,
        (tenant, approver): (&TenantId, &ApproverId),
        new: &NewTarget<'_>,
    ) -> sqlx::Result<AddFact> {
        let mut transaction = connection.begin().await?;
        // One at a time, so that they can be counted.
        lock_keys(&mut transaction, tenant, approver).await?;
        let found = sqlx::query!(
            r#"
            with device as materialized (
                select k.signer_key_id
                  from signing_keys k
                 where k.tenant_id = $1 and k.approver_id = $2 and k.signer_key_id = $3 and k.revoked_at is null
                   and exists (select from device_statements s
                                where s.tenant_id = $1 and s.approver_id = $2 and s.device_id = $3 and s.change = 'add')
                   for share of k
            ),
            standing as materialized (
                select n.notification_id, $4 and n.secret_check = $5 as kept
                  from notifications n
                 where n.tenant_id = $1 and n.approver_id = $2 and n.url_hash = $6
            ),
            state as materialized (
                select exists (select from tenants t where t.tenant_id = $1 and t.disabled_at is null) as tenant,
                       $3::text is null or exists (select from device) as device,
                       (select count(*) from notifications n
                         where n.tenant_id = $1 and n.approver_id = $2 and n.url_hash <> $6
                           and n.device_id is distinct from coalesce($3, '')) < $7 as room,
                       clock_timestamp() + $8::interval as now
            ),
            replaced as (
                delete from notifications n using state s
                 where s.tenant and s.device and s.room and n.tenant_id = $1 and n.approver_id = $2 and n.device_id = $3
                   and n.url_hash <> $6
            ),
            written as (
                insert into notifications as n (tenant_id, approver_id, notification_id, kind, device_id, url_hash, target,
                                                secret_check, created_at, seen_until, next_attempt_at)
                select $1, $2, $9, $10, $3, $6, $11, $5, s.now, s.now, s.now
                  from state s
                 where s.tenant and s.device and s.room
                on conflict on constraint notifications_url_key do update
                   set kind = excluded.kind, device_id = excluded.device_id, secret_check = excluded.secret_check,
                       target = case when $4 and n.secret_check = excluded.secret_check then n.target
                                     else excluded.target end,
                       attempts = 0, next_attempt_at = excluded.next_attempt_at, failing_since = null, failure = null,
                       disabled_at = null
                returning notification_id
            ),
            audited as (
                insert into audit_events (tenant_id, at, event_id, actor, principal, action, subject, detail, address, node)
                select $1, s.now, $12, $13, $14,
                       case when exists (select from standing) then 'notification.renewed' else 'notification.added' end,
                       $2 || '/' || w.notification_id, concat_ws(' ', $10, 'at', $15::text), $16, $17
                  from written w
                 cross join state s
            )
            select s.tenant as "tenant!", s.device as "device!",
                   (select w.notification_id from written w) as "written?",
                   exists (select from standing) as "stood!",
                   coalesce((select t.kept from standing t), false) as "kept!"
              from state s
            "#,
            tenant.as_str(),
            approver.as_str(),
            new.device,
            new.keep,
            new.secret_check.as_slice(),
            new.url_hash.as_slice(),
            i64::try_from(MAX_NOTIFICATIONS).unwrap_or(i64::MAX),
            clock_offset(&self.database.clock),
            self.database.clock.operation_id().0,
            new.kind.as_str(),
            new.target,
            self.database.clock.operation_id().0,
            actor.name,
            actor.source.principal.as_deref(),
            new.host,
            actor.source.address(),
            self.database.node.as_str(),
        )
        .fetch_one(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(match found.written {
            Some(id) if found.stood => AddFact::Renewed {
                id,
                kept: found.kept,
            },
            Some(id) => AddFact::Added(id),
            None if !found.tenant => AddFact::NoTenant,
            None if !found.device => AddFact::NoDevice,
            None => AddFact::TooMany,
        })
    }

    /// Removes a target; false if there is none.
    pub async fn remove_notification(
        &self,
        actor: &AuditActor,
        tenant: &TenantId,
        approver: &ApproverId,
        id: Uuid,
        why: Option<&str>,
    ) -> Result<bool> {
        let query = sqlx::query!(
            r#"
            with removed as (
                delete from notifications n
                 where n.tenant_id = $1 and n.approver_id = $2 and n.notification_id = $3
                returning n.kind
            ),
            audited as (
                insert into audit_events (tenant_id, at, event_id, actor, principal, action, subject, detail, address, node)
                select $1, clock_timestamp() + $4::interval, $5, $6, $7, 'notification.removed', $2 || '/' || $3::uuid,
                       concat_ws(': ', r.kind, $8::text), $9, $10
                  from removed r
            )
            select exists (select from removed) as "removed!"
            "#,
            tenant.as_str(),
            approver.as_str(),
            id,
            clock_offset(&self.database.clock),
            self.database.clock.operation_id().0,
            actor.name,
            actor.source.principal.as_deref(),
            why,
            actor.source.address(),
            self.database.node.as_str(),
        )
        .map(|row| row.removed);
        self.database.pool.fetch_one(tenant, query).await
    }
}
