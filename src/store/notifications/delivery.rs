//! The approvers that are to be notified, and the results. A claim is a lease on a target: its holder sends, and then notes what the
//! target has seen. If the node dies between, the target is claimed again, so that nothing is lost and something may be
//! sent twice.

use time::OffsetDateTime;
use uuid::Uuid;

use crate::protocol::id::{ApproverId, TenantId};
use crate::protocol::notification::NotificationKind;
use crate::store::audit::AuditActor;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::interval::seconds;
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;
use crate::store::notifications::target::NotificationStore;

/// Messages that a target remembers to have seen. Of more than these only the time is kept.
const MAX_SEEN: i64 = 256;
/// How late a submission may commit and still be told of, after a younger one was.
const LATE_SECONDS: u64 = 15 * 60;
/// Requests are counted up to here.
const MAX_COUNTED: i64 = 1_000;

/// A target that this node may send to, and what it will have seen then.
#[derive(Debug)]
pub struct ClaimedNotification {
    pub tenant: TenantId,
    pub approver: ApproverId,
    pub id: Uuid,
    pub kind: NotificationKind,
    pub url_hash: Vec<u8>,
    pub target: Vec<u8>,
    pub delivered: i64,
    pub attempts: i32,
    pub waiting: i64,
    /// When the oldest request that it has not seen was made, and when the last one ends.
    pub oldest: OffsetDateTime,
    pub latest_expiry: OffsetDateTime,
    pub seen_until: OffsetDateTime,
    pub seen: Vec<Uuid>,
}

/// Limits and marks of one claim.
#[derive(Debug)]
pub struct ClaimTerms<'a> {
    pub secret_check: [u8; 32],
    /// Tenants of which nothing is claimed, and those of which no target is that failed the last time.
    pub busy: &'a [TenantId],
    pub failing: &'a [TenantId],
    pub claim: Uuid,
    pub lease_seconds: u64,
    pub limit: i64,
}

/// Where a pass over all targets stands.
#[derive(Debug, Clone)]
pub struct TargetKey {
    pub tenant: TenantId,
    pub approver: ApproverId,
    pub id: Uuid,
}

impl NotificationStore {
    /// Claims targets of these approvers at which something is due that they have not seen. Those that failed the last time come last.
    pub async fn claim_notifications(
        &self,
        asked: &[(TenantId, ApproverId)],
        terms: &ClaimTerms<'_>,
    ) -> Result<Vec<ClaimedNotification>> {
        let query = sqlx::query_as!(
            ClaimedNotification,
            r#"
            with clock as materialized (
                select clock_timestamp() + $1::interval as now
            ),
            due as materialized (
                select n.tenant_id, n.approver_id, n.notification_id
                  from unnest($2::text[], $3::text[]) as a (tenant_id, approver_id)
                  join notifications n on n.tenant_id = a.tenant_id and n.approver_id = a.approver_id
                 cross join clock c
                 where n.disabled_at is null and n.secret_check = $4 and n.next_attempt_at <= c.now and n.claimed_until <= c.now
                   and n.tenant_id <> all ($5::text[]) and (n.attempts = 0 or n.tenant_id <> all ($6::text[]))
                   and exists (select from tenants t where t.tenant_id = n.tenant_id and t.disabled_at is null)
                   and exists (select from inbox_items x
                                where x.tenant_id = n.tenant_id and x.approver_id = n.approver_id
                                  and x.closed_at is null and x.removed_at is null and x.expires_at > c.now
                                  and x.created_at > n.seen_until and x.message_id <> all (n.seen))
                 order by n.attempts > 0, n.next_attempt_at
                 limit $7
                   for no key update of n skip locked
            ),
            claimed as (
                update notifications n
                   set claim = $8, claimed_until = c.now + $9::interval
                  from due d
                 cross join clock c
                 where n.tenant_id = d.tenant_id and n.approver_id = d.approver_id and n.notification_id = d.notification_id
                returning n.tenant_id, n.approver_id, n.notification_id, n.kind, n.url_hash, n.target, n.delivered, n.attempts,
                          n.seen_until, n.seen, c.now
            )
            select n.tenant_id as "tenant!: TenantId", n.approver_id as "approver!: ApproverId", n.notification_id as "id!",
                   n.kind as "kind!: NotificationKind", n.url_hash as "url_hash!", n.target as "target!",
                   n.delivered as "delivered!", n.attempts as "attempts!",
                   (select count(*)
                      from (select from inbox_items x
                             where x.tenant_id = n.tenant_id and x.approver_id = n.approver_id
                               and x.closed_at is null and x.removed_at is null and x.expires_at > n.now
                             limit $10) y) as "waiting!",
                   coalesce(w.oldest, n.now) as "oldest!", coalesce(w.latest, n.now) as "latest_expiry!",
                   case when w.found >= $11 then w.first
                        else greatest(n.seen_until, n.now - $12::interval) end as "seen_until!",
                   coalesce(w.ids, '{}') as "seen!"
              from claimed n
             cross join lateral (
                 select count(*) as found, min(x.created_at) as first, array_agg(x.message_id) as ids,
                        min(x.created_at) filter (where x.message_id <> all (n.seen)) as oldest,
                        max(x.expires_at) as latest
                   from (select x.message_id, x.created_at, x.expires_at
                           from inbox_items x
                          where x.tenant_id = n.tenant_id and x.approver_id = n.approver_id
                            and x.closed_at is null and x.removed_at is null and x.created_at > n.seen_until
                          order by x.created_at desc, x.message_id desc
                          limit $11) x) w
            "#,
            clock_offset(&self.database.clock),
            column(asked, |(tenant, _)| tenant) as _,
            column(asked, |(_, approver)| approver) as _,
            terms.secret_check.as_slice(),
            column(terms.busy, |tenant| tenant) as _,
            column(terms.failing, |tenant| tenant) as _,
            terms.limit,
            terms.claim,
            seconds(terms.lease_seconds),
            MAX_COUNTED,
            MAX_SEEN,
            seconds(LATE_SECONDS),
        );
        let scope = TenantScope::of(asked.iter().map(|(tenant, _)| tenant));
        self.database.background.fetch_all(scope, query).await
    }

