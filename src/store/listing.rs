//! Tenants, credentials and exchanges, listed by when they were made: the first two whole for those who look after the
//! database, all page by page for callers.

use time::OffsetDateTime;

use super::credential::{CredentialLine, RoleName, Tenant};
use super::error::StoreError;
use super::tenant_scope::TenantScope;
use super::{Store, rows};
use crate::protocol::cursor::Position;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::{ApproverId, EnforcerId, TenantId};
use crate::protocol::timestamp::Timestamp;

/// Which part of a list; by default all of it.
#[derive(Debug, Default)]
pub struct Part {
    pub after: Option<Position>,
    /// How many at most.
    pub limit: Option<i64>,
}

impl Part {
    fn start(&self) -> (Option<OffsetDateTime>, Option<&str>) {
        match &self.after {
            Some(position) => (Some(position.at), Some(&position.id)),
            None => (None, None),
        }
    }

    /// One more than wanted, which tells whether there are more.
    fn count(&self) -> Option<i64> {
        self.limit.map(|limit| limit.saturating_add(1))
    }

    /// The rows that were wanted, and where the next page starts.
    fn cut<T>(
        &self,
        mut items: Vec<T>,
        position: impl Fn(&T) -> (Timestamp, String),
    ) -> (Vec<T>, Option<Position>) {
        let wanted = self.limit.and_then(|limit| usize::try_from(limit).ok());
        let wanted = wanted.unwrap_or(usize::MAX);
        let more = items.len() > wanted;
        items.truncate(wanted);
        let next = items.last().filter(|_| more).map(|last| {
            let (at, id) = position(last);
            Position { at: at.inner(), id }
        });
        (items, next)
    }
}

#[derive(Debug, Clone, Default)]
pub struct ExchangeFilter {
    /// Only in this true state.
    pub state: Option<ExchangeState>,
    /// Only of this enforcer.
    pub enforcer: Option<EnforcerId>,
    /// Only asking this approver.
    pub approver: Option<ApproverId>,
}

/// A line of the listing: an exchange without its payloads.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExchangeLine {
    pub request_id: String,
    pub state: ExchangeState,
    pub enforcer_id: String,
    pub approver_ids: Vec<String>,
    pub artifact_type: String,
    pub artifact_hash: String,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// When the enforcer acknowledged it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Timestamp>,
}

pub struct ExchangePage {
    pub items: Vec<ExchangeLine>,
    /// Where the next page starts, if there may be one.
    pub next: Option<Position>,
}

/// Rows looked at for one page: a filter that matches little must not search a tenant's whole past in one statement.
const SCANNED_PER_PAGE: i64 = 5_000;

impl Store {
    /// Tenants, disabled ones included, and where the next page starts.
    pub async fn tenants(
        &self,
        part: &Part,
    ) -> Result<(Vec<Tenant>, Option<Position>), StoreError> {
        // All: the list of tenants is the operator's.
        let mut lease = self.background.lease(TenantScope::All).await?;
        let (at, id) = part.start();
        let found = sqlx::query!(
            r#"
            select tenant_id, name, created_at, disabled_at as "disabled_at?"
              from tenants
             where $1::timestamptz is null or (created_at, tenant_id) > ($1, $2::text)
             order by created_at, tenant_id
             limit $3::bigint
            "#,
            at,
            id,
            part.count(),
        )
        .fetch_all(lease.connection()?)
        .await;
        let tenants = lease.settle(found)?.into_iter().map(|row| {
            Ok(Tenant {
                tenant_id: rows::id(&row.tenant_id)?,
                name: row.name,
                created_at: row.created_at.into(),
                disabled_at: row.disabled_at.map(Into::into),
            })
        });
        let tenants = tenants.collect::<Result<Vec<_>, sqlx::Error>>()?;
        Ok(part.cut(tenants, |last| {
            (last.created_at, last.tenant_id.to_string())
        }))
    }

    /// Credentials of a tenant (any tenant: `None`), of one role where one is named, and where the next page starts.
    pub async fn credentials(
        &self,
        tenant: Option<&TenantId>,
        role: Option<RoleName>,
        part: &Part,
    ) -> Result<(Vec<CredentialLine>, Option<Position>), StoreError> {
        let mut lease = self.background.lease(TenantScope::of_any(tenant)).await?;
        let (at, id) = part.start();
        let found = sqlx::query!(
            r#"
            select credential_id, tenant_id, kind, role, bound_id as "bound_id?", created_at, expires_at as "expires_at?",
                   revoked_at as "revoked_at?", last_used_at as "last_used_at?"
              from credentials
             where ($1::text is null or tenant_id = $1) and ($2::text is null or role = $2)
               and ($3::timestamptz is null or (created_at, credential_id) > ($3, $4::text))
             order by created_at, credential_id
             limit $5::bigint
            "#,
            tenant.map(TenantId::as_str),
            role.map(RoleName::as_str),
            at,
            id,
            part.count(),
        )
        .fetch_all(lease.connection()?)
        .await;
        let lines = lease.settle(found)?.into_iter().map(|row| CredentialLine {
            credential_id: row.credential_id,
            tenant_id: row.tenant_id,
            kind: row.kind,
            role: row.role,
            bound_id: row.bound_id,
            created_at: row.created_at.into(),
            expires_at: row.expires_at.map(Into::into),
            revoked_at: row.revoked_at.map(Into::into),
            last_used_at: row.last_used_at.map(Into::into),
        });
        Ok(part.cut(lines.collect(), |last| {
            (last.created_at, last.credential_id.clone())
        }))
    }

