//! Pairings in force: routes submissions by them, lists them and revokes them. A token is valid while its pairing is not
//! revoked and has no newer token.

use std::sync::Arc;

use sqlx::PgConnection;
use time::OffsetDateTime;
use tokio_util::task::TaskTracker;

use crate::config;
use crate::protocol::cursor::PagePosition;
use crate::protocol::id::{ApproverId, EnforcerId, TenantId};
use crate::protocol::pairing::{Nonce, RoutingToken};
use crate::protocol::timestamp::Timestamp;
use crate::store::audit::AuditSource;
use crate::store::database::batch::StatementBatcher;
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::listing::cut_page;
use crate::store::database::pools::Database;
use crate::store::database::rows::{column, row_mut};
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;
use crate::store::teams::follow::FollowScope;

#[derive(Debug)]
pub struct TokenRow {
    pub tenant: TenantId,
    pub enforcer: EnforcerId,
    pub token_hash: [u8; 32],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenFact {
    Good(ApproverId),
    /// Revoked, or replaced by a newer one.
    Ended,
    /// This enforcer has no such token.
    Unknown,
}

pub struct ReadTokens;

impl BatchStatement for ReadTokens {
    const NAME: &'static str = "read_routing_token";
    const IS_READ: bool = true;
    type Row = TokenRow;
    type Fact = TokenFact;

    fn tenant_scope(rows: &[TokenRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let found = sqlx::query!(
            r#"
            select t.token_hash is not null as "known!", p.approver_id as "approver_id?: ApproverId"
              from unnest($1::text[], $2::text[], $3::bytea[])
                   with ordinality as i (tenant_id, enforcer_id, token_hash, n)
              left join routing_tokens t on t.tenant_id = i.tenant_id and t.token_hash = i.token_hash
                                        and t.enforcer_id = i.enforcer_id
              left join pairings p on p.tenant_id = t.tenant_id and p.enforcer_id = t.enforcer_id
                                  and p.approver_id = t.approver_id and p.token_hash = t.token_hash
                                  and p.revoked_at is null
             order by i.n
            "#,
            column(rows, |row| &row.tenant) as _,
            column(rows, |row| &row.enforcer) as _,
            column(rows, |row| row.token_hash) as _,
        )
        .fetch_all(connection)
        .await?;
        let facts = found
            .into_iter()
            .map(|row| match (row.approver_id, row.known) {
                (Some(approver), _) => TokenFact::Good(approver),
                (None, true) => TokenFact::Ended,
                (None, false) => TokenFact::Unknown,
            });
        Ok(facts.collect())
    }
}

#[derive(Debug)]
pub struct PairedRow {
    pub tenant: TenantId,
    pub enforcer: EnforcerId,
}

/// The approvers that an enforcer is paired with directly.
#[derive(Debug, Clone, Default)]
pub struct PairedApprovers {
    pub count: usize,
    /// All of them, if they are no more than may be asked.
    pub approvers: Vec<ApproverId>,
}

pub struct ReadPaired {
    pub most: u32,
}

impl BatchStatement for ReadPaired {
    const NAME: &'static str = "read_paired";
    const IS_READ: bool = true;
    type Row = PairedRow;
    type Fact = PairedApprovers;