    /// The approvers of up to `limit` targets after this one at which something is due, and the last target that was looked at, if there
    /// may be more.
    pub async fn due_approvers(
        &self,
        secret_check: [u8; 32],
        after: Option<&TargetKey>,
        limit: i64,
    ) -> Result<(Vec<(TenantId, ApproverId)>, Option<TargetKey>)> {
        let query = sqlx::query!(
            r#"
            select n.tenant_id as "tenant: TenantId", n.approver_id as "approver: ApproverId", n.notification_id as id,
                   n.disabled_at is null and n.secret_check = $1 and n.next_attempt_at <= c.now and n.claimed_until <= c.now
                   and exists (select from inbox_items x
                                where x.tenant_id = n.tenant_id and x.approver_id = n.approver_id
                                  and x.closed_at is null and x.removed_at is null and x.expires_at > c.now
                                  and x.created_at > n.seen_until and x.message_id <> all (n.seen)) as "due!"
              from notifications n
             cross join (select clock_timestamp() + $2::interval as now) c
             where (n.tenant_id, n.approver_id, n.notification_id) > ($3, $4, $5)
             order by n.tenant_id, n.approver_id, n.notification_id
             limit $6
            "#,
            secret_check.as_slice(),
            clock_offset(&self.database.clock),
            after.map_or("", |key| key.tenant.as_str()),
            after.map_or("", |key| key.approver.as_str()),
            after.map_or_else(Uuid::nil, |key| key.id),
            limit,
        );
        // All: the sweep serves every tenant.
        let scope = TenantScope::All;
        let rows = self.database.background.fetch_all(scope, query).await?;
        let full = i64::try_from(rows.len()).unwrap_or(i64::MAX) >= limit;
        let last = rows.last().filter(|_| full).map(|row| TargetKey {
            tenant: row.tenant.clone(),
            approver: row.approver.clone(),
            id: row.id,
        });
        let due = rows.into_iter().filter(|row| row.due);
        Ok((due.map(|row| (row.tenant, row.approver)).collect(), last))
    }

