//! The targets at which approvers are notified: adds, lists and removes them. `notification_delivery` decides what is sent and when.

use std::sync::Arc;

use uuid::Uuid;

use crate::protocol::id::{ApproverId, TenantId};
use crate::protocol::notification::{MAX_NOTIFICATIONS, NotificationKind};
use crate::protocol::timestamp::Timestamp;
use crate::store::audit::AuditActor;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::pools::Database;
use crate::store::error::Result;

pub struct NotificationStore {
    pub(in crate::store) database: Arc<Database>,
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
        let query = sqlx::query!(
            r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as approver_id,
                       $3::uuid as notification_id, $4::text as kind,
                       $5::text as device_id, $6::bytea as url_hash, $7::bytea as target,
                       $8::bytea as secret_check, $9::boolean as keep,
                       $10::bigint as most, $11::text as host,
                       $12::interval as clock_offset,
                       $13::text::json as origin
            ),
            device as materialized (
                select k.signer_key_id
                  from signing_keys k
                  join input i on i.tenant_id = k.tenant_id and i.approver_id = k.approver_id and i.device_id = k.signer_key_id
                 where k.revoked_at is null
                   and exists (select from device_statements s
                                where s.tenant_id = k.tenant_id and s.approver_id = k.approver_id
                                  and s.device_id = k.signer_key_id and s.change = 'add')
                   for share of k
            ),
            standing_notification as materialized (
                select n.notification_id, i.keep and n.secret_check = i.secret_check as kept
                  from notifications n
                  join input i on i.tenant_id = n.tenant_id and i.approver_id = n.approver_id and i.url_hash = n.url_hash
            ),
            state as materialized (
                select exists (select from tenants t where t.tenant_id = i.tenant_id and t.disabled_at is null) as tenant,
                       i.device_id is null or exists (select from device) as device,
                       (select count(*) from notifications n
                         where n.tenant_id = i.tenant_id and n.approver_id = i.approver_id and n.url_hash <> i.url_hash
                           and n.device_id is distinct from coalesce(i.device_id, '')) < i.most as room,
                       clock_timestamp() + i.clock_offset as now
                  from input i
            ),
            deleted_notifications as (
                delete from notifications n using input i, state s
                 where s.tenant and s.device and s.room and n.tenant_id = i.tenant_id and n.approver_id = i.approver_id
                   and n.device_id = i.device_id and n.url_hash <> i.url_hash
            ),
            written_notification as (
                insert into notifications as n (tenant_id, approver_id, notification_id, kind, device_id, url_hash, target,
                                                secret_check, created_at, seen_until, next_attempt_at)
                select i.tenant_id, i.approver_id, i.notification_id, i.kind, i.device_id, i.url_hash, i.target,
                       i.secret_check, s.now, s.now, s.now
                  from input i
                 cross join state s
                 where s.tenant and s.device and s.room
                on conflict on constraint notifications_url_key do update
                   set kind = excluded.kind, device_id = excluded.device_id, secret_check = excluded.secret_check,
                       target = case when (select i.keep from input i) and n.secret_check = excluded.secret_check then n.target
                                     else excluded.target end,
                       attempts = 0, next_attempt_at = excluded.next_attempt_at, failing_since = null, failure = null,
                       disabled_at = null
                returning notification_id
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from written_notification w
                 cross join input i
                 cross join state s
                 cross join (select exists (select from standing_notification) as stood) t
                 cross join audit_event(i.origin, i.tenant_id, s.now,
                                        case when t.stood then 'notification.renewed' else 'notification.added' end,
                                        i.approver_id || '/' || w.notification_id, concat_ws(' ', i.kind, 'at', i.host)) a
            )
            select s.tenant as "tenant!", s.device as "device!",
                   (select w.notification_id from written_notification w) as "written?",
                   exists (select from standing_notification) as "stood!",
                   coalesce((select t.kept from standing_notification t), false) as "kept!"
              from state s
            "#,
            tenant.as_str(),
            approver.as_str(),
            self.database.clock.operation_id().0,
            new.kind.as_str(),
            new.device,
            new.url_hash.as_slice(),
            new.target,
            new.secret_check.as_slice(),
            new.keep,
            i64::try_from(MAX_NOTIFICATIONS).unwrap_or(i64::MAX),
            new.host,
            clock_offset(&self.database.clock),
            self.database.audit_origin(actor),
        );
        let found = self
            .database
            .pool
            .fetch_one_in_turn(tenant, approver, query);
        let found = found.await?;
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
            with removed_notification as (
                delete from notifications n
                 where n.tenant_id = $1 and n.approver_id = $2 and n.notification_id = $3
                returning n.tenant_id, n.approver_id, n.notification_id, n.kind
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from removed_notification r
                 cross join audit_event($4::text::json, r.tenant_id,
                                        clock_timestamp() + $5::interval,
                                        'notification.removed', r.approver_id || '/' || r.notification_id,
                                        concat_ws(': ', r.kind, $6::text)) a
            )
            select exists (select from removed_notification) as "removed!"
            "#,
            tenant.as_str(),
            approver.as_str(),
            id,
            self.database.audit_origin(actor),
            clock_offset(&self.database.clock),
            why,
        )
        .map(|row| row.removed);
        self.database.pool.fetch_one(tenant, query).await
    }
}
