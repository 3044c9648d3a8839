//! Lists of tenants, credentials and exchanges, in the order they were created: in pages for callers, the first two also
//! whole for the command line.

use time::OffsetDateTime;

use super::error::Result;
use super::tenant_scope::TenantScope;
use super::{CredentialStore, ExchangeStore};
use crate::protocol::credential::RoleName;
use crate::protocol::cursor::Position;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::{ApproverId, CredentialId, EnforcerId, RequestId, TenantId};
use crate::protocol::listing::{CredentialLine, ExchangeLine, Tenant};
use crate::protocol::timestamp::Timestamp;

/// Which part of a list; by default all of it.
#[derive(Debug, Default)]
pub struct Part {
    pub after: Option<Position>,
    pub limit: Option<i64>,
}

impl Part {
    fn start(&self) -> (Option<OffsetDateTime>, Option<&str>) {
        match &self.after {
            Some(position) => (Some(position.at), Some(&position.id)),
            None => (None, None),
        }
    }

    /// One more than wanted, to know whether there is another page.
    fn count(&self) -> Option<i64> {
        self.limit.map(|limit| limit.saturating_add(1))
    }

    fn cut<T>(
        &self,
        items: Vec<T>,
        position: impl Fn(&T) -> Position,
    ) -> (Vec<T>, Option<Position>) {
        cut_page(items, self.limit.unwrap_or(i64::MAX), position)
    }
}

/// Cuts off the row past `limit`; if there was one, also returns where the next page starts.
pub(super) fn cut_page<T>(
    mut items: Vec<T>,
    limit: i64,
    position: impl Fn(&T) -> Position,
) -> (Vec<T>, Option<Position>) {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(position);
    (items, next)
}

#[derive(Debug, Clone, Default)]
pub struct ExchangeFilter {
    /// Only in this state, as of now.
    pub state: Option<ExchangeState>,
    /// Only of this enforcer.
    pub enforcer: Option<EnforcerId>,
    /// Only asking this approver.
    pub approver: Option<ApproverId>,
}

pub struct ExchangePage {
    pub items: Vec<ExchangeLine>,
    /// Where the next page starts, if there may be one.
    pub next: Option<Position>,
}

/// Rows read for one page: a filter that matches little must not read a tenant's whole history in one statement.
const SCANNED_PER_PAGE: i64 = 5_000;

impl CredentialStore {
    /// Tenants, disabled ones included, and where the next page starts.
    pub async fn tenants(&self, part: &Part) -> Result<(Vec<Tenant>, Option<Position>)> {
        let (at, id) = part.start();
        let query = sqlx::query_as!(
            Tenant,
            r#"
            select tenant_id as "tenant_id: TenantId", name, created_at, disabled_at as "disabled_at: Timestamp"
              from tenants
             where $1::timestamptz is null or (created_at, tenant_id) > ($1, $2::text)
             order by created_at, tenant_id
             limit $3::bigint
            "#,
            at,
            id,
            part.count(),
        );
        // All: the list of tenants is the operator's.
        let scope = TenantScope::All;
        let found = self.database.background.fetch_all(scope, query).await?;
        Ok(part.cut(found, |last| Position {
            at: last.created_at.inner(),
            id: last.tenant_id.to_string(),
        }))
    }

    /// Credentials of a tenant (any tenant: `None`), of one role where one is named, and where the next page starts.
    pub async fn credentials(
        &self,
        tenant: Option<&TenantId>,
        role: Option<RoleName>,
        part: &Part,
    ) -> Result<(Vec<CredentialLine>, Option<Position>)> {
        let (at, id) = part.start();
        let query = sqlx::query_as!(
            CredentialLine,
            r#"
            select credential_id as "credential_id: CredentialId", tenant_id as "tenant_id: TenantId", kind,
                   role as "role: RoleName", bound_id, created_at, expires_at as "expires_at: Timestamp",
                   revoked_at as "revoked_at: Timestamp", last_used_at as "last_used_at: Timestamp"
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
        );
        let found = self
            .database
            .background
            .fetch_all(TenantScope::one_or_all(tenant), query)
            .await?;
        Ok(part.cut(found, |last| Position {
            at: last.created_at.inner(),
            id: last.credential_id.to_string(),
        }))
    }
}

impl ExchangeStore {
    /// One page of a tenant's exchanges, oldest first. However few match, only so many rows are read: a page may be short
    /// or even empty, and still say where the next one starts.
    pub async fn list_exchanges(
        &self,
        tenant: &TenantId,
        filter: &ExchangeFilter,
        after: Option<(OffsetDateTime, &str)>,
        limit: i64,
    ) -> Result<ExchangePage> {
        let (at, id) = after.unwrap_or((OffsetDateTime::UNIX_EPOCH, ""));
        let query = sqlx::query!(
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
            -- Where the scan ended: at the last of a full page, else at the last row read.
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
                   s.request_id as "request_id?: RequestId", s.state as "state?: ExchangeState",
                   s.enforcer_id as "enforcer_id?: EnforcerId",
                   s.artifact_type as "artifact_type?", s.artifact_hash as "artifact_hash?",
                   s.accepted_at as "accepted_at?: Timestamp", s.expires_at as "expires_at?: Timestamp",
                   s.decision as "decision?", s.decided_by as "decided_by?", s.decided_at as "decided_at?: Timestamp",
                   s.verified as "verified?", s.delivered_at as "delivered_at?: Timestamp", s.past as "past?",
                   (select array_agg(x.approver_id order by x.approver_id)
                      from inbox_items x
                     where x.tenant_id = $1 and x.request_id = s.request_id) as "approver_ids?: Vec<ApproverId>"
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
            self.database.clock.offset(),
            SCANNED_PER_PAGE,
        );
        let found = self.database.pool.fetch_all(tenant, query).await?;
        let next = found.first().filter(|row| row.more).map(|row| Position {
            at: row.last_at,
            id: row.last_id.clone(),
        });
        let mut items = Vec::with_capacity(found.len());
        for row in found {
            // Without a match there is still one row, which says where the scan ended.
            let (Some(request_id), Some(state), Some(enforcer_id)) =
                (row.request_id, row.state, row.enforcer_id)
            else {
                continue;
            };
            let (Some(created_at), Some(expires_at)) = (row.accepted_at, row.expires_at) else {
                continue;
            };
            items.push(ExchangeLine {
                request_id,
                state: state.at(row.past.unwrap_or(false)),
                enforcer_id,
                approver_ids: row.approver_ids.unwrap_or_default(),
                artifact_type: row.artifact_type.unwrap_or_default(),
                artifact_hash: row.artifact_hash.unwrap_or_default(),
                created_at,
                expires_at,
                decision: row.decision,
                decided_by: row.decided_by,
                decided_at: row.decided_at,
                verified: row.verified,
                delivered_at: row.delivered_at,
            });
        }
        Ok(ExchangePage { items, next })
    }
}