    /// Notes that a target was told. Without its claim, because another has it by now, only that it works.
    pub async fn note_delivered(
        &self,
        claimed: &ClaimedNotification,
        claim: Uuid,
        pause_seconds: u64,
    ) -> Result<u64> {
        let query = sqlx::query!(
            r#"
            update notifications
               set seen_until = $1, seen = $2, delivered = delivered + 1, delivered_at = clock_timestamp() + $3::interval,
                   attempts = 0, next_attempt_at = clock_timestamp() + $3::interval + $4::interval, failing_since = null,
                   failure = null, disabled_at = null, claim = null, claimed_until = '-infinity'
             where tenant_id = $5 and approver_id = $6 and notification_id = $7 and claim = $8
            "#,
            claimed.seen_until,
            &claimed.seen,
            clock_offset(&self.database.clock),
            seconds(pause_seconds),
            claimed.tenant.as_str(),
            claimed.approver.as_str(),
            claimed.id,
            claim,
        );
        let (tenant, background) = (&claimed.tenant, &self.database.background);
        background.execute(tenant, query).await
    }

    /// Notes that a notification failed, and when it is sent again. A target that has failed for `give_up_seconds`, or that is to be
    /// given up, is disabled; returns whether it was.
    pub async fn note_failed(
        &self,
        claimed: &ClaimedNotification,
        claim: Uuid,
        failure: &str,
        delay_seconds: f64,
        give_up_seconds: u64,
    ) -> Result<bool> {
        let query = sqlx::query!(
            r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as approver_id,
                       $3::uuid as notification_id, $4::uuid as claim, $5::text as failure,
                       $6::float8 as delay, $7::interval as give_up,
                       clock_timestamp() + $8::interval as now,
                       $9::text::json as origin
            ),
            updated_notification as (
                update notifications n
                   set attempts = n.attempts + 1, failure = i.failure, failing_since = coalesce(n.failing_since, i.now),
                       next_attempt_at = i.now + make_interval(secs => i.delay), claim = null, claimed_until = '-infinity',
                       disabled_at = case when coalesce(n.failing_since, i.now) + i.give_up <= i.now then i.now end
                  from input i
                 where n.tenant_id = i.tenant_id and n.approver_id = i.approver_id and n.notification_id = i.notification_id
                   and n.claim = i.claim
                returning n.tenant_id, n.approver_id, n.notification_id, n.disabled_at, n.kind, n.failure
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from updated_notification n
                 cross join input i
                 cross join audit_event(i.origin, n.tenant_id, n.disabled_at, 'notification.disabled',
                                        n.approver_id || '/' || n.notification_id, concat_ws(': ', n.kind, n.failure)) a
                 where n.disabled_at is not null
            )
            select exists (select from updated_notification n where n.disabled_at is not null) as "disabled!"
            "#,
            claimed.tenant.as_str(),
            claimed.approver.as_str(),
            claimed.id,
            claim,
            failure,
            delay_seconds,
            seconds(give_up_seconds),
            clock_offset(&self.database.clock),
            self.database.audit_origin(&AuditActor::gateway()),
        )
        .map(|row| row.disabled);
        let (tenant, background) = (&claimed.tenant, &self.database.background);
        background.fetch_one(tenant, query).await
    }

    /// Gives a claim back, for any node to take.
    pub async fn release_notification(
        &self,
        claimed: &ClaimedNotification,
        claim: Uuid,
    ) -> Result<u64> {
        let query = sqlx::query!(
            r#"
            update notifications set claim = null, claimed_until = '-infinity'
             where tenant_id = $1 and approver_id = $2 and notification_id = $3 and claim = $4
            "#,
            claimed.tenant.as_str(),
            claimed.approver.as_str(),
            claimed.id,
            claim,
        );
        let (tenant, background) = (&claimed.tenant, &self.database.background);
        background.execute(tenant, query).await
    }

    /// Notes that a test got through: the target works, and is enabled.
    pub async fn note_working(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        id: Uuid,
    ) -> Result<u64> {
        let query = sqlx::query!(
            r#"
            update notifications
               set delivered_at = clock_timestamp() + $1::interval, attempts = 0,
                   next_attempt_at = clock_timestamp() + $1::interval, failing_since = null, failure = null, disabled_at = null
             where tenant_id = $2 and approver_id = $3 and notification_id = $4
            "#,
            clock_offset(&self.database.clock),
            tenant.as_str(),
            approver.as_str(),
            id,
        );
        self.database.pool.execute(tenant, query).await
    }
}