    fn tenant_scope(rows: &[PairedRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn bytes(_: &PairedRow) -> usize {
        // As many ids as may be asked may come back.
        8 << 10
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let found = sqlx::query!(
            r#"
            select i.n as "n!", p.approver_id as "approver_id!: ApproverId", p.count as "count!"
              from unnest($1::text[], $2::text[]) with ordinality as i (tenant_id, enforcer_id, n)
             cross join lateral (
                 select q.approver_id, count(*) over () as count
                   from pairings q
                  where q.tenant_id = i.tenant_id and q.enforcer_id = i.enforcer_id and q.revoked_at is null
                    and q.team_id is null
                  order by q.approver_id
                  limit $3) p
            "#,
            column(rows, |row| &row.tenant) as _,
            column(rows, |row| &row.enforcer) as _,
            i64::from(self.most),
        )
        .fetch_all(connection)
        .await?;
        let mut paired = vec![PairedApprovers::default(); rows.len()];
        for found in found {
            let paired = row_mut(&mut paired, found.n)?;
            paired.count = usize::try_from(found.count).unwrap_or_default();
            paired.approvers.push(found.approver_id);
        }
        Ok(paired)
    }
}

/// Which side of a pairing a caller may act as: one id, or any of its role.
#[derive(Debug, Clone, Copy)]
pub enum PairingSide<'a> {
    Enforcer(Option<&'a EnforcerId>),
    Approver(Option<&'a ApproverId>),
}

impl<'a> PairingSide<'a> {
    /// The enforcer and the approver it is limited to.
    fn bounds(self) -> (Option<&'a str>, Option<&'a str>) {
        match self {
            Self::Enforcer(id) => (id.map(EnforcerId::as_str), None),
            Self::Approver(id) => (None, id.map(ApproverId::as_str)),
        }
    }

    fn is_enforcer(self) -> bool {
        matches!(self, Self::Enforcer(_))
    }
}

#[derive(Debug)]
pub struct Pairing {
    pub enforcer: EnforcerId,
    pub approver: ApproverId,
    pub nonce: Nonce,
    pub token_hash: Vec<u8>,
    pub label: Option<String>,
    pub workspace: Option<String>,
    pub enforcer_key: Option<String>,
    pub approver_key: Option<String>,
    /// The team that it follows from.
    pub team: Option<String>,
    pub paired_at: Timestamp,
}

pub struct PairingStore {
    pub(in crate::store) database: Arc<Database>,
    tokens: StatementBatcher<ReadTokens>,
    paired: StatementBatcher<ReadPaired>,
}

impl PairingStore {
    pub(in crate::store) fn new(
        database: &Arc<Database>,
        limits: &config::Limits,
        tasks: &TaskTracker,
    ) -> Self {
        let most = limits.approvers_per_exchange;
        Self {
            tokens: database.batch(ReadTokens, tasks),
            paired: database.batch(ReadPaired { most }, tasks),
            database: Arc::clone(database),
        }
    }

    /// The approver that a routing token of an enforcer stands for.
    pub async fn token_of(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        token: &RoutingToken,
    ) -> Result<TokenFact> {
        let row = TokenRow {
            tenant: tenant.clone(),
            enforcer: enforcer.clone(),
            token_hash: token.hash(),
        };
        self.tokens.run(row).await
    }

    pub async fn paired_with(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
    ) -> Result<PairedApprovers> {
        let (tenant, enforcer) = (tenant.clone(), enforcer.clone());
        self.paired.run(PairedRow { tenant, enforcer }).await
    }

    /// Revokes the pairing of a token, if the token is valid: one with an approver, who may still be in a team that the enforcer is
    /// paired with, or one with a team. False if this side has no such token.
    pub async fn revoke_pairing(
        &self,
        tenant: &TenantId,
        side: PairingSide<'_>,
        source: &AuditSource,
        token_hash: &[u8],
    ) -> Result<bool> {
        let (enforcer, approver) = side.bounds();
        let query = sqlx::query!(
            r#"
            with token as materialized (
                select t.tenant_id, t.enforcer_id, t.approver_id, t.token_hash
                  from routing_tokens t
                 where t.tenant_id = $1 and t.token_hash = $2
                   and ($3::text is null or t.enforcer_id = $3)
                   and ($4::text is null or t.approver_id = $4)
            ),
            revoked as (
                update pairings p
                   set revoked_at = clock_timestamp() + $5::interval
                  from token t
                 where p.tenant_id = t.tenant_id and p.enforcer_id = t.enforcer_id and p.approver_id = t.approver_id
                   and p.token_hash = t.token_hash and p.revoked_at is null
                returning p.tenant_id, p.enforcer_id, p.approver_id, p.revoked_at
            ),
            forgotten as (
                delete from introductions i using revoked r
                 where i.tenant_id = r.tenant_id and i.approver_id = r.approver_id and i.enforcer_id = r.enforcer_id
            ),
            team_pairing as materialized (
                select g.tenant_id, g.team_id, g.enforcer_id, t.approver_id, t.token_hash,
                       $3::text is not null or $4::text is null
                       or exists (select from team_seats s
                                   where s.tenant_id = g.tenant_id and s.team_id = g.team_id and s.approver_id = $4
                                     and s.seat = 'owner') as permitted
                  from token t
                  join team_pairings g on g.tenant_id = t.tenant_id and g.enforcer_id = t.enforcer_id
                                      and g.token_hash = t.token_hash
            ),
            ended_team_pairing as (
                delete from team_pairings g using team_pairing e
                 where e.permitted and g.tenant_id = e.tenant_id and g.team_id = e.team_id and g.enforcer_id = e.enforcer_id
                returning e.tenant_id, e.team_id, e.enforcer_id, e.approver_id, e.token_hash,
                          clock_timestamp() + $5::interval as revoked_at
            ),
            ended_token as (
                update routing_tokens t
                   set replaced_at = e.revoked_at
                  from ended_team_pairing e
                 where t.tenant_id = e.tenant_id and t.token_hash = e.token_hash
            ),
            ended_introductions as (
                delete from team_introductions i using ended_team_pairing e
                 where i.tenant_id = e.tenant_id and i.team_id = e.team_id and i.enforcer_id = e.enforcer_id
            ),
            audited as (
                insert into audit_events (tenant_id, at, event_id, actor, principal, action, subject, detail, address, node)
                select r.tenant_id, r.revoked_at, $6,
                       case when $7 then 'enforcer:' || r.enforcer_id else 'approver:' || r.approver_id end,
                       $8, 'pairing.revoked', r.enforcer_id || '/' || r.approver_id, r.detail, $9, $10
                  from (select d.tenant_id, d.enforcer_id, d.approver_id, d.revoked_at, null as detail from revoked d
                         union all
                        select e.tenant_id, e.enforcer_id, e.approver_id, e.revoked_at, 'team ' || e.team_id
                          from ended_team_pairing e) r
            )
            select t.enforcer_id, not exists (select from team_pairing g where not g.permitted) as "known!"
              from token t
            "#,
            tenant.as_str(),
            token_hash,
            enforcer,
            approver,
            clock_offset(&self.database.clock),
            self.database.clock.operation_id().0,
            side.is_enforcer(),
            source.principal.as_deref(),
            source.address(),
            self.database.node.as_str(),
        )
        .map(|row| (row.enforcer_id, row.known));
        let scope = |(enforcer, _): &(String, bool)| FollowScope::Enforcer(enforcer.clone());
        let found = self.database.in_team_turn(tenant, query, scope).await?;
        Ok(found.is_some_and(|(_, known)| known))
    }

    /// One page of the pairings in force of a side, oldest first, and where the next one starts.
    pub async fn pairings(
        &self,
        tenant: &TenantId,
        side: PairingSide<'_>,
        after: Option<&PagePosition>,
        limit: i64,
    ) -> Result<(Vec<Pairing>, Option<PagePosition>)> {
        let (enforcer, approver) = side.bounds();
        let (at, nonce) = after.map_or((OffsetDateTime::UNIX_EPOCH, ""), |position| {
            (position.at, position.id.as_str())
        });
        let query = sqlx::query_as!(
            Pairing,
            r#"
            select p.enforcer_id as "enforcer!: EnforcerId", p.approver_id as "approver!: ApproverId",
                   p.nonce as "nonce!: Nonce", p.token_hash as "token_hash!", p.enforcer_label as "label?",
                   p.workspace_name as "workspace?", p.enforcer_key as "enforcer_key?", p.approver_key as "approver_key?",
                   p.team_id as "team?", p.paired_at as "paired_at!: Timestamp"
              -- Branches, so that each uses its own partial index.
              from (
                  (select e.*
                     from pairings e
                    where e.tenant_id = $1 and e.enforcer_id = $2
                      and coalesce(e.revoked_at, 'infinity') = 'infinity' and (e.paired_at, e.nonce) > ($3, $4)
                    order by e.paired_at, e.nonce
                    limit $5::bigint + 1)
                  union all
                  (select a.*
                     from pairings a
                    where a.tenant_id = $1 and a.approver_id = $6
                      and coalesce(a.revoked_at, 'infinity') = 'infinity' and (a.paired_at, a.nonce) > ($3, $4)
                    order by a.paired_at, a.nonce
                    limit $5::bigint + 1)
                  union all
                  (select t.*
                     from pairings t
                    where $2::text is null and $6::text is null and t.tenant_id = $1
                      and coalesce(t.revoked_at, 'infinity') = 'infinity' and (t.paired_at, t.nonce) > ($3, $4)
                    order by t.paired_at, t.nonce
                    limit $5::bigint + 1)
              ) p
             order by p.paired_at, p.nonce
             limit $5::bigint + 1
            "#,
            tenant.as_str(),
            enforcer,
            at,
            nonce,
            limit,
            approver,
        );
        let found = self.database.pool.fetch_all(tenant, query).await?;
        Ok(cut_page(found, limit, |last| PagePosition {
            at: last.paired_at.inner(),
            id: last.nonce.as_str().to_owned(),
        }))
    }
}