    /// One page of a tenant's exchanges, oldest first. However few match, only so many are looked at: a page may be short
    /// or even empty, and still say where the next one starts.
    pub async fn list_exchanges(
        &self,
        tenant: &TenantId,
        filter: &ExchangeFilter,
        after: Option<(OffsetDateTime, &str)>,
        limit: i64,
    ) -> Result<ExchangePage, StoreError> {
        let (at, id) = after.unwrap_or((OffsetDateTime::UNIX_EPOCH, ""));
        let mut lease = self.pool.lease(TenantScope::Tenant(tenant)).await?;
        let found = sqlx::query!(
            r#"
            with scanned as materialized (
                select e.request_id, e.state, e.enforcer_id, e.artifact_type, e.artifact_hash, e.accepted_at,
                       e.expires_at, e.decision, e.decided_by, e.decided_at, e.verified, e.delivered_at,
                       e.expires_at <= clock_timestamp() + $8::interval as past
                  from exchanges e
                 where e.tenant_id = $1 and (e.accepted_at, e.request_id) > ($2, $3)
                 order by e.accepted_at, e.request_id
                 limit $9
            ),
            page as materialized (
                select s.request_id
                  from scanned s
                 where ($4::text is null
                        or $4 = case when s.state = 'pendingApproval' and s.past then 'expired' else s.state end)
                   and ($5::text is null or s.enforcer_id = $5)
                   and ($6::text is null
                        or exists (select from inbox_items x
                                    where x.tenant_id = $1 and x.request_id = s.request_id and x.approver_id = $6))
                 order by s.accepted_at, s.request_id
                 limit $7
            ),
            -- Where the looking ended: at the last of a full page, else at the last row looked at.
            last as (
                select s.accepted_at, s.request_id
                  from scanned s
                 where (select count(*) from page) < $7
                    or exists (select from page p where p.request_id = s.request_id)
                 order by s.accepted_at desc, s.request_id desc
                 limit 1
            )
            select l.accepted_at as "last_at!", l.request_id as "last_id!",
                   (select count(*) from scanned) >= $9 or (select count(*) from page) >= $7 as "more!",
                   s.request_id as "request_id?", s.state as "state?", s.enforcer_id as "enforcer_id?",
                   s.artifact_type as "artifact_type?", s.artifact_hash as "artifact_hash?",
                   s.accepted_at as "accepted_at?", s.expires_at as "expires_at?", s.decision as "decision?",
                   s.decided_by as "decided_by?", s.decided_at as "decided_at?", s.verified as "verified?",
                   s.delivered_at as "delivered_at?", s.past as "past?",
                   (select array_agg(x.approver_id order by x.approver_id)
                      from inbox_items x
                     where x.tenant_id = $1 and x.request_id = s.request_id) as "approver_ids?"
              from last l
              left join (page p join scanned s on s.request_id = p.request_id) on true
             order by s.accepted_at, s.request_id
            "#,
            tenant.as_str(),
            at,
            id,
            filter.state.map(ExchangeState::as_str),
            filter.enforcer.as_ref().map(EnforcerId::as_str),
            filter.approver.as_ref().map(ApproverId::as_str),
            limit,
            self.clock.offset(),
            SCANNED_PER_PAGE,
        )
        .fetch_all(lease.connection()?)
        .await;
        let found = lease.settle(found)?;
        let next = found.first().filter(|row| row.more).map(|row| Position {
            at: row.last_at,
            id: row.last_id.clone(),
        });
        let mut items = Vec::with_capacity(found.len());
        for row in found {
            // Without a match there is still one row, which says where the looking ended.
            let (
                Some(request_id),
                Some(state),
                Some(enforcer_id),
                Some(accepted_at),
                Some(expires_at),
            ) = (
                row.request_id,
                row.state,
                row.enforcer_id,
                row.accepted_at,
                row.expires_at,
            )
            else {
                continue;
            };
            items.push(ExchangeLine {
                request_id,
                state: rows::state(&state)?.at(row.past.unwrap_or(false)),
                enforcer_id,
                approver_ids: row.approver_ids.unwrap_or_default(),
                artifact_type: row.artifact_type.unwrap_or_default(),
                artifact_hash: row.artifact_hash.unwrap_or_default(),
                created_at: accepted_at.into(),
                expires_at: expires_at.into(),
                decision: row.decision,
                decided_by: row.decided_by,
                decided_at: row.decided_at.map(Into::into),
                verified: row.verified,
                delivered_at: row.delivered_at.map(Into::into),
            });
        }
        Ok(ExchangePage { items, next })
    }
}
